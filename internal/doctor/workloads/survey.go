// Package workloads finds workloads that an interruption would harm: pods that need
// longer to stop than a notice lasts, PodDisruptionBudgets that never allow an
// eviction, and pods without a controller that recreates them.
//
// A [Survey] receives the objects of a cluster one at a time, and stores a few
// numbers per workload. A cluster of a hundred thousand pods needs a few megabytes
// and yields a short report. It is pure; [Scan] feeds it from a cluster, page by
// page.
package workloads

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Options configure the survey. Zero values mean the defaults.
type Options struct {
	// Notice is the time from a spot interruption notice to the end of the instance.
	// The default is 2 minutes (EC2 User Guide, "Spot Instance interruption
	// notices").
	Notice time.Duration
	// Margin is the part of it that is reserved. The default is 10 s, as in
	// lifeboatd.
	Margin time.Duration
	// Spot reports whether a node is a spot instance. The default is [IsSpot].
	Spot func(*corev1.Node) bool
	// Governed reports whether an InterruptionPolicy selects a node. Without it, the check
	// of stateful workloads is left out.
	Governed func(*corev1.Node) bool
	// Deregisters reports whether the policy of a node waits for load balancers. Without it, the
	// check of targets by address is left out.
	Deregisters func(*corev1.Node) bool
	// Most is the number of findings of one kind before the others are summarized.
	// The default is 10.
	Most int
}

// Survey collects the relevant data of a cluster. Nodes, budgets, Services, Deployments and
// StatefulSets must be added before pods.
type Survey struct {
	o         Options
	nodes     int
	spot      map[string]bool
	budgets   map[string][]*budget // by namespace
	sets      map[owner]replicas
	workloads map[owner]*workload
	overlaps  map[string]*overlap
	pods      int
	// governed are the nodes that a policy selects, services those of a namespace, and
	// notReady the Services that send to pods that are not ready.
	governed           map[string]bool
	deregisters        map[string]bool // nodes whose policy waits for load balancers
	services           map[string][]service
	notReady, webhooks []string
	// noBudgets and noDeployments are true if these could not be read.
	noBudgets, noDeployments bool
}

// New returns an empty survey.
func New(o Options) *Survey {
	if o.Notice <= 0 {
		o.Notice = 2 * time.Minute
	}
	if o.Margin <= 0 {
		o.Margin = 10 * time.Second
	}
	if o.Spot == nil {
		o.Spot = IsSpot
	}
	if o.Most <= 0 {
		o.Most = 10
	}
	return &Survey{
		o: o, spot: map[string]bool{}, budgets: map[string][]*budget{}, sets: map[owner]replicas{},
		workloads: map[owner]*workload{}, overlaps: map[string]*overlap{},
		governed: map[string]bool{}, deregisters: map[string]bool{}, services: map[string][]service{},
	}
}

// usable is the time that a pod on a spot node has to stop.
func (s *Survey) usable() time.Duration { return s.o.Notice - s.o.Margin }

// owner names a workload: the object to edit in order to change its pods.
type owner struct{ kind, namespace, name string }

// String returns the workload's name for findings.
func (o owner) String() string {
	if o.kind == kindBare {
		return "pods of namespace " + o.namespace + " without an owner"
	}
	return strings.ToLower(o.kind) + " " + o.namespace + "/" + o.name
}

// ref returns the workload's name in kubectl's format.
func (o owner) ref() string { return strings.ToLower(o.kind) + " " + o.name }

const (
	kindDeployment  = "Deployment"
	kindStatefulSet = "StatefulSet"
	// kindBare stands for all pods of a namespace without an owner.
	kindBare = ""
)

// replicas is the relevant part of the spec of a Deployment or StatefulSet.
type replicas struct {
	desired  int32
	recreate bool
}

// budget is an added PodDisruptionBudget.
type budget struct {
	policyv1.PodDisruptionBudget

	selector labels.Selector // nil if it is invalid
}

// overlap is a set of budgets that share pods.
type overlap struct {
	namespace string
	names     []string
	pods      int
	example   string
}

// workload is the stored data about all pods of an owner.
type workload struct {
	pods, onSpot int
	example      string
	// grace is the longest grace period of the pods on spot nodes.
	grace time.Duration
	// hookSleep is the duration of a preStop hook whose pod has only hookGrace.
	hookSleep, hookGrace time.Duration
	held                 string // the annotation that protects pods on spot nodes
	heldPods             int
	tolerates            bool
	keeps                bool // data in an emptyDir, on a spot node
	// byAddress is set for pods that are targets by address, and have no preStop hook, on nodes whose
	// policy waits for load balancers.
	byAddress bool
	// What the pods on spot nodes have: a Service, a preStop hook, a readiness probe, a
	// budget, and volumes on a node that no policy selects.
	served, preStop, readiness, budgeted, ungoverned bool
}

// IsSpot reports whether a node is a spot instance, based on its labels: those of
// Karpenter, of EKS's managed node groups, and of eksctl, kOps and common guides.
func IsSpot(node *corev1.Node) bool {
	for _, key := range []string{
		"karpenter.sh/capacity-type", "eks.amazonaws.com/capacityType", "node.kubernetes.io/lifecycle",
		"node-lifecycle", "lifecycle", "alpha.eksctl.io/instance-lifecycle",
	} {
		switch strings.ToLower(node.Labels[key]) {
		case "spot", "ec2spot":
			return true
		}
	}
	_, worker := node.Labels["node-role.kubernetes.io/spot-worker"]
	return worker
}

// AddNode adds a node.
func (s *Survey) AddNode(n *corev1.Node) {
	s.nodes++
	if s.o.Spot(n) {
		s.spot[n.Name] = true
	}
	s.governed[n.Name] = s.o.Governed != nil && s.o.Governed(n)
	s.deregisters[n.Name] = s.o.Deregisters != nil && s.o.Deregisters(n)
}

// AddBudget adds a PodDisruptionBudget.
func (s *Survey) AddBudget(p *policyv1.PodDisruptionBudget) {
	selector, err := metav1.LabelSelectorAsSelector(p.Spec.Selector)
	if err != nil {
		selector = nil
	}
	kept := *p // a copy, so that the page can be freed
	kept.ManagedFields = nil
	s.budgets[p.Namespace] = append(s.budgets[p.Namespace], &budget{PodDisruptionBudget: kept, selector: selector})
}

// AddDeployment adds a Deployment.
func (s *Survey) AddDeployment(d *appsv1.Deployment) {
	s.sets[owner{kindDeployment, d.Namespace, d.Name}] = replicas{
		desired: orOne(d.Spec.Replicas), recreate: d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType,
	}
}

// AddStatefulSet adds a StatefulSet.
func (s *Survey) AddStatefulSet(set *appsv1.StatefulSet) {
	s.sets[owner{kindStatefulSet, set.Namespace, set.Name}] = replicas{desired: orOne(set.Spec.Replicas)}
}

// orOne applies the API server's default.
func orOne(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}
