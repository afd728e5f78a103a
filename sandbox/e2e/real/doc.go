// Package real holds tests of what people lose when a node goes: requests and
// preStop hooks. They run on real instances: kubelets, containers, kube-proxy
// and a network, in namespaces of this machine (see docs/guides/real-nodes.md).
//
// Every test that shows that nothing is lost has a twin in which one thing is
// missing, and which has to show that something is: a rig that cannot lose
// requests proves nothing.
//
//	make e2e
package real
