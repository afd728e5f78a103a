// Package drain plans how pods leave a node that will be interrupted. It gives each pod a
// verdict with a reason, and says when to plan again. The package is pure: it reads no clock and
// makes no call. The controller and `lifeboat plan` therefore print the same plan from the same
// facts. It also keeps no state: after a crash, a second notice or a moved deadline, the next
// plan depends only on the current facts.
//
// The deadline decides most rules. The last call of a pod is the deadline minus its grace period
// minus a margin. That is the last moment at which it can be asked to stop and still have its
// whole grace. Before its last call a pod is evicted, or surged, which starts its successor
// first. A PodDisruptionBudget, do-not-disrupt, a gate or the order of pods may hold it. At its
// last call before a hard deadline nothing holds it, except a policy that says Respect or leaves
// it in place: a graceful stop is better than a power cut. A soft deadline, or none, overrides
// nothing.
//
// The rules are listed in order in rules.go; the first with an opinion wins.
package drain
