package doctor

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// Workload is the part of a Deployment or DaemonSet by which programs are recognized.
type Workload struct {
	// Object is its kind, namespace and name.
	Object string
	// Name is its label app.kubernetes.io/name, or k8s-app.
	Name   string
	Images []string
}

// drainer is a program that evicts pods or removes nodes for reasons of its own.
type drainer struct {
	id, name string
	severity finding.Severity
	// names are the values of the name label of its chart or manifest, and images the
	// names of its images without registry.
	names, images []string
	problem, fix  string
}

// drainers are known by their published charts and images. Sources: the charts kured
// (kubereboot/charts), ocean-kubernetes-controller (spotinst/charts), descheduler
// (kubernetes-sigs/descheduler) and cluster-autoscaler (kubernetes/autoscaler).
var drainers = []drainer{
	{
		id: idKuredRuns, name: "kured", severity: finding.Info,
		names: []string{"kured"}, images: []string{"kubereboot/kured", "weaveworks/kured"},
		problem: "kured drains and reboots nodes when the operating system asks for it. It receives no notice from AWS, and does not know that another node is interrupted",
		fix:     "limit it to a window (--start-time, --end-time) and --concurrency=1; PodDisruptionBudgets hold for both programs",
	},
	{
		id: idOceanRuns, name: "the controller of Spot Ocean", severity: finding.Warning,
		names:   []string{"ocean-kubernetes-controller", "ocean-controller", "spotinst-kubernetes-cluster-controller"},
		images:  []string{"spotinst/kubernetes-cluster-controller", "spotinst-kubernetes-controller", "kubernetes-cluster-controller"},
		problem: "Spot Ocean replaces its instances on predictions of its own, often before AWS sends a notice, and drains their nodes: two programs evict the same pods",
		fix:     "leave its nodes to it: an InterruptionPolicy with action Ignore for matchExpressions [{key: spotinst.io/node-lifecycle, operator: Exists}]",
	},
	{
		id: idDeschedulerRuns, name: "the descheduler", severity: finding.Warning,
		names: []string{"descheduler"}, images: []string{"descheduler/descheduler"},
		problem: "its plugin RemovePodsViolatingNodeTaints evicts all pods of a node with a NoSchedule taint, and an interrupted node has the taint " +
			corev1.TaintNodeUnschedulable + ", as it is cordoned: they leave without Lifeboat's order, hooks and approvals",
		fix: `add to the arguments of that plugin: excludedTaints: ["` + corev1.TaintNodeUnschedulable + `"]; without the plugin nothing is to do`,
	},
	{
		id: idAutoscalerRuns, name: "the Cluster Autoscaler", severity: finding.Info,
		names: []string{"cluster-autoscaler", "aws-cluster-autoscaler"}, images: []string{"autoscaling/cluster-autoscaler", "k8s-artifacts-prod/autoscaling/cluster-autoscaler"},
		problem: "it removes underused nodes, and receives no notice from AWS. It launches a successor only when pods are pending, which is after they left the interrupted node",
		fix:     "keep --scale-down-unneeded-time above 2m; for successors before the drain, use an Auto Scaling group with replacement: Before in the policy",
	},
}

// recognize returns the drainers among the workloads, with the workload that runs each.
func recognize(all []Workload) []finding.Finding {
	var found []finding.Finding
	for _, d := range drainers {
		i := slices.IndexFunc(all, d.is)
		if i < 0 {
			continue
		}
		found = append(found, finding.Finding{
			Severity: d.severity, ID: d.id, Object: all[i].Object, Problem: d.name + " runs in this cluster: " + d.problem, Fix: d.fix,
		})
	}
	return found
}

func (d drainer) is(w Workload) bool {
	return slices.Contains(d.names, w.Name) || slices.ContainsFunc(w.Images, func(image string) bool {
		return slices.ContainsFunc(d.images, func(known string) bool {
			return repository(image) == known || strings.HasSuffix(repository(image), "/"+known)
		})
	})
}

// repository returns an image without tag and digest.
func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
		image = image[:i]
	}
	return image
}

// checkDrainers looks for programs that drain for other reasons, and for nodes that EKS
// drains itself.
func checkDrainers(e *diagnosis) []finding.Finding {
	all := append(recognize(e.cluster.Workloads), oldKOps(e.cluster.Workloads, e.cluster.Groups)...)
	managed, auto := 0, 0
	for i := range e.cluster.Nodes {
		switch labels := e.cluster.Nodes[i].Labels; {
		case labels["eks.amazonaws.com/compute-type"] == "auto":
			auto++
		case labels["eks.amazonaws.com/nodegroup"] != "" && labels["eks.amazonaws.com/capacityType"] == "SPOT":
			managed++
		}
	}
	if managed > 0 { // EKS User Guide, "Managed node group capacity types"
		all = append(all, finding.Finding{
			Severity: finding.Info, ID: idManagedSpotNodes, Object: someNodesOf(managed, "spot node", "managed node groups"),
			Problem: "EKS drains them too: on a rebalance recommendation as soon as a successor is Ready, on a spot interruption at once. The first one that receives the notice evicts, and a policy that lets pods wait does not stop EKS",
			Fix:     "nothing to do for the built-in defaults; for approvals, surges or hooks use Karpenter or Auto Scaling groups of your own",
		})
	}
	if auto > 0 { // EKS User Guide, "EKS Auto Mode"
		all = append(all, finding.Finding{
			Severity: finding.Info, ID: idAutoModeNodes, Object: someNodesOf(auto, "node", "EKS Auto Mode"),
			Problem: "EKS handles their interruptions with a Karpenter of its own, which receives the spot interruption too and has no setting to stop this: two programs drain these nodes",
			Fix:     "leave them to EKS: an InterruptionPolicy with action Ignore for matchLabels {eks.amazonaws.com/compute-type: auto}",
		})
	}
	return all
}

func someNodesOf(n int, what, of string) string {
	if n > 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s of %s", n, what, of)
}

// WorkloadOf describes a Deployment or DaemonSet.
func WorkloadOf(object string, labels map[string]string, spec corev1.PodSpec) Workload {
	w := Workload{Object: object, Name: labels["app.kubernetes.io/name"]}
	for _, key := range []string{"k8s-app", "app"} {
		if w.Name == "" {
			w.Name = labels[key]
		}
	}
	for _, c := range spec.Containers {
		w.Images = append(w.Images, c.Image)
	}
	return w
}
