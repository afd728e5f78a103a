package drain

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

const (
	// shortestGrace is the shortest grace that a pod gets. The kubelet gives each container at
	// least two seconds (kubernetes pkg/kubelet/kuberuntime, minimumGracePeriodInSeconds). A
	// grace of 0 would remove the pod from the API while its containers still run.
	shortestGrace = 2 * time.Second
	// defaultGrace is the API server's default (k8s.io/api/core/v1,
	// PodSpec.terminationGracePeriodSeconds).
	defaultGrace = 30 * time.Second
	// longestGrace prevents overflow: ten years are as good as unlimited.
	longestGrace = 10 * 365 * 24 * time.Hour
	// stuckAfter is how long after the end of its grace a pod that still exists no longer
	// counts as leaving. Other pods do not wait for it then.
	stuckAfter = time.Minute
)

// planContext is the input of the rules: the facts, prepared once for each plan.
type planContext struct {
	now   time.Time
	facts *Facts
	// deadline is the firm deadline, and latest is when pods must have stopped; both are zero
	// without a firm deadline.
	deadline, latest time.Time
	// estimated is set if the deadline is only an estimate: it shortens no grace period. The
	// kubelet also stops the pods of a node that shuts down, and a shorter grace gives none of
	// them more time.
	estimated bool

	pods  []*podState // in evaluation order
	rules []rule
	gates []Gate // those in force
	known owners
	// going counts, by rank, the pods that are about to leave.
	going [ranks]int
}

// podState is a pod with everything that the rules need.
type podState struct {
	pod       *corev1.Pod
	grace     time.Duration
	treatment *workload // the policy's workload that matches it, or nil
	rank      rank
	strategy  v1beta1.Strategy
	hold      hold
	budgets   []*budget
	refused   string
	surged    *Origin      // the ReplicaSet it was taken from; nil if it was not surged
	group     *surgedGroup // state shared by the surged pods of its ReplicaSet
	gang      *gang        // pods that leave with it; nil: none
	byBudget  bool         // a PodDisruptionBudget holds it
	returned  bool         // the scheduler placed it on the cordoned node
	staying   bool         // it is Ready, and waits for its successor if necessary
	// successorDeadline is when a surged pod stops waiting for its successor.
	successorDeadline, nextWave time.Time // nextWave is when more pods of its ReplicaSet may be surged
	// lastCall is zero if there is no firm deadline or the pod is not asked to stop.
	lastCall time.Time
	// turn is when do-not-disrupt, gates, the order of pods and its successor no longer hold
	// it: its last call, or earlier if others that share its budget must leave after it.
	turn  time.Time
	after int // number of pods that must leave after it, if turn is earlier because of them

	// Results of the rules.

	moving      bool   // it waits now, but will leave
	whyUnsurged string // why it is not surged although the policy says Surge
	whyReleased string // why a surged pod no longer waits for its successor
}

func newPlanContext(f Facts) *planContext {
	s := &planContext{now: f.Now, facts: &f, rules: rulesInOrder()}
	f.Margin, f.Pods, f.Budgets = max(f.Margin, 0), withoutNil(f.Pods), withoutNil(f.Budgets)
	if f.Deadline != nil && f.Deadline.Time.IsZero() {
		f.Deadline = nil
	}
	if notice.IsFirm(f.Deadline) {
		s.estimated = notice.IsEstimated(f.Deadline)
		s.deadline = f.Deadline.Time.Time
		s.latest = s.deadline.Add(-f.Margin)
	}
	s.gates = inForce(f.Gates, f.Now)
	s.addCandidates(newPDBState(f.Pods, f.Budgets), compile(f.Workloads))
	return s
}

// addCandidates creates the candidates in evaluation order. Pods whose last call has come are first,
// so that they use a shared budget before pods that can wait.
func (s *planContext) addCandidates(ledger pdbState, workloads []workload) {
	for _, pod := range s.facts.Pods {
		s.pods = append(s.pods, s.candidate(pod, ledger, workloads))
	}
	slices.SortFunc(s.pods, inTurn)
	if slices.ContainsFunc(s.pods, func(c *podState) bool { return c.surged != nil || c.strategy == v1beta1.StrategySurge }) {
		s.known = indexOwners(s.facts.Owners)
	}
	s.joinGangs()
	if !s.latest.IsZero() {
		s.scheduleSharedBudgets()
		slices.SortStableFunc(s.pods, func(a, b *podState) int { return s.atLastCall(b) - s.atLastCall(a) })
	}
	s.resolveSurged()
}

func (s *planContext) candidate(pod *corev1.Pod, ledger pdbState, workloads []workload) *podState {
	c := &podState{
		pod:     pod,
		grace:   graceOf(pod),
		budgets: ledger.covering(pod),
		refused: s.facts.Refused[pod.UID],
		surged:  takenFrom(pod),
	}
	c.returned = s.hasReturned(pod)
	c.treatment = treatmentOf(workloads, c)
	c.rank, c.strategy = rankOf(c), s.strategyOf(c)
	if s.facts.DoNotDisrupt != v1beta1.DoNotDisruptIgnore {
		c.hold = holdOf(pod, s.now)
	}
	if s.deadline.IsZero() || s.facts.InstanceGone || isLeaving(pod) || stays(pod) || c.strategy == v1beta1.StrategyNever {
		return c
	}
	lastCall := s.latest.Add(-c.grace)
	if s.respects(c) && !c.hold.endsBefore(lastCall) {
		return c
	}
	c.lastCall, c.turn = lastCall, lastCall
	return c
}

// lastCallReached reports whether the pod's last call has come.
func (s *planContext) lastCallReached(c *podState) bool {
	return !c.lastCall.IsZero() && !s.now.Before(c.lastCall)
}

// awaitsTurn reports whether rules that a turn overrides may still hold the pod. Without a firm
// deadline they always may.
func (s *planContext) awaitsTurn(c *podState) bool {
	return c.turn.IsZero() || s.now.Before(c.turn)
}

// graceLeft returns the grace to give instead of the pod's own: the time left before a hard
// deadline, or nil if its own fits. An estimated deadline never shortens it, because the
// instance may run longer. Part of a second is rounded up, so that a pod asked milliseconds
// after its last call keeps its whole grace. The margin covers that; without a margin it is
// rounded down.
func (s *planContext) graceLeft(c *podState) *int64 {
	if s.latest.IsZero() || s.estimated {
		return nil
	}
	room := s.latest.Sub(s.now)
	if s.facts.Margin >= time.Second && room < longestGrace {
		room += time.Second - 1
	}
	room = max(room.Truncate(time.Second), shortestGrace)
	if room >= c.grace {
		return nil
	}
	seconds := int64(room / time.Second)
	return &seconds
}

// soonestAfterNow returns the earliest of the moments after now. Any argument may be zero.
func (s *planContext) soonestAfterNow(at time.Time, moments ...time.Time) time.Time {
	for _, m := range moments {
		if m.After(s.now) && (at.IsZero() || m.Before(at)) {
			at = m
		}
	}
	return at
}

// wakeTimes returns when the verdict on a pod may change without a change of the facts.
func (s *planContext) wakeTimes(c *podState, v Verdict) []time.Time {
	switch v.Step {
	case StepWaits:
		moments := []time.Time{c.turn, c.lastCall, c.hold.until, c.nextWave}
		for _, g := range s.gates {
			moments = append(moments, g.Until)
		}
		if c.group != nil {
			moments = append(moments, c.group.settled(), c.successorDeadline)
		}
		return moments
	case StepEvict: // the API server may refuse it
		return []time.Time{c.lastCall}
	case StepSurge: // the API server may refuse it
		return []time.Time{c.turn, c.lastCall}
	case StepLeaving:
		return []time.Time{s.cutAt(c), stuckAt(c.pod)}
	}
	return nil
}

// evaluate asks the rules about a pod. The evaluation order matters: later pods see the results of
// earlier ones.
func (s *planContext) evaluate(c *podState) Verdict {
	v := s.applyRules(c)
	v.Pod, v.LastCall, v.Returned = c.pod, c.lastCall, c.returned
	mentionReturn(&v)
	v.Reason = clip(v.Reason)
	if s.isGoing(c, v) {
		s.going[c.rank]++
	}
	return v
}

func (s *planContext) applyRules(c *podState) Verdict {
	for _, r := range s.rules {
		if v, ok := r.decide(s, c); ok {
			v.Cause = r.cause
			return v
		}
	}
	return evict(s, c)
}

func (s *planContext) isGoing(c *podState, v Verdict) bool {
	switch v.Step {
	case StepEvict, StepDelete, StepSurge:
		return true
	case StepWaits:
		return c.moving
	case StepLeaving:
		return s.now.Before(stuckAt(c.pod))
	}
	return false
}

// graceOf returns the pod's grace period as the API server reads it: a negative period counts as
// one second (kubernetes pkg/registry/core/pod, CheckGracefulDelete).
func graceOf(pod *corev1.Pod) time.Duration {
	seconds := pod.Spec.TerminationGracePeriodSeconds
	switch {
	case seconds == nil:
		return defaultGrace
	case *seconds < 0:
		return time.Second
	}
	return time.Duration(min(*seconds, int64(longestGrace/time.Second))) * time.Second
}

func isLeaving(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil }

// IsReady reports whether a pod counts as Ready.
func IsReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// graceGiven returns the grace that a leaving pod was given.
func graceGiven(pod *corev1.Pod) time.Duration {
	if g := pod.DeletionGracePeriodSeconds; g != nil && *g > 0 {
		return time.Duration(min(*g, int64(longestGrace/time.Second))) * time.Second
	}
	return 0
}

// stuckAt is when a leaving pod that is still there counts as stuck.
func stuckAt(leaving *corev1.Pod) time.Time { return leaving.DeletionTimestamp.Add(stuckAfter) }
