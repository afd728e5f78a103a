// Package testkit has the test of the architecture: which package may import which, and why. It
// has no other code.
package testkit
