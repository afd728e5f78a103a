//go:build race

package interruption

// modelRuns is the default number of runs: fewer because each takes six times as long under the
// race detector.
const modelRuns = 1000
