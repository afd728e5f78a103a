// Package history makes random histories of interruptions, plays them on a sandbox, and judges them.
//
// [Random] makes a history of a seed: nodes, workloads, policies, notices and faults. It is written as a
// scenario, so that `scenario.Parse` reads it and a person can play it again. [Player] plays many of
// them on one sandbox. [Shrink] makes a failing history shorter.
package history
