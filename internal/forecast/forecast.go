// Package forecast plays the drain planner forward: it makes the plan, assumes
// that what the plan says is done, moves the clock to the next moment at which
// something changes, and plans again, until every pod has left or nothing more
// can happen. It is pure, and the planner is the controller's own, so what it
// foretells is what the controller does, as long as the world behaves as
// assumed:
//
//   - a pod that is asked to stop uses its whole grace period;
//   - a pod that somebody owns is replaced by one that is ready elsewhere after
//     a fixed time, which gives its PodDisruptionBudget back what it took;
//   - the successor of a pod that is surged is ready elsewhere after the same
//     time, and controllers count at once;
//   - a gate ends when it says that it does, and else not at all.
package forecast

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// DefaultGrace is the grace period of a pod that names none (Kubernetes API,
// PodSpec.terminationGracePeriodSeconds).
const DefaultGrace = 30 * time.Second

// maxPasses ends a forecast whose plans never come to rest: more than a node
// can hold pods, times the moments that one pod has.
const maxPasses = 5000

// Facts is all that a forecast is made from. Its Now is when the drain begins.
type Facts struct {
	drain.Facts
	// Replaced is how long it takes until a pod that leaves is replaced by one
	// that is ready elsewhere.
	Replaced time.Duration
}

// Fate is what becomes of a pod.
type Fate struct {
	// Pod is the pod, as it was in the facts.
	Pod *corev1.Pod
	// Now is the verdict when the drain begins.
	Now drain.Verdict
	// Step is how the pod leaves in the end: Evict, Delete, Leaving (it was
	// leaving already), Waits (it never gets to leave) or Stays.
	Step drain.Step
	// Reason is the planner's sentence when it is asked to stop, or, for a pod
	// that is not, at the end.
	Reason string
	// Surged is when its successor is started, while it goes on; zero if it is
	// not surged, or was before.
	Surged time.Time
	// Asked is when it is asked to stop; zero if it never is.
	Asked time.Time
	// Gone is when it has left at the latest; zero if it never does.
	Gone time.Time
	// Grace is the time that it gets to stop, Wants the time it asks for.
	Grace, Wants time.Duration
	// LastCall is when it has to be asked at the latest; zero without a hard
	// deadline.
	LastCall time.Time
	// Overrides names what is overridden at last call, or is empty.
	Overrides string
	// Fits is true where it leaves with its whole grace before the deadline,
	// or does not have to leave.
	Fits bool
}

// Make tells the fate of every pod, in the order in which they are asked to
// stop; those that never are come last.
func Make(f Facts) []Fate {
	w := newWorld(f)
	for range maxPasses {
		plan := drain.NewPlan(w.Facts)
		surged := false
		for _, v := range plan.Verdicts {
			w.apply(v)
			surged = surged || v.Step == drain.StepSurge
		}
		if surged {
			continue // what they wait for now is in the next plan
		}
		next := w.next(plan.WakeAt)
		if next.IsZero() {
			break
		}
		w.advance(next)
	}
	return w.tell()
}

// world is the cluster as the forecast has it at one moment.
type world struct {
	drain.Facts
	replaced time.Duration
	fates    []*Fate
	byUID    map[types.UID]*Fate
	// returns are when successors are ready, and budgets get back what an
	// eviction took.
	returns []refund
}

// refund is a pod more for a budget or for a ReplicaSet.
type refund struct {
	at     time.Time
	budget *policyv1.PodDisruptionBudget
	set    *appsv1.ReplicaSet
}

func newWorld(f Facts) *world {
	w := &world{Facts: f.Facts, replaced: f.Replaced, byUID: map[types.UID]*Fate{}}
	w.Pods, w.Budgets = nil, nil
	for _, b := range f.Budgets {
		w.Budgets = append(w.Budgets, b.DeepCopy())
	}
	for _, p := range f.Pods {
		w.Pods = append(w.Pods, p.DeepCopy())
		fate := &Fate{Pod: p, Wants: wants(p)}
		if !p.DeletionTimestamp.IsZero() {
			fate.Grace, fate.Gone = grace(p), p.DeletionTimestamp.Time
			fate.Asked = fate.Gone.Add(-fate.Grace)
		}
		w.fates = append(w.fates, fate)
		w.byUID[p.UID] = fate
	}
	w.settleOwners(f.Owners)
	return w
}

// apply does what the plan says about one pod.
func (w *world) apply(v drain.Verdict) {
	fate := w.byUID[v.Pod.UID]
	if fate.Now.Pod == nil {
		fate.Now = v
	}
	if !v.LastCall.IsZero() {
		fate.LastCall = v.LastCall
	}
	if !acts(v.Step) && acts(fate.Step) {
		return // it is on its way; why it was asked is the better reason
	}
	fate.Step, fate.Reason = v.Step, v.Reason
	switch {
	case acts(v.Step):
		w.stop(fate, v)
	case v.Step == drain.StepSurge:
		fate.Surged = w.Now
		w.surge(v)
	}
}

func acts(s drain.Step) bool {
	return s == drain.StepEvict || s == drain.StepDelete
}

// stop asks a pod to stop, as the API server would.
func (w *world) stop(fate *Fate, v drain.Verdict) {
	given := fate.Wants
	if v.GraceSeconds != nil {
		given = time.Duration(*v.GraceSeconds) * time.Second
	}
	if fate.Asked.IsZero() {
		fate.Asked = w.Now
	}
	fate.Grace, fate.Gone, fate.Overrides = w.Now.Add(given).Sub(fate.Asked), w.Now.Add(given), v.Overrides
	leaving := !v.Pod.DeletionTimestamp.IsZero()
	seconds, gone := int64(given/time.Second), metav1.NewTime(fate.Gone)
	v.Pod.DeletionTimestamp, v.Pod.DeletionGracePeriodSeconds = &gone, &seconds
	if leaving || !drain.IsReady(v.Pod) {
		return // nobody counts it as healthy
	}
	w.lose(v.Pod)
	for _, b := range w.Budgets {
		if covers(b, v.Pod) {
			b.Status.CurrentHealthy--
			b.Status.DisruptionsAllowed = max(b.Status.DisruptionsAllowed-1, 0)
			if at := w.replacedAt(fate, v.Pod); !at.IsZero() {
				w.returns = append(w.returns, refund{at: at, budget: b})
			}
		}
	}
}

// replacedAt is when a replacement is ready: a StatefulSet begins one when the
// pod has gone, other owners as soon as it is asked to stop, nobody one for a
// pod without owner, as a surged one is.
func (w *world) replacedAt(fate *Fate, pod *corev1.Pod) time.Time {
	owner := metav1.GetControllerOf(pod)
	switch {
	case owner == nil:
		return time.Time{}
	case owner.Kind == "StatefulSet":
		return fate.Gone.Add(w.replaced)
	}
	return w.Now.Add(w.replaced)
}

// next is the next moment at which something changes, or zero if nothing does
// any more. Nothing changes after a hard deadline.
func (w *world) next(wake time.Time) time.Time {
	var next time.Time
	sooner := func(t time.Time) {
		if t.After(w.Now) && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	sooner(wake)
	for _, p := range w.Pods {
		if !p.DeletionTimestamp.IsZero() {
			sooner(p.DeletionTimestamp.Time)
		}
	}
	for _, r := range w.returns {
		sooner(r.at)
	}
	if w.isHard() && !next.Before(w.Deadline.Time.Time) {
		return time.Time{}
	}
	return next
}

func (w *world) isHard() bool {
	return notice.IsFirm(w.Deadline)
}

// advance moves the clock: pods whose time is over go, replacements get ready.
func (w *world) advance(to time.Time) {
	w.Now = to
	w.Pods = slices.DeleteFunc(w.Pods, func(p *corev1.Pod) bool {
		return !p.DeletionTimestamp.IsZero() && !p.DeletionTimestamp.After(to)
	})
	w.returns = slices.DeleteFunc(w.returns, func(r refund) bool {
		if r.at.After(to) {
			return false
		}
		if r.set != nil {
			r.set.Status.ReadyReplicas++
			return true
		}
		s := &r.budget.Status
		s.CurrentHealthy++
		s.DisruptionsAllowed = max(min(s.CurrentHealthy-s.DesiredHealthy, s.DisruptionsAllowed+1), 0)
		return true
	})
}

// wants is the grace period that a pod asks for: that of the deletion under
// way, if there is one, else its own.
func wants(p *corev1.Pod) time.Duration {
	if !p.DeletionTimestamp.IsZero() {
		return grace(p)
	}
	if s := p.Spec.TerminationGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return DefaultGrace
}

// grace is the grace period of the deletion under way.
func grace(p *corev1.Pod) time.Duration {
	if s := p.DeletionGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return 0
}

// covers reports whether a budget counts the pod. A selector that cannot be
// read covers nobody; the planner says so.
func covers(b *policyv1.PodDisruptionBudget, p *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	return err == nil && b.Namespace == p.Namespace && selector.Matches(labels.Set(p.Labels))
}
