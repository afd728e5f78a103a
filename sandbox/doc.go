// Package sandbox runs Lifeboat with its whole environment on one machine: a real Kubernetes control
// plane, simulated nodes on emulated EC2 machines, an AWS emulator, and lifeboatd. EventBridge rules
// and a queue connect them, as on AWS. Karpenter is optional.
//
// A [Sandbox] runs in this process. Its programs are child processes that end with it. [Start],
// [Inspect] and [Stop] manage a sandbox in the background: a supervisor process that has a name. All
// files are in one directory, which Down removes. All listeners use loopback, except Karpenter's
// metrics and health, which have no option for the address.
package sandbox
