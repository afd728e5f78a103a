// Package instances runs real EC2 instances: each is a set of namespaces of this machine with its
// own containerd, kubelet and kube-proxy, on their usual paths and ports.
//
// An instance boots in one or two seconds. A power cut takes its link down, so nothing that it
// still sends arrives, and kills its process 1; the kernel then ends all its processes. Its disk is
// memory. When a user terminates or stops it, it shuts down first: a substitute for systemd-logind
// (modules/containerd/instance/login1) notifies its kubelet, which stops the pods.
//
// The network is a [VPC] in a namespace that is not visible from outside. It uses no port, address
// or firewall rule of this machine. A killed sandbox leaves only empty cgroup directories, which
// [Sweep] removes.
//
// It needs Linux, root and some programs; [Missing] lists what is absent. It was tested with
// cgroups v1 and with hybrid cgroups. Support for cgroups v2 alone follows the kernel's
// documentation and is untested.
package instances
