// Package timelimit stretches the time limits of tests on a control plane by how slow the
// machine is, which the time that a sandbox takes to come up tells.
package timelimit

import "time"

// quiet is how long a sandbox takes to come up on two quiet cores.
const quiet = 9 * time.Second

// The machine can become busier after the sandbox is up: hence the least. With more than
// the most it is not slow but stuck.
const (
	least = 2
	most  = 5
)

// Factor is by what to multiply the limits of a quiet machine, given how long a sandbox
// took to come up on this one.
func Factor(up time.Duration) float64 {
	return min(max(least, float64(up)/float64(quiet)), most)
}

// Stretch multiplies a limit of a quiet machine.
func Stretch(limit time.Duration, factor float64) time.Duration {
	return time.Duration(float64(limit) * max(factor, least)).Round(time.Second)
}
