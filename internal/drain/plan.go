package drain

import (
	"cmp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// Facts is all that a plan is made from.
type Facts struct {
	// Now is the moment of the plan.
	Now time.Time
	// Deadline is when the instance will be gone; nil where nobody knows. Because of
	// an estimated one no pod gets less than its own grace period.
	Deadline *v1alpha1.Deadline
	// InstanceGone says that nothing runs on the node any more: its pods can
	// only be cleaned up.
	InstanceGone bool
	// DoNotDisrupt says what a do-not-disrupt annotation is worth; empty means
	// UntilLastCall.
	DoNotDisrupt v1alpha1.DoNotDisrupt
	// Strategy is how pods are moved: Surge, or, if empty, Evict.
	Strategy v1alpha1.Strategy
	// Workloads treat pods differently by what they are; the first that matches
	// a pod rules it.
	Workloads []v1alpha1.Workload
	// Gates are what all pods wait for, but none past its last call: a
	// replacement, a hook, a person. Reasons tell them in this order.
	Gates []Gate
	// Owners are what controls the pods, for Surge. A surged pod whose
	// ReplicaSet is not among them has nobody to wait for, and leaves.
	Owners Owners
	// Margin is kept between the end of the last pod's grace and a firm
	// deadline, hard or estimated.
	Margin time.Duration
	// Pods are the pods of the node, in any order.
	Pods []*corev1.Pod
	// Budgets are all PodDisruptionBudgets of the namespaces of those pods, or
	// more, in any order.
	Budgets []*policyv1.PodDisruptionBudget
	// Refused tells, by pod, why the API server refused an eviction that an
	// earlier plan asked for, as an admission webhook may. Such a pod is
	// evicted again, and deleted at last call. It may be nil: a refusal that
	// is forgotten is met again.
	Refused map[types.UID]string
}

// Gate is something that all pods wait for.
type Gate struct {
	// Why goes on a sentence that begins with "waits: ", such as "its
	// replacement is not Ready yet".
	Why string
	// Until is when it ends by itself, after which it holds nobody; zero: nobody
	// knows.
	Until time.Time
}

// Owners are the objects that say whether a pod may run twice, and how far its
// successor has come, in any order. A pod whose owners are not among them is
// evicted.
type Owners struct {
	ReplicaSets []*appsv1.ReplicaSet
	Deployments []*appsv1.Deployment
	Claims      []*corev1.PersistentVolumeClaim
}

// Step is what is to be done about a pod now.
type Step string

// The steps.
const (
	// StepStays: the pod does not have to leave.
	StepStays Step = "Stays"
	// StepLeaving: the pod was asked to stop already.
	StepLeaving Step = "Leaving"
	// StepWaits: the pod has to leave, but not now.
	StepWaits Step = "Waits"
	// StepSurge: take the pod from its ReplicaSet, which then starts a successor
	// while the pod goes on serving.
	StepSurge Step = "Surge"
	// StepEvict: ask the Eviction API, which respects PodDisruptionBudgets.
	StepEvict Step = "Evict"
	// StepDelete: delete the pod, whatever holds it.
	StepDelete Step = "Delete"
)

// Verdict is what the plan says about one pod.
type Verdict struct {
	// Pod is the pod, as it was in the facts.
	Pod *corev1.Pod
	// Step is what is to be done now.
	Step Step
	// Reason is a sentence for the person on call. That of a pod which waits,
	// leaves or stays does not change before WakeAt unless the facts do.
	Reason string
	// LastCall is when the pod has to be asked to stop at the latest; zero
	// where there is no firm deadline, and for pods that need not be asked.
	LastCall time.Time
	// GraceSeconds is the grace period to give in place of the pod's own, in
	// seconds; nil leaves it its own.
	GraceSeconds *int64
	// Overrides names what would hold the pod and is overridden now that time
	// runs out: PodDisruptionBudgets, "do-not-disrupt", "refused eviction"; or
	// empty.
	Overrides string
	// Origin is what to write on a pod that is surged; nil with other steps.
	Origin *Origin
	// AwaitsOthers is set where it waits for other pods of the node to have left.
	AwaitsOthers bool
}

// Plan is a verdict per pod.
type Plan struct {
	// Verdicts has one entry per pod, in the order to act: deletions,
	// evictions, surges, then those for whom nothing is done now.
	Verdicts []Verdict
	// WakeAt is when to look again at the latest, later than now; zero where
	// only a change of the facts can change the plan.
	WakeAt time.Time
}

// NewPlan makes the plan. The order of pods, budgets and owners in the facts
// makes no difference to it.
func NewPlan(f Facts) Plan {
	s := newPlanContext(f)
	var p Plan
	for _, c := range s.pods {
		v := s.judge(c)
		p.Verdicts = append(p.Verdicts, v)
		p.WakeAt = s.sooner(p.WakeAt, s.moments(c, v)...)
	}
	if !p.Empty() {
		p.WakeAt = s.sooner(p.WakeAt, s.deadline)
	}
	slices.SortStableFunc(p.Verdicts, func(a, b Verdict) int {
		return cmp.Compare(urgency(a.Step), urgency(b.Step))
	})
	return p
}

// Left returns the verdicts of the pods that still have to leave: all but
// those that stay.
func (p Plan) Left() []Verdict {
	var left []Verdict
	for _, v := range p.Verdicts {
		if v.Step != StepStays {
			left = append(left, v)
		}
	}
	return left
}

// Empty reports whether no pod is left that has to leave.
func (p Plan) Empty() bool {
	return !slices.ContainsFunc(p.Verdicts, func(v Verdict) bool { return v.Step != StepStays })
}

func urgency(s Step) int {
	return slices.Index([]Step{StepDelete, StepEvict, StepSurge, StepLeaving, StepWaits, StepStays}, s)
}
