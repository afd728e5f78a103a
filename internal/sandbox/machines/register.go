package machines

import (
	"encoding/base64"
	"fmt"
	"maps"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/internal/awsemu/ec2"
)

// Tags of an instance that say what its kubelet registers with, besides the
// flags in its user data.
const (
	TagNodeLabels = "lifeboat.dev/node-labels" // a=b,c=d
	TagNodeTaints = "lifeboat.dev/node-taints" // key=value:NoSchedule,…
)

// TagNoAgent is a tag that, with whatever value, keeps an instance from having an agent.
const TagNoAgent = "lifeboat.dev/no-agent"

// Where is the place of an instance that its own description does not tell.
type Where struct {
	Region string
	ZoneID string // such as use1-az1
}

// Node is the Node that the kubelet of an instance registers. The error says
// what is wrong with its tags or user data.
func Node(in ec2.Instance, where Where) (*corev1.Node, error) {
	labels, taints, err := registration(in)
	if err != nil {
		return nil, fmt.Errorf("instance %s: %w", in.ID, err)
	}
	maps.Copy(labels, map[string]string{
		corev1.LabelHostname:           in.PrivateDNSName,
		corev1.LabelOSStable:           "linux",
		corev1.LabelArchStable:         "amd64",
		corev1.LabelInstanceTypeStable: in.Type,
		corev1.LabelTopologyZone:       in.Zone,
		corev1.LabelTopologyRegion:     where.Region,
		"topology.k8s.aws/zone-id":     where.ZoneID,
	})
	capacity, allocatable := resources(in.Type)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: in.PrivateDNSName, Labels: labels},
		Spec:       corev1.NodeSpec{ProviderID: providerID(in), Taints: taints},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: allocatable,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: in.PrivateIP},
				{Type: corev1.NodeInternalDNS, Address: in.PrivateDNSName},
				{Type: corev1.NodeHostName, Address: in.PrivateDNSName},
			},
			NodeInfo: corev1.NodeSystemInfo{
				Architecture: "amd64", OperatingSystem: "linux", OSImage: "Amazon Linux 2023 (simulated)",
				BootID: in.BootID,
			},
		},
	}, nil
}

// providerID is how the AWS cloud provider writes an instance.
func providerID(in ec2.Instance) string { return "aws:///" + in.Zone + "/" + in.ID }

// Flags of the kubelet, as they stand in user data of every make: plain, in
// bootstrap.sh --kubelet-extra-args, or in a NodeConfig's list of flags.
var (
	labelsFlag = regexp.MustCompile(`--node-labels[= ]["']?([^\s"']+)`)
	taintsFlag = regexp.MustCompile(`--register-with-taints[= ]["']?([^\s"']+)`)
)

// registration is what the instance's tags and user data ask the kubelet to
// register with; tags overrule.
func registration(in ec2.Instance) (map[string]string, []corev1.Taint, error) {
	userData, err := base64.StdEncoding.DecodeString(in.UserData)
	if err != nil {
		return nil, nil, fmt.Errorf("reading its user data: %w", err)
	}
	labels := map[string]string{}
	// Only where it is tagged so: plain EC2 does not tell a Node how it was bought.
	if t := in.Tags["karpenter.sh/capacity-type"]; t != "" {
		labels["karpenter.sh/capacity-type"] = t
	}
	taints := map[string]corev1.Taint{}
	var order []string
	for _, text := range append(flagValues(labelsFlag, userData), in.Tags[TagNodeLabels]) {
		if err := addLabels(labels, text); err != nil {
			return nil, nil, err
		}
	}
	for _, text := range append(flagValues(taintsFlag, userData), in.Tags[TagNodeTaints]) {
		for _, item := range list(text) {
			t, err := parseTaint(item)
			if err != nil {
				return nil, nil, err
			}
			if _, seen := taints[t.Key]; !seen {
				order = append(order, t.Key)
			}
			taints[t.Key] = t
		}
	}
	var out []corev1.Taint
	for _, key := range order {
		out = append(out, taints[key])
	}
	return labels, out, nil
}

func flagValues(flag *regexp.Regexp, text []byte) []string {
	var out []string
	for _, m := range flag.FindAllSubmatch(text, -1) {
		out = append(out, string(m[1]))
	}
	return out
}

func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

func addLabels(to map[string]string, text string) error {
	for _, item := range list(text) {
		key, value, ok := strings.Cut(item, "=")
		if !ok || key == "" {
			return fmt.Errorf("node label %q: write key=value", item)
		}
		to[key] = value
	}
	return nil
}

func parseTaint(text string) (corev1.Taint, error) {
	left, effect, ok := strings.Cut(text, ":")
	key, value, _ := strings.Cut(left, "=")
	t := corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
	switch t.Effect {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		ok = false
	}
	if !ok || key == "" {
		return t, fmt.Errorf("node taint %q: write key=value:NoSchedule, PreferNoSchedule or NoExecute", text)
	}
	return t, nil
}

// resources is what a machine has, and what is left of it for pods after what
// the EKS images keep for the system (amazon-eks-ami, kubelet configuration):
// 255 MiB and 11 MiB a pod of memory, a share of each core, and 100 MiB below
// which the kubelet evicts.
func resources(typeName string) (capacity, allocatable corev1.ResourceList) {
	t, ok := ec2.FindType(typeName)
	if !ok {
		t = ec2.InstanceType{VCPU: 2, MemoryMiB: 4096, Interfaces: 3, AddressesEach: 10}
	}
	pods := t.MaxPods()
	list := func(milliCPU, mebibytes int64) corev1.ResourceList {
		return corev1.ResourceList{
			corev1.ResourceCPU:              *resource.NewMilliQuantity(milliCPU, resource.DecimalSI),
			corev1.ResourceMemory:           *resource.NewQuantity(mebibytes<<20, resource.BinarySI),
			corev1.ResourcePods:             *resource.NewQuantity(int64(pods), resource.DecimalSI),
			corev1.ResourceEphemeralStorage: *resource.NewQuantity(20<<30, resource.BinarySI),
		}
	}
	cpu, memory := int64(t.VCPU)*1000, int64(t.MemoryMiB)
	return list(cpu, memory), list(cpu-reservedCPU(t.VCPU), memory-255-11*int64(pods)-100)
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
