//go:build race

package interruption

// modelRuns is how many runs are made where nothing else is said: fewer where
// each takes six times as long.
const modelRuns = 1000
