// Package eks emulates the part of Amazon EKS that tells of clusters. It makes none:
// whoever runs a cluster beside the emulator tells [State] of it.
package eks
