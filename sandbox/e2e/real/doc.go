// Package real holds tests on real instances of what a lost node costs users: failed requests and
// preStop hooks that did not finish. Kubelets, containers, kube-proxy and the network run in
// namespaces of this machine (see docs/guides/real-nodes.md).
//
// Each test that expects no loss has a twin without one of the safeguards. The twin must lose
// something: otherwise the test could not detect a loss.
//
//	make e2e
package real
