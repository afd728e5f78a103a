package bench

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// creators is how many writes are under way while a world is made; more are not
// faster on two cores.
const creators = 64

// nodes makes the first n nodes anew.
func (r *rig) nodes(n int) {
	r.Helper()
	r.must(r.admin.DeleteAllOf(r.Context(), &corev1.Node{}))
	r.each(n, creators, func(ctx context.Context, i int) error { return r.admin.Create(ctx, node(i)) })
}

// node has the size of one that a kubelet, Karpenter and a CSI driver have
// written to: what is kept of it in memory is most of what an idle lifeboatd
// holds.
func node(i int) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), Labels: nodeLabels(i), Annotations: map[string]string{
			"alpha.kubernetes.io/provided-node-ip": address(i), "karpenter.sh/nodepool-hash": "4013013953263463420",
			"karpenter.sh/nodepool-hash-version": "v3", "karpenter.k8s.aws/ec2nodeclass-hash": "15616957348182347621",
			"karpenter.k8s.aws/ec2nodeclass-hash-version": "v4", "node.alpha.kubernetes.io/ttl": "0",
			"csi.volume.kubernetes.io/nodeid":                        fmt.Sprintf("{\"ebs.csi.aws.com\":%q}", instance(i)),
			"volumes.kubernetes.io/controller-managed-attach-detach": "true",
		}},
		Spec: corev1.NodeSpec{ProviderID: "aws:///eu-west-1b/" + instance(i)},
		Status: corev1.NodeStatus{
			Capacity: resources("4", "16181492Ki"), Allocatable: resources("3920m", "15164660Ki"),
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: address(i)}, {Type: corev1.NodeHostName, Address: nodeName(i)},
				{Type: corev1.NodeInternalDNS, Address: nodeName(i)},
			},
			NodeInfo: corev1.NodeSystemInfo{
				MachineID: fmt.Sprintf("ec2%029x", i), SystemUUID: fmt.Sprintf("ec2ab7f1-0000-0000-0000-%012x", i), BootID: fmt.Sprintf("b7c4a1d2-0000-0000-0000-%012x", i),
				KernelVersion: "6.12.40-64.114.amzn2023.x86_64", OSImage: "Amazon Linux 2023.9.20251110", ContainerRuntimeVersion: "containerd://2.1.4",
				KubeletVersion: "v1.36.3-eks-3abbec1", OperatingSystem: "linux", Architecture: "amd64",
			},
		},
	}
	for _, c := range []struct {
		typ    corev1.NodeConditionType
		status corev1.ConditionStatus
		says   string
	}{
		{corev1.NodeMemoryPressure, corev1.ConditionFalse, "kubelet has sufficient memory available"},
		{corev1.NodeDiskPressure, corev1.ConditionFalse, "kubelet has no disk pressure"},
		{corev1.NodePIDPressure, corev1.ConditionFalse, "kubelet has sufficient PID available"},
		{corev1.NodeReady, corev1.ConditionTrue, "kubelet is posting ready status"},
	} {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
			Type: c.typ, Status: c.status, Reason: "Kubelet" + string(c.typ), Message: c.says, LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
		})
	}
	for k := range 25 { // images are most of a real node's bytes
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{
			Names: []string{fmt.Sprintf("registry.example.com/team-%d/service@sha256:%064x", k, k), fmt.Sprintf("registry.example.com/team-%d/service:v1.2.3", k)}, SizeBytes: 123456789,
		})
	}
	return n
}

func address(i int) string { return fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255) }

// nodeLabels are those of a node that Karpenter made.
func nodeLabels(i int) map[string]string {
	return map[string]string{
		corev1.LabelHostname: nodeName(i), corev1.LabelInstanceTypeStable: "m5.xlarge", corev1.LabelTopologyZone: "eu-west-1b",
		corev1.LabelTopologyRegion: region, corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux",
		"karpenter.sh/capacity-type": "spot", "karpenter.sh/nodepool": "default", "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
		"karpenter.k8s.aws/ec2nodeclass": "default", "karpenter.k8s.aws/instance-category": "m", "karpenter.k8s.aws/instance-family": "m5",
		"karpenter.k8s.aws/instance-generation": "5", "karpenter.k8s.aws/instance-size": "xlarge", "karpenter.k8s.aws/instance-cpu": "4",
		"karpenter.k8s.aws/instance-cpu-manufacturer": "intel", "karpenter.k8s.aws/instance-memory": "16384",
		"karpenter.k8s.aws/instance-network-bandwidth": "1250", "karpenter.k8s.aws/instance-ebs-bandwidth": "1150",
		"karpenter.k8s.aws/instance-hypervisor": "nitro", "karpenter.k8s.aws/instance-encryption-in-transit-supported": "false",
		"beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux",
		"k8s.io/cloud-provider-aws": "4bd0a4a4a4a4f4a4a4a4a4a4a4a4a4a4", "topology.k8s.aws/zone-id": "euw1-az2", "topology.ebs.csi.aws.com/zone": "eu-west-1b",
	}
}

func resources(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory), corev1.ResourcePods: resource.MustParse("58"),
		corev1.ResourceEphemeralStorage: resource.MustParse("83873772Ki"), "hugepages-1Gi": resource.MustParse("0"), "hugepages-2Mi": resource.MustParse("0"),
	}
}

// createPods puts pods on a node, which they never leave: there is no kubelet.
func (r *rig) createPods(ctx context.Context, on, n int) error {
	for i := range n {
		if err := r.admin.Create(ctx, pod(on, i)); err != nil {
			return err
		}
	}
	return nil
}

// runPods puts pods on a node and says that they are ready: of a pod that has
// not begun to run, the API server asks no budget when it is evicted.
func (r *rig) runPods(ctx context.Context, on, n int) error {
	now := metav1.NewTime(time.Now())
	for i := range n {
		p := pod(on, i)
		if err := r.admin.Create(ctx, p); err != nil {
			return err
		}
		p.Status = corev1.PodStatus{
			Phase: corev1.PodRunning, HostIP: address(on), PodIP: "10.128.0.1", StartTime: &now,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now}, {Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: now},
				{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: now}, {Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now},
			},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "web", Ready: true, Image: p.Spec.Containers[0].Image, ImageID: p.Spec.Containers[0].Image + "@sha256:" + fmt.Sprintf("%064x", i),
				ContainerID: fmt.Sprintf("containerd://%064x", on), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
			}},
		}
		if err := r.admin.Status().Update(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// pod is the i-th pod of a node.
func pod(on, i int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("pod-%d-%d", on, i), Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{NodeName: nodeName(on), Containers: []corev1.Container{{
			Name: "web", Image: "registry.example.com/web:v1", Env: []corev1.EnvVar{{Name: "A", Value: "b"}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi"),
			}},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/ready"}}}},
		}}},
	}
}

// clear removes all pods at once, and what was recorded.
func (r *rig) clear() {
	r.Helper()
	r.must(r.admin.DeleteAllOf(r.Context(), &corev1.Pod{}, client.InNamespace("default"), client.GracePeriodSeconds(0)))
	r.forget()
}
