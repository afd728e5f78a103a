package drain

import (
	"cmp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// Facts is the input of a plan.
type Facts struct {
	// Now is the time of the plan.
	Now time.Time
	// Deadline is when the instance ends; nil if unknown. An estimated deadline does not
	// shorten grace periods.
	Deadline *v1beta1.Deadline
	// InstanceGone is set if nothing runs on the node any more: its pods can only be deleted.
	InstanceGone bool
	// DoNotDisrupt says how long a do-not-disrupt annotation holds a pod; empty means
	// UntilLastCall.
	DoNotDisrupt v1beta1.DoNotDisrupt
	// Strategy is how pods are moved: Surge, or Evict if empty.
	Strategy v1beta1.Strategy
	Storm    string // why Strategy evicts although it is Surge, which workloads may still say
	// SurgeDisabled says that lifeboatd may not surge pods. It evicts them instead.
	SurgeDisabled bool
	// Workloads treat pods differently by label or owner; the first that matches a pod applies.
	Workloads []v1beta1.Workload
	// Cordoned is when the node was cordoned for this drain; zero: it is not. A pod that was
	// created later can be there only because it tolerates that.
	Cordoned time.Time
	// Gates are what all pods wait for, but not past their last call: a replacement, a hook, an
	// approval. Reasons list them in this order.
	Gates []Gate
	// CapacityAt is when the replacement that pods wait for is expected to be Ready; zero: they
	// wait for none. Until then a pod that is evicted has a successor without a node.
	CapacityAt time.Time
	// Owners are the controllers of the pods, for Surge. A surged pod whose ReplicaSet is
	// missing does not wait, and leaves.
	Owners Owners
	// Margin is kept between the end of the last pod's grace and a firm deadline, hard or
	// estimated.
	Margin time.Duration
	// Pods are the pods of the node, in any order.
	Pods []*corev1.Pod
	// Budgets are all PodDisruptionBudgets of at least the namespaces of those pods, in any
	// order.
	Budgets []*Budget
	// Refused says, by pod, why the API server refused an eviction of an earlier plan, as an
	// admission webhook may. Such a pod is evicted again, and deleted at its last call. It may
	// be nil: after a restart the next eviction fails the same way.
	Refused map[types.UID]string
}

// Gate is something that all pods wait for.
type Gate struct {
	// Why continues a sentence that begins with "waits: ", such as "its replacement is not
	// Ready yet".
	Why string
	// Until is when the gate expires; zero if unknown.
	Until time.Time
}

// Owners are the objects that decide whether a pod may run twice and whether its successor is
// Ready, in any order. A pod whose owners are missing is evicted.
type Owners struct {
	ReplicaSets []*appsv1.ReplicaSet
	Deployments []*appsv1.Deployment
	Claims      []*corev1.PersistentVolumeClaim
}

// Step is the next action for a pod.
type Step string

// The steps.
const (
	// StepStays: the pod stays on the node.
	StepStays Step = "Stays"
	// StepLeaving: the pod was already asked to stop.
	StepLeaving Step = "Leaving"
	// StepWaits: the pod must leave, but not now.
	StepWaits Step = "Waits"
	// StepSurge: take the pod from its ReplicaSet, which then starts a successor while the pod
	// keeps serving.
	StepSurge Step = "Surge"
	// StepEvict: ask the Eviction API, which respects PodDisruptionBudgets.
	StepEvict Step = "Evict"
	// StepDelete: delete the pod and override what holds it.
	StepDelete Step = "Delete"
)

// Verdict is the plan for one pod.
type Verdict struct {
	// Pod is the pod from the facts.
	Pod *corev1.Pod
	// Step is the action to take now.
	Step Step
	// Cause is the rule that decided.
	Cause v1beta1.PodReason
	// Reason is a sentence for the user. For a pod that waits, leaves or stays it does not
	// change before WakeAt unless the facts do.
	Reason string
	// LastCall is the last moment to ask the pod to stop; zero without a firm deadline, and for
	// pods that need no request.
	LastCall time.Time
	// GraceSeconds is the grace period to give instead of the pod's own, in seconds; nil keeps
	// its own.
	GraceSeconds *int64
	// Overrides names what would hold the pod but is overridden because of the deadline:
	// PodDisruptionBudgets, "do-not-disrupt", "refused eviction"; or empty.
	Overrides string
	// Origin is what to write to a surged pod; nil with other steps.
	Origin *Origin
	// Returned is set if the scheduler placed the pod on the node after that was cordoned.
	Returned bool
	// AwaitsOthers is set if the pod waits until other pods of the node have left.
	AwaitsOthers bool
}

// Plan is a verdict per pod.
type Plan struct {
	// Verdicts has one entry per pod, in the order to act: deletions, evictions, surges, then
	// pods without an action.
	Verdicts []Verdict
	// WakeAt is when to plan again at the latest, later than now; zero if only a change of the
	// facts can change the plan.
	WakeAt time.Time
}

// NewPlan returns the plan. It does not depend on the order of pods, budgets and owners in the
// facts.
func NewPlan(f Facts) Plan {
	s := newPlanContext(f)
	var p Plan
	for _, c := range s.pods {
		p.Verdicts = append(p.Verdicts, s.evaluate(c))
	}
	s.holdGangs(p.Verdicts)
	for i, c := range s.pods {
		v := p.Verdicts[i]
		p.WakeAt = s.soonestAfterNow(p.WakeAt, s.wakeTimes(c, v)...)
	}
	if !p.Empty() {
		p.WakeAt = s.soonestAfterNow(p.WakeAt, s.deadline)
	}
	slices.SortStableFunc(p.Verdicts, func(a, b Verdict) int {
		return cmp.Compare(urgency(a.Step), urgency(b.Step))
	})
	return p
}

// Left returns the verdicts of the pods that must still leave: all except those that stay.
func (p Plan) Left() []Verdict {
	var left []Verdict
	for _, v := range p.Verdicts {
		if v.Step != StepStays {
			left = append(left, v)
		}
	}
	return left
}

// Empty reports whether no pod must leave.
func (p Plan) Empty() bool {
	return !slices.ContainsFunc(p.Verdicts, func(v Verdict) bool { return v.Step != StepStays })
}

// Overdue reports whether all pods that must leave were asked to stop, and the grace of each ended
// more than a minute ago. Then only their kubelet, or a finalizer, keeps them.
func (p Plan) Overdue(now time.Time) bool {
	left := p.Left()
	return len(left) > 0 && !slices.ContainsFunc(left, func(v Verdict) bool {
		return v.Step != StepLeaving || now.Before(stuckAt(v.Pod))
	})
}

func urgency(s Step) int {
	return slices.Index([]Step{StepDelete, StepEvict, StepSurge, StepLeaving, StepWaits, StepStays}, s)
}
