// Package e2e holds tests of the whole: the real lifeboatd as a process,
// against a real control plane, with the AWS emulator on the wire and simulated
// machines. They do to it what a bad night does: kill it, take away the API
// server or the queue, and fill the queue with noise.
package e2e
