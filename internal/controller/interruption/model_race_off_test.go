//go:build !race

package interruption

// modelRuns is how many runs are made where nothing else is said.
const modelRuns = 2000
