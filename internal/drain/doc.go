// Package drain plans how pods leave a doomed node: for each pod a verdict and
// a reason that a person understands, and when to look again. It is pure: it
// reads no clock and calls nobody, so that the controller and `lifeboat plan`
// print the same plan from the same facts, and so that a plan made after a
// crash is the plan that would have been made without it. It has no memory
// either: where a notice overtakes another or a deadline moves, the next plan
// is the one that would have been made had it never been otherwise.
//
// Everything follows from the deadline. The last call of a pod is the deadline
// minus its grace period minus a margin: the last moment at which it can be
// asked to stop and still have its whole grace. Before last call a pod is
// evicted, or surged, which starts its successor first; and a
// PodDisruptionBudget, a do-not-disrupt annotation, a gate that all pods wait
// for, or its place after others may hold it. At last call before a hard
// deadline nothing holds it any more (but for a policy that says Respect, or
// leaves it where it is): a preStop hook that runs beats a power cut. A soft
// deadline, or none, overrides nothing.
//
// The rules stand in order in rules.go; the first with an opinion wins.
package drain
