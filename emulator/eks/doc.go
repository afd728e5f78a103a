// Package eks emulates the part of Amazon EKS that tells of clusters. It makes none:
// the program that creates a cluster with the emulator registers it in [State].
package eks
