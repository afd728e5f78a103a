// Package readiness finds workloads that would come to harm in an interruption:
// pods that take longer to stop than a notice lasts, PodDisruptionBudgets that
// never let anybody go, pods that nobody recreates.
//
// A [Survey] is fed with what a cluster holds, one object at a time, and keeps
// no more than a few numbers for each workload, so that a cluster of a hundred
// thousand pods needs a few megabytes and gives a short answer. It is pure;
// [Look] feeds it from a cluster, page by page.
package readiness

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Options say what is expected of a workload. Zero values are the defaults.
type Options struct {
	// Notice is the time from a spot interruption notice to the end of the
	// instance; 2 minutes (EC2 User Guide, "Spot Instance interruption notices").
	Notice time.Duration
	// Margin is what of it is kept in reserve; 10 s, as lifeboatd does.
	Margin time.Duration
	// Spot tells whether a node is a spot instance; nil: [IsSpot].
	Spot func(*corev1.Node) bool
	// Most is how many findings of one sort are told one by one; 10.
	Most int
}

// Survey gathers what matters of a cluster. Nodes, budgets, Deployments and
// StatefulSets have to be added before pods.
type Survey struct {
	o         Options
	nodes     int
	spot      map[string]bool
	budgets   map[string][]*budget // by namespace
	sets      map[owner]replicas
	workloads map[owner]*workload
	overlaps  map[string]*overlap
	pods      int
}

// New returns a survey of nothing yet.
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
	}
}

// usable is how long a pod on a spot node may take to stop.
func (s *Survey) usable() time.Duration { return s.o.Notice - s.o.Margin }

// owner names a workload: what is to be changed to change its pods.
type owner struct{ kind, namespace, name string }

// String is the workload as findings name it.
func (o owner) String() string {
	if o.kind == kindBare {
		return "pods of namespace " + o.namespace + " without an owner"
	}
	return strings.ToLower(o.kind) + " " + o.namespace + "/" + o.name
}

// ref names it as kubectl does.
func (o owner) ref() string { return strings.ToLower(o.kind) + " " + o.name }

const (
	kindDeployment  = "Deployment"
	kindStatefulSet = "StatefulSet"
	// kindBare stands for all pods of a namespace that nobody owns.
	kindBare = ""
)

// replicas is what a Deployment or StatefulSet says of itself.
type replicas struct {
	wanted   int32
	recreate bool
}

// budget is a PodDisruptionBudget that was added.
type budget struct {
	policyv1.PodDisruptionBudget

	selector labels.Selector // nil where it cannot be read
}

// overlap is a set of budgets that share pods.
type overlap struct {
	namespace string
	names     []string
	pods      int
	example   string
}

// workload is what is kept of all the pods of an owner.
type workload struct {
	pods, onSpot int
	example      string
	// grace is the longest of those on spot nodes.
	grace time.Duration
	// hookSleep is how long a preStop hook sleeps whose pod has only hookGrace.
	hookSleep, hookGrace time.Duration
	held                 string // the annotation that holds pods on spot nodes
	heldPods             int
	tolerates            bool
	keeps                bool // data in an emptyDir, on a spot node
}

// IsSpot tells by its labels whether a node is a spot instance: those of
// Karpenter, of EKS's managed node groups, and of what eksctl, kOps and many
// guides set.
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
}

// AddBudget adds a PodDisruptionBudget.
func (s *Survey) AddBudget(p *policyv1.PodDisruptionBudget) {
	selector, err := metav1.LabelSelectorAsSelector(p.Spec.Selector)
	if err != nil {
		selector = nil
	}
	kept := *p // the page that it is in is not kept
	kept.ManagedFields = nil
	s.budgets[p.Namespace] = append(s.budgets[p.Namespace], &budget{PodDisruptionBudget: kept, selector: selector})
}

// AddDeployment adds a Deployment.
func (s *Survey) AddDeployment(d *appsv1.Deployment) {
	s.sets[owner{kindDeployment, d.Namespace, d.Name}] = replicas{
		wanted: orOne(d.Spec.Replicas), recreate: d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType,
	}
}

// AddStatefulSet adds a StatefulSet.
func (s *Survey) AddStatefulSet(set *appsv1.StatefulSet) {
	s.sets[owner{kindStatefulSet, set.Namespace, set.Name}] = replicas{wanted: orOne(set.Spec.Replicas)}
}

// orOne is what the API server fills in.
func orOne(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}
