//go:build race

package drain_test

// worlds is the number of simulated clusters per property: fewer because the race detector makes
// each ten times as slow.
const worlds = 600
