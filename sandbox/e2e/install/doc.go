// Package install holds the test of an installation as users make it: the image that `make image`
// builds, in a registry, and the packaged chart, installed by Helm itself. The pods run on real
// kubelets, in namespaces of this machine (see docs/guides/real-nodes.md).
//
//	make e2e
package install
