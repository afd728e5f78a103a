// Package timelimit scales the time limits of tests on a control plane by the speed of the
// machine: the start-up time of a sandbox.
package timelimit

import "time"

// quiet is the start-up time of a sandbox on two idle cores.
const quiet = 9 * time.Second

// The machine can become busier after the start of the sandbox, so there is a minimum. Beyond
// the maximum it is not slow but stuck.
const (
	least = 2
	most  = 5
)

// Factor is the factor for the limits of an idle machine, given the start-up time of a sandbox
// on this machine.
func Factor(up time.Duration) float64 {
	return min(max(least, float64(up)/float64(quiet)), most)
}

// Stretch scales a limit of an idle machine.
func Stretch(limit time.Duration, factor float64) time.Duration {
	return time.Duration(float64(limit) * max(factor, least)).Round(time.Second)
}
