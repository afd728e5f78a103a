package replacement

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

const (
	instance = "i-0a1b2c3d4e5f60718"
	zoneA    = "us-east-1a"
	spotType = "m5.large"
)

var noon = time.Date(2026, 5, 11, 12, 0, 0, 0, time.UTC)

func hard(after time.Duration) *v1beta1.Deadline {
	return notice.At(noon.Add(after), v1beta1.DeadlineHard)
}

// poolObject is a NodePool in the form of Karpenter's API.
func poolObject(change ...func(o map[string]any)) *unstructured.Unstructured {
	o := map[string]any{
		"apiVersion": "karpenter.sh/v1", "kind": "NodePool",
		"metadata": map[string]any{
			"name": "web", "uid": "pool-uid",
			"annotations": map[string]any{annotationHash: "4711", annotationHashVersion: "v3", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
		},
		"spec": map[string]any{
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"team": "shop"}, "annotations": map[string]any{"note": "n"}},
				"spec": map[string]any{
					"expireAfter": "720h", "terminationGracePeriod": "10m",
					"nodeClassRef": map[string]any{"group": GroupAWS, "kind": KindAWS, "name": "default"},
					"taints":       []any{map[string]any{"key": "shop", "effect": "NoSchedule"}},
					"requirements": []any{
						map[string]any{"key": labelCapacityType, "operator": "In", "values": []any{"spot", "on-demand"}},
						map[string]any{"key": "example.com/tier", "operator": "In", "values": []any{"gold", "silver"}},
					},
				},
			},
		},
		"status": map[string]any{"conditions": []any{condition("Ready", "True")}},
	}
	for _, c := range change {
		c(o)
	}
	return &unstructured.Unstructured{Object: o}
}

func condition(typ, status string) map[string]any {
	return map[string]any{"type": typ, "status": status, "reason": typ, "message": "", "lastTransitionTime": "2026-05-11T11:00:00Z"}
}

func set(value any, path ...string) func(map[string]any) {
	return func(o map[string]any) {
		if err := unstructured.SetNestedField(o, value, path...); err != nil {
			panic(err)
		}
	}
}

func claimObject(name string, change ...func(o map[string]any)) *unstructured.Unstructured {
	o := map[string]any{
		"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
		"metadata": map[string]any{
			"name": name, "uid": name + "-uid",
			"labels": map[string]any{
				LabelNodePool: "web", corev1.LabelInstanceTypeStable: spotType, corev1.LabelTopologyZone: zoneA,
				labelCapacityType: "spot", "karpenter.k8s.aws/instance-family": "m5",
			},
			"annotations": map[string]any{annotationHash: "old", "karpenter.k8s.aws/tagged": "true"},
		},
		"spec":   map[string]any{"expireAfter": "24h"},
		"status": map[string]any{"providerID": "aws:///" + zoneA + "/" + instance, "nodeName": "a"},
	}
	for _, c := range change {
		c(o)
	}
	return &unstructured.Unstructured{Object: o}
}

// our is the created replacement of the instance.
func our(change ...func(*Claim)) *Claim {
	c := &Claim{
		Name: "web-lb-0a1b2c3d4e5f60718", UID: "our-uid",
		Labels:      map[string]string{LabelNodePool: "web", v1beta1.LabelReplacesInstance: instance},
		Annotations: map[string]string{v1beta1.AnnotationKarpenterDoNotDisrupt: "true", v1beta1.AnnotationInterruption: instance},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func launched(c *Claim) { c.Launched = true }
func deleting(c *Claim) { c.Deleting = true }
func initialized(c *Claim) {
	c.Launched, c.Initialized, c.NodeName = true, true, "new"
}

func mustPool(change ...func(map[string]any)) *Pool {
	p, err := ReadPool(poolObject(change...))
	if err != nil {
		panic(err)
	}
	return p
}

func mustClaim(change ...func(map[string]any)) *Claim {
	c, err := ReadClaim(claimObject("web-x7k2p", change...))
	if err != nil {
		panic(err)
	}
	return c
}

func resources(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

func pod(name, cpu string, change ...func(*corev1.Pod)) *corev1.Pod {
	controller := true
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(name),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", Controller: &controller}},
		},
		Spec: corev1.PodSpec{
			NodeName: "a", Tolerations: []corev1.Toleration{{Key: "shop", Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: resources(cpu, "256Mi")}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func ofDaemonSet(p *corev1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" }

func withVolume(p *corev1.Pod) {
	p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "v"}}}}
}

func selecting(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{key: value} }
}

func interruptedNode() *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{
		LabelNodePool: "web", corev1.LabelInstanceTypeStable: spotType, corev1.LabelTopologyZone: zoneA,
		corev1.LabelArchStable: "amd64", "example.com/tier": "silver", "team": "shop", labelCapacityType: "spot",
	}}}
}

func other(name, cpu string, change ...func(*corev1.Node)) Other {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zoneA}},
		Status: corev1.NodeStatus{
			Allocatable: resources(cpu, "8Gi"),
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("10")
	for _, c := range change {
		c(n)
	}
	return Other{Node: n}
}

// facts are those of a spot notice for a node with two pods and no room elsewhere.
func facts(change ...func(*Facts)) Facts {
	f := Facts{
		QuickFacts: QuickFacts{Now: noon, Deadline: hard(2 * time.Minute), Movable: 2, Installed: true, Karpenters: true},
		Kind:       notice.KindSpotInterruption, InstanceID: instance, Interruption: instance,
		Node: interruptedNode(), Interrupted: mustClaim(), Pool: mustPool(), Class: &Class{Ready: true},
		Pods: []*corev1.Pod{pod("web-1", "500m"), pod("web-2", "1"), pod("log", "100m", ofDaemonSet)},
		Name: Name("web", instance, 1),
	}
	for _, c := range change {
		c(&f)
	}
	return f
}
