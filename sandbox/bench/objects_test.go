package bench

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func nodeName(i int) string {
	return fmt.Sprintf("ip-10-%d-%d-%d.ec2.internal", i>>16, i>>8&255, i&255)
}

// node is the i-th node, of the size that the kubelet, Karpenter and a CSI driver give it: the
// nodes are most of an idle lifeboatd's memory. Its owner is its NodeClaim, as Karpenter sets it.
func node(i int, claim types.UID) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), Labels: nodeLabels(i), Annotations: map[string]string{
			"alpha.kubernetes.io/provided-node-ip": address(i), "karpenter.sh/nodepool-hash": "4013013953263463420",
			"karpenter.sh/nodepool-hash-version": "v3", "karpenter.k8s.aws/ec2nodeclass-hash": "15616957348182347621",
			"karpenter.k8s.aws/ec2nodeclass-hash-version": "v4", "node.alpha.kubernetes.io/ttl": "0",
			"csi.volume.kubernetes.io/nodeid":                        fmt.Sprintf("{\"ebs.csi.aws.com\":%q}", instance(i)),
			"volumes.kubernetes.io/controller-managed-attach-detach": "true",
		}, OwnerReferences: []metav1.OwnerReference{{APIVersion: karpenterAPI, Kind: "NodeClaim", Name: claimName(i), UID: claim, BlockOwnerDeletion: new(true)}}},
		Spec: corev1.NodeSpec{ProviderID: providerID(i)},
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
	for k := range 25 { // images make up most of a real node's bytes
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{
			Names: []string{fmt.Sprintf("registry.example.com/team-%d/service@sha256:%064x", k, k), fmt.Sprintf("registry.example.com/team-%d/service:v1.2.3", k)}, SizeBytes: 123456789,
		})
	}
	return n
}

func providerID(i int) string { return "aws:///eu-west-1b/" + instance(i) }
func address(i int) string    { return fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255) }

// nodeLabels are those of a node that Karpenter launched.
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

const karpenterAPI = "karpenter.sh/v1"

func claimName(i int) string { return fmt.Sprintf("default-%05x", i) }

// nodeClaim is the i-th NodeClaim as Karpenter creates it, without the finalizer: Karpenter does
// not run and would not remove it.
func nodeClaim(i int, pool types.UID) *unstructured.Unstructured {
	labels := map[string]any{}
	for key, value := range nodeLabels(i) {
		if key != corev1.LabelHostname && key != "karpenter.sh/registered" && key != "karpenter.sh/initialized" {
			labels[key] = value
		}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": karpenterAPI, "kind": "NodeClaim",
		"metadata": map[string]any{
			"name": claimName(i), "labels": labels,
			"annotations": map[string]any{
				"karpenter.sh/nodepool-hash": "4013013953263463420", "karpenter.sh/nodepool-hash-version": "v3",
				"karpenter.k8s.aws/ec2nodeclass-hash": "15616957348182347621", "karpenter.k8s.aws/ec2nodeclass-hash-version": "v4",
			},
			"ownerReferences": []any{map[string]any{"apiVersion": karpenterAPI, "kind": "NodePool", "name": "default", "uid": string(pool), "blockOwnerDeletion": true}},
		},
		"spec": map[string]any{
			"expireAfter":  "720h",
			"nodeClassRef": map[string]any{"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
			"requirements": []any{
				map[string]any{"key": "karpenter.sh/capacity-type", "operator": "In", "values": []any{"spot"}},
				map[string]any{"key": corev1.LabelInstanceTypeStable, "operator": "In", "values": []any{"m5.xlarge", "m5a.xlarge", "m6i.xlarge", "c5.2xlarge", "r5.xlarge"}},
				map[string]any{"key": "karpenter.sh/nodepool", "operator": "In", "values": []any{"default"}},
			},
			"resources": map[string]any{"requests": map[string]any{"cpu": "1150m", "memory": "1280Mi", "pods": "14"}},
		},
	}}
}

// nodeClaimStatus is the status of a NodeClaim whose node runs.
func nodeClaimStatus(i int) map[string]any {
	return map[string]any{
		"providerID": providerID(i), "nodeName": nodeName(i), "imageID": "ami-0123456789abcdef0",
		"capacity":    map[string]any{"cpu": "4", "memory": "16181492Ki", "pods": "58"},
		"allocatable": map[string]any{"cpu": "3920m", "memory": "15164660Ki", "pods": "58"},
		"conditions":  conditions("True", "Launched", "Registered", "Initialized", "Ready"),
	}
}

func conditions(status string, types ...string) []any {
	var all []any
	for _, t := range types {
		all = append(all, map[string]any{
			"type": t, "status": status, "reason": t, "message": "", "observedGeneration": int64(1), "lastTransitionTime": stamp(time.Now()),
		})
	}
	return all
}

// appsPerNamespace is how many Deployments share a namespace. The API server lists the
// namespace's PodDisruptionBudgets for each eviction.
const appsPerNamespace = 5

func namespace(i int) string { return fmt.Sprintf("team-%d", i) }
func namespaceOf(app int) string {
	return namespace(app / appsPerNamespace)
}

func appLabels(app int) map[string]string {
	return map[string]string{"app.kubernetes.io/name": appName(app), "app.kubernetes.io/instance": appName(app), "pod-template-hash": "6c9fd7d8b5"}
}

// The objects of an app. No controller runs that would create pods from them.

func deployment(app int, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespaceOf(app), Name: appName(app), Labels: appLabels(app)},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: appLabels(app)},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: appLabels(app)}, Spec: podSpec()},
		},
	}
}

func replicaSet(app int, d *appsv1.Deployment) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: replicaSetName(app), Labels: d.Labels, OwnerReferences: ownedBy("Deployment", d.Name, d.UID)},
		Spec:       appsv1.ReplicaSetSpec{Replicas: d.Spec.Replicas, Selector: d.Spec.Selector, Template: d.Spec.Template},
	}
}

func replicaSetName(app int) string { return appName(app) + "-6c9fd7d8b5" }

func ownedBy(kind, name string, uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: uid, Controller: new(true), BlockOwnerDeletion: new(true)}}
}

func budget(app int) *policyv1.PodDisruptionBudget {
	all := intstr.FromString("100%")
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespaceOf(app), Name: appName(app)},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &all, Selector: &metav1.LabelSelector{MatchLabels: appLabels(app)}},
	}
}

// budgetStatus is what the disruption controller would write: all pods of the app may be disrupted.
func budgetStatus(pods int32) policyv1.PodDisruptionBudgetStatus {
	return policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DisruptionsAllowed: pods, CurrentHealthy: pods, ExpectedPods: pods}
}

// podName is the name of the i-th pod of a node.
func podName(on, i int) string { return fmt.Sprintf("app-6c9fd7d8b5-%d-%d", on, i) }

func pod(on, i, app int, owner types.UID) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespaceOf(app), Name: podName(on, i), Labels: appLabels(app), OwnerReferences: ownedBy("ReplicaSet", replicaSetName(app), owner),
		},
		Spec: podSpec(),
	}
	p.Spec.NodeName = nodeName(on)
	return p
}

// podSpec has the default grace of 30 seconds.
func podSpec() corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{
		Name: "web", Image: "registry.example.com/web:v1", Env: []corev1.EnvVar{{Name: "A", Value: "b"}},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi"),
		}},
		ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/ready"}}}},
	}}}
}

// running is the status of a running, ready pod. For a pod that does not run yet, the API server
// evicts without checking its PodDisruptionBudget.
func running(p *corev1.Pod, on int) corev1.PodStatus {
	now := metav1.Now()
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, HostIP: address(on), PodIP: "10.128.0.1", StartTime: &now, ObservedGeneration: 1,
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "web", Ready: true, Image: p.Spec.Containers[0].Image, ImageID: p.Spec.Containers[0].Image + "@sha256:" + fmt.Sprintf("%064x", on),
			ContainerID: fmt.Sprintf("containerd://%064x", on), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		}},
	}
	for _, t := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	return status
}
