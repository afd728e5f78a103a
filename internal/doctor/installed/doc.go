// Package installed compares the CRDs and the permissions in the cluster with those of this
// version's chart. It is pure.
package installed
