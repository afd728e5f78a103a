// Package e2e holds end-to-end tests: the real lifeboatd as a process, against a real control
// plane, with the AWS emulator on the wire and simulated machines. The tests kill lifeboatd, stop
// the API server or the queue, and fill the queue with noise.
package e2e
