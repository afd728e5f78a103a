//go:build !race

package drain_test

// worlds is how many clusters the properties are tried on.
const worlds = 2000
