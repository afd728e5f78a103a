// Package nth turns the settings of AWS Node Termination Handler into an
// InterruptionPolicy: the values of its Helm chart, or its Deployment or DaemonSet as
// a cluster has it. What needs no policy, since it is always so, or cannot be had, it
// says as a finding. It is pure: texts in, text and findings out.
//
// What each flag means is in the handler's README and its pkg/config; what became of
// it, in docs/guides/from-nth.md.
package nth
