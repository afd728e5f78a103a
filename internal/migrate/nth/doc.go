// Package nth converts the settings of AWS Node Termination Handler to an
// InterruptionPolicy. The input is the values of its Helm chart, or its Deployment or
// DaemonSet. Settings that need no policy, and settings without an equivalent, become
// findings. The package is pure: texts in, text and findings out.
//
// The meaning of each flag is in the handler's README and its pkg/config;
// docs/guides/from-nth.md describes the conversion.
package nth
