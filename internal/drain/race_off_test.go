//go:build !race

package drain_test

// worlds is the number of simulated clusters per property.
const worlds = 2000
