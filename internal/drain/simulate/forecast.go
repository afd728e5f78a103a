// Package simulate simulates a drain with the controller's planner. It plans,
// assumes that each step succeeds, advances the clock to the next
// change, and plans again, until every pod left or nothing can change. It
// is pure. The prediction is as good as these assumptions:
//   - a pod that is asked to stop uses its whole grace period;
//   - an owned pod gets a replacement that is ready elsewhere after a fixed
//     time, which then returns the disruption to the PodDisruptionBudget;
//   - the successor of a surged pod is ready after the same time, and
//     controllers update their counts at once;
//   - a gate ends at its stated time, or never.
package simulate

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// DefaultGrace is the grace period of a pod that names none (Kubernetes API,
// PodSpec.terminationGracePeriodSeconds).
const DefaultGrace = 30 * time.Second

// maxPasses ends a simulation that does not converge. It is more than the pods
// of a node times the state changes of one pod.
const maxPasses = 5000

// Facts is the input of a simulation. Its Now is when the drain begins.
type Facts struct {
	drain.Facts
	// Replaced is how long a leaving pod's replacement takes to be ready
	// elsewhere.
	Replaced time.Duration
}

// PodOutcome is the predicted course of a pod.
type PodOutcome struct {
	// Pod is the pod, as it was in the facts.
	Pod *corev1.Pod
	// Now is the verdict when the drain begins.
	Now drain.Verdict
	// Step is how the pod leaves in the end: Evict, Delete, Leaving (it was
	// already terminating), Waits (it never starts to leave) or Stays.
	Step drain.Step
	// Reason is the planner's sentence when the pod is asked to stop; for a pod
	// that never is, the sentence at the end.
	Reason string
	// Surged is when its successor starts while the pod still runs; zero if it
	// is not surged, or was surged before.
	Surged time.Time
	// Asked is when it is asked to stop; zero if it never is.
	Asked time.Time
	// Gone is the latest time at which it has left; zero if it never leaves.
	Gone time.Time
	// Grace is the grace period that it gets, Wants the one that it requests.
	Grace, Wants time.Duration
	// LastCall is the latest time to ask it to stop; zero without a hard
	// deadline.
	LastCall time.Time
	// Overrides names what the last call overrides, or is empty.
	Overrides string
	// Fits is true if it leaves with its whole grace period before the
	// deadline, or does not have to leave.
	Fits bool
}

// Simulate returns the outcome of every pod, in the order in which they are
// asked to stop; pods that never are come last.
func Simulate(f Facts) []PodOutcome {
	w := newWorld(f)
	for range maxPasses {
		plan := drain.NewPlan(w.Facts)
		surged := false
		for _, v := range plan.Verdicts {
			w.apply(v)
			surged = surged || v.Step == drain.StepSurge
		}
		if surged {
			continue // the next plan contains what they wait for now
		}
		next := w.next(plan.WakeAt)
		if next.IsZero() {
			break
		}
		w.advance(next)
	}
	return w.outcomeList()
}

// world is the simulated cluster state at one moment.
type world struct {
	drain.Facts
	replaced time.Duration
	outcomes []*PodOutcome
	byUID    map[types.UID]*PodOutcome
	// returns are future events: successors become ready, and budgets regain a
	// disruption.
	returns []budgetRelease
}

// budgetRelease adds one ready pod to a budget or a ReplicaSet.
type budgetRelease struct {
	at     time.Time
	budget *drain.Budget
	set    *appsv1.ReplicaSet
}

func newWorld(f Facts) *world {
	w := &world{Facts: f.Facts, replaced: f.Replaced, byUID: map[types.UID]*PodOutcome{}}
	w.Pods, w.Budgets = nil, nil
	for _, b := range f.Budgets {
		counted := *b
		w.Budgets = append(w.Budgets, &counted)
	}
	for _, p := range f.Pods {
		w.Pods = append(w.Pods, p.DeepCopy())
		outcome := &PodOutcome{Pod: p, Wants: wants(p)}
		if !p.DeletionTimestamp.IsZero() {
			outcome.Grace, outcome.Gone = grace(p), p.DeletionTimestamp.Time
			outcome.Asked = outcome.Gone.Add(-outcome.Grace)
		}
		w.outcomes = append(w.outcomes, outcome)
		w.byUID[p.UID] = outcome
	}
	w.settleOwners(f.Owners)
	return w
}

// apply performs the plan's step for one pod.
func (w *world) apply(v drain.Verdict) {
	outcome := w.byUID[v.Pod.UID]
	if outcome.Now.Pod == nil {
		outcome.Now = v
	}
	if !v.LastCall.IsZero() {
		outcome.LastCall = v.LastCall
	}
	if !isEviction(v.Step) && isEviction(outcome.Step) {
		return // keep the reason of the eviction
	}
	outcome.Step, outcome.Reason = v.Step, v.Reason
	switch {
	case isEviction(v.Step):
		w.stop(outcome, v)
	case v.Step == drain.StepSurge:
		outcome.Surged = w.Now
		w.surge(v)
	}
}

func isEviction(s drain.Step) bool {
	return s == drain.StepEvict || s == drain.StepDelete
}

// stop asks a pod to stop, with the effects that the API server would cause.
func (w *world) stop(outcome *PodOutcome, v drain.Verdict) {
	given := outcome.Wants
	if v.GraceSeconds != nil {
		given = time.Duration(*v.GraceSeconds) * time.Second
	}
	if outcome.Asked.IsZero() {
		outcome.Asked = w.Now
	}
	outcome.Grace, outcome.Gone, outcome.Overrides = w.Now.Add(given).Sub(outcome.Asked), w.Now.Add(given), v.Overrides
	leaving := !v.Pod.DeletionTimestamp.IsZero()
	seconds, gone := int64(given/time.Second), metav1.NewTime(outcome.Gone)
	v.Pod.DeletionTimestamp, v.Pod.DeletionGracePeriodSeconds = &gone, &seconds
	if leaving || !drain.IsReady(v.Pod) {
		return // no budget counts it as healthy
	}
	w.lose(v.Pod)
	for _, b := range w.Budgets {
		if b.Covers(v.Pod) {
			b.CurrentHealthy--
			b.DisruptionsAllowed = max(b.DisruptionsAllowed-1, 0)
			if at := w.replacedAt(outcome, v.Pod); !at.IsZero() {
				w.returns = append(w.returns, budgetRelease{at: at, budget: b})
			}
		}
	}
}

// replacedAt is when a replacement is ready. A StatefulSet starts one when the
// pod is gone, other owners when the pod is asked to stop. A pod without an
// owner, such as a surged one, gets none.
func (w *world) replacedAt(outcome *PodOutcome, pod *corev1.Pod) time.Time {
	owner := metav1.GetControllerOf(pod)
	switch {
	case owner == nil:
		return time.Time{}
	case owner.Kind == "StatefulSet":
		return outcome.Gone.Add(w.replaced)
	}
	return w.Now.Add(w.replaced)
}

// next is the next moment of a change, or zero if there is none. Nothing
// changes after a hard deadline.
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

// advance moves the clock: expired pods disappear, replacements become ready.
func (w *world) advance(to time.Time) {
	w.Now = to
	w.Pods = slices.DeleteFunc(w.Pods, func(p *corev1.Pod) bool {
		return !p.DeletionTimestamp.IsZero() && !p.DeletionTimestamp.After(to)
	})
	w.returns = slices.DeleteFunc(w.returns, func(r budgetRelease) bool {
		if r.at.After(to) {
			return false
		}
		if r.set != nil {
			r.set.Status.ReadyReplicas++
			return true
		}
		s := r.budget
		s.CurrentHealthy++
		s.DisruptionsAllowed = max(min(s.CurrentHealthy-s.DesiredHealthy, s.DisruptionsAllowed+1), 0)
		return true
	})
}

// wants is the grace period that the spec of a pod requests. The one of a deletion in progress can
// be shorter already.
func wants(p *corev1.Pod) time.Duration {
	if s := p.Spec.TerminationGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return DefaultGrace
}

// grace is the grace period of the deletion in progress.
func grace(p *corev1.Pod) time.Duration {
	if s := p.DeletionGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return 0
}
