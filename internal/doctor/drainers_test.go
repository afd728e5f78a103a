package doctor

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// The labels and images are those of the programs' own charts and manifests.
func TestOtherDrainers(t *testing.T) {
	workload := func(key, value, image string) Workload {
		return WorkloadOf("deployment x/y", map[string]string{key: value}, corev1.PodSpec{Containers: []corev1.Container{{Image: image}}})
	}
	for name, tc := range map[string]struct {
		workload Workload
		id       string
	}{
		"kured's chart":                {workload("app.kubernetes.io/name", "kured", "ghcr.example/kubereboot/kured:1.17.1"), idKuredRuns},
		"kured's old manifest":         {workload("name", "kured", "docker.example/weaveworks/kured:1.9.0"), idKuredRuns},
		"kured in a mirror":            {workload("a", "b", "mirror.example:5000/kubereboot/kured@sha256:00"), idKuredRuns},
		"Ocean's chart":                {workload("app.kubernetes.io/name", "ocean-kubernetes-controller", "r/x/spotinst-kubernetes-controller:2"), idOceanRuns},
		"Ocean's old controller":       {workload("k8s-app", "spotinst-kubernetes-cluster-controller", "spotinst/kubernetes-cluster-controller:1.0.97"), idOceanRuns},
		"the descheduler's chart":      {workload("app.kubernetes.io/name", "descheduler", "r/descheduler/descheduler:v0.33.0"), idDeschedulerRuns},
		"the autoscaler's chart":       {workload("app.kubernetes.io/name", "aws-cluster-autoscaler", "r/autoscaling/cluster-autoscaler:v1.33.0"), idAutoscalerRuns},
		"the autoscaler's manifest":    {workload("app", "cluster-autoscaler", "r/autoscaling/cluster-autoscaler:v1.33.0"), idAutoscalerRuns},
		"a web server":                 {workload("app", "web", "nginx"), ""},
		"a name that only contains it": {workload("app", "not-kured", "example/not-kured:1"), ""},
	} {
		id := ""
		for _, f := range recognize([]Workload{workload("app", "other", "x"), tc.workload}) {
			id += f.ID
			if f.Problem == "" || f.Fix == "" || f.Object != "deployment x/y" {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if id != tc.id {
			t.Errorf("%s: %q, want %q", name, id, tc.id)
		}
	}
}

func TestNodesThatEKSDrains(t *testing.T) {
	node := func(labels map[string]string) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
	}
	e := &diagnosis{Snapshot: snapshot.Snapshot{}, cluster: Cluster{Nodes: []corev1.Node{
		node(map[string]string{"eks.amazonaws.com/nodegroup": "a", "eks.amazonaws.com/capacityType": "SPOT"}),
		node(map[string]string{"eks.amazonaws.com/nodegroup": "b", "eks.amazonaws.com/capacityType": "ON_DEMAND"}),
		node(map[string]string{"eks.amazonaws.com/compute-type": "auto"}),
		node(map[string]string{"eks.amazonaws.com/compute-type": "auto"}),
		node(nil),
	}}}
	var got []string
	for _, f := range checkDrainers(e) {
		got = append(got, string(f.Severity)+" "+f.ID+" "+f.Object)
	}
	want := []string{"info managed-spot-nodes 1 spot node of managed node groups", "info auto-mode-nodes 2 nodes of EKS Auto Mode"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Karpenter polls DescribeInstanceStatus from v1.12.0 on.
func TestKarpenterPollsFromItsVersionOn(t *testing.T) {
	for version, polling := range map[string]bool{
		"1.11.9": false, "v1.11.0": false, "0.37.0": false, "1.12.0": true, "v1.12.1": true, "1.14.1": true, "2.0.0": true, "": true,
	} {
		e := &diagnosis{cluster: Cluster{Karpenter: &Tool{Object: "deployment kube-system/karpenter", Version: version}}}
		if got := finding.Has(checkTools(e), finding.Warning); got != polling {
			t.Errorf("version %q: %t", version, got)
		}
	}
}

// Karpenter ends nodes of Capacity Blocks from v1.6 on, and follows zonal shifts from v1.12 on.
func TestKarpenterActsWithoutMessage(t *testing.T) {
	node := func(reservation string) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"karpenter.k8s.aws/capacity-reservation-type": reservation}}}
	}
	blocks := []corev1.Node{node("capacity-block"), node("capacity-block"), node("default"), {}}
	for name, tc := range map[string]struct {
		karpenter *Tool
		nodes     []corev1.Node
		guard     bool
		want      []string
	}{
		"blocks, v1.5":           {&Tool{Version: "1.5.9"}, blocks, false, nil},
		"blocks, v1.6":           {&Tool{Version: "1.6.0"}, blocks, false, []string{"karpenter-capacity-blocks 2 nodes of Capacity Blocks"}},
		"blocks, v1.6, guarded":  {&Tool{Version: "1.6.0"}, blocks, true, []string{"karpenter-capacity-blocks 2 nodes of Capacity Blocks"}},
		"another reservation":    {&Tool{Version: "1.14.1"}, []corev1.Node{node("default")}, false, nil},
		"blocks, no Karpenter":   {nil, blocks, false, nil},
		"zonal shift, v1.12":     {&Tool{Object: "deployment x/y", Version: "1.12.0", ZonalShift: true}, nil, false, []string{"karpenter-zonal-shift deployment x/y"}},
		"zonal shift, v1.11":     {&Tool{Version: "1.11.0", ZonalShift: true}, nil, false, nil},
		"zonal shift turned off": {&Tool{Version: "1.14.1"}, nil, false, nil},
	} {
		var got []string
		for _, f := range checkKarpenter(&diagnosis{cluster: Cluster{Karpenter: tc.karpenter, Nodes: tc.nodes, Guard: tc.guard}}) {
			got = append(got, f.ID+" "+f.Object)
			if f.Severity != finding.Info || f.Problem == "" || strings.Contains(f.Fix, "karpenter.guard.enabled") != (f.ID == idKarpenterBlocks && !tc.guard) {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestNTHModesDiffer(t *testing.T) {
	for object, says := range map[string]string{
		"daemonset kube-system/nth":  "polls the metadata of each instance",
		"deployment kube-system/nth": "reads a queue",
	} {
		all := checkTools(&diagnosis{cluster: Cluster{NTH: &Tool{Object: object}}})
		if len(all) != 1 || !strings.Contains(all[0].Problem, says) {
			t.Errorf("%s: %+v", object, all)
		}
	}
}
