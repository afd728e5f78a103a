// Package instances runs EC2 instances that are real: each is a set of namespaces
// of this machine with a containerd, a kubelet and a kube-proxy of its own, all on
// their usual paths and ports.
//
// An instance boots in a second or two, and dies as by a power cut: its link goes
// down, so that nothing it still says is heard, and its process 1 is killed, with
// which the kernel ends all that runs in it. Its memory is its disk. One that a user
// terminates or stops shuts down first: its kubelet stops the pods, told by a stand-in for
// systemd-logind (modules/containerd/instance/login1).
//
// The network is a [VPC] of its own, in a namespace that is not visible elsewhere; no port,
// address or firewall rule of this machine is touched. What a sandbox that was
// killed leaves behind are empty cgroup directories, which [Sweep] removes.
//
// It needs Linux, root, and some programs; [Missing] says what is not there. It
// was tried with cgroups v1 and the hybrid; a machine with cgroups v2 alone is
// provided for by what the kernel documents, and was not tried.
package instances
