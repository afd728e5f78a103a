package machines

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// Tags with labels and taints of an instance's Node, in addition to the flags in its user data.
const (
	TagNodeLabels = "lifeboat.dev/node-labels" // a=b,c=d
	TagNodeTaints = "lifeboat.dev/node-taints" // key=value:NoSchedule,…
)

// TagNoAgent keeps an instance without an agent, whatever its value.
const TagNoAgent = "lifeboat.dev/no-agent"

// TagKeepNode keeps the Node of a terminated instance, whatever its value, as if no cloud controller
// manager deleted it.
const TagKeepNode = "lifeboat.dev/keep-node"

// Where is the location of an instance, which its description lacks.
type Where struct {
	Region string
	ZoneID string // such as use1-az1
}

// Node returns the Node that the kubelet of an instance registers. The error is about its tags or
// user data.
func Node(in ec2.Instance, where Where) (*corev1.Node, error) {
	k, err := registration(in)
	if err != nil {
		return nil, fmt.Errorf("instance %s: %w", in.ID, err)
	}
	if _, err := BootTime(in, 0); err != nil {
		return nil, err
	}
	maps.Copy(k.labels, map[string]string{
		corev1.LabelHostname:           in.PrivateDNSName,
		corev1.LabelOSStable:           "linux",
		corev1.LabelArchStable:         architecture(in),
		corev1.LabelInstanceTypeStable: in.Type,
		corev1.LabelTopologyZone:       in.Zone,
		corev1.LabelTopologyRegion:     where.Region,
		"topology.k8s.aws/zone-id":     where.ZoneID,
	})
	capacity, allocatable := k.resources(in.Type)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: in.PrivateDNSName, Labels: k.labels,
			// Every kubelet sets it by default; else no controller attaches volumes to the node.
			Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
		},
		Spec: corev1.NodeSpec{ProviderID: providerID(in), Taints: k.taints},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: allocatable,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: in.PrivateIP},
				{Type: corev1.NodeInternalDNS, Address: in.PrivateDNSName},
				{Type: corev1.NodeHostName, Address: in.PrivateDNSName},
			},
			NodeInfo: corev1.NodeSystemInfo{
				Architecture: architecture(in), OperatingSystem: "linux", OSImage: "Amazon Linux 2023 (simulated)",
				BootID: in.BootID,
			},
		},
	}, nil
}

// architecture returns Go's and Kubernetes' name for the processor.
func architecture(in ec2.Instance) string {
	if in.Architecture() == ec2.ARM {
		return "arm64"
	}
	return "amd64"
}

// providerID formats an instance as the AWS cloud provider does.
func providerID(in ec2.Instance) string { return "aws:///" + in.Zone + "/" + in.ID }

// registration returns the kubelet's settings from the instance's user data and tags; tags take
// precedence.
func registration(in ec2.Instance) (kubelet, error) {
	k, err := readUserData(in.UserData)
	if err != nil {
		return k, err
	}
	// Plain EC2 does not put the purchase option on a Node, so a tag must request it.
	if t := in.Tags["karpenter.sh/capacity-type"]; t != "" {
		k.labels["karpenter.sh/capacity-type"] = t
	}
	if err := k.addLabels(in.Tags[TagNodeLabels]); err != nil {
		return k, err
	}
	return k, k.addTaints(in.Tags[TagNodeTaints])
}

// resources returns a machine's capacity and what the kubelet leaves allocatable. The default
// reservation is that of the EKS images (amazon-eks-ami, kubelet configuration): memory of 255 MiB
// plus 11 MiB a pod, a share of each core, and an eviction threshold of 100 MiB.
func (k kubelet) resources(typeName string) (capacity, allocatable corev1.ResourceList) {
	t, ok := ec2.FindType(typeName)
	if !ok {
		t = ec2.InstanceType{VCPU: 2, MemoryMiB: 4096, Interfaces: 3, AddressesEach: 10}
	}
	pods := int64(t.MaxPods())
	reserved := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(reservedCPU(t.VCPU), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity((255+11*pods)<<20, resource.BinarySI),
	}
	maps.Copy(reserved, k.kubeReserved)
	if k.maxPods > 0 {
		pods = int64(k.maxPods)
	}
	capacity = corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(int64(t.VCPU), resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(int64(t.MemoryMiB)<<20, resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(pods, resource.DecimalSI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(20<<30, resource.BinarySI),
	}
	evict := corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(100<<20, resource.BinarySI)}
	allocatable = capacity.DeepCopy()
	for _, kept := range []corev1.ResourceList{reserved, k.systemReserved, evict} {
		for name, quantity := range kept {
			left, ok := allocatable[name]
			if !ok {
				continue
			}
			if left.Sub(quantity); left.Sign() < 0 {
				left = resource.Quantity{Format: left.Format}
			}
			allocatable[name] = left
		}
	}
	return capacity, allocatable
}

// reservedCPU in thousandths: 6 % of the first core, 1 % of the second, half a
// per cent of the next two, a quarter of the rest.
func reservedCPU(cores int) int64 {
	quarters := 0 // of a thousandth
	for i := range cores {
		switch {
		case i == 0:
			quarters += 240
		case i == 1:
			quarters += 40
		case i < 4:
			quarters += 20
		default:
			quarters += 10
		}
	}
	return int64(quarters / 4)
}
