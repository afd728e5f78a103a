//go:build race

package drain_test

// worlds is how many clusters the properties are tried on: fewer where each
// costs ten times as much.
const worlds = 600
