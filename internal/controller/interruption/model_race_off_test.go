//go:build !race

package interruption

// modelRuns is the default number of runs.
const modelRuns = 1500
