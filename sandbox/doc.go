// Package sandbox is all of Lifeboat's world on one machine: a real Kubernetes
// control plane, simulated nodes on emulated EC2 machines, an AWS emulator, and
// lifeboatd, wired together with EventBridge rules and a queue as on AWS; and, where
// it is asked for, Karpenter.
//
// A [Sandbox] lives in this process, with its programs as children that die
// with it. [Start], [Inspect] and [Stop] keep one in the background: a supervisor
// of its own, found again by its name. Either way everything is in one directory
// that Down removes, and everything listens on loopback only, except
// Karpenter's metrics and health, which it opens on all addresses.
package sandbox
