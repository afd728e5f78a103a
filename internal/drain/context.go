package drain

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

const (
	// shortestGrace is the least that a pod is given to stop. The kubelet
	// gives each container two seconds whatever it is told (kubernetes
	// pkg/kubelet/kuberuntime, minimumGracePeriodInSeconds), and 0 would take
	// the pod out of the API while its containers still run.
	shortestGrace = 2 * time.Second
	// defaultGrace is what the API server fills in where a pod says nothing
	// (k8s.io/api/core/v1, PodSpec.terminationGracePeriodSeconds).
	defaultGrace = 30 * time.Second
	// longestGrace bounds the arithmetic: ten years are as good as for ever.
	longestGrace = 10 * 365 * 24 * time.Hour
	// stuckAfter is how long after the end of its grace a pod that is still
	// there no longer counts as leaving, so that it holds up nobody.
	stuckAfter = time.Minute
)

// planContext is the input of the rules: the facts, prepared once for each plan.
type planContext struct {
	now    time.Time
	facts  *Facts
	mode   v1alpha1.DoNotDisrupt
	margin time.Duration
	// deadline is the firm deadline and latest the moment by which pods are to
	// have stopped; both zero where there is none.
	deadline, latest time.Time
	// estimated is set where the deadline is only an estimate: grace periods are
	// neither reduced nor shortened because of it. The kubelet stops the pods of a
	// node that shuts down too, and gives none of them more time for a shorter grace.
	estimated bool

	pods  []*podState // in the order to judge
	rules []rule
	gates []Gate // those in force
	known owners
	// going counts, by rank, the pods that are on their way.
	going [ranks]int
}

// podState is a pod with what the rules need to know about it.
type podState struct {
	pod       *corev1.Pod
	grace     time.Duration
	treatment *workload // what the policy says of it in particular, or nil
	rank      rank
	strategy  v1alpha1.Strategy
	hold      hold
	budgets   []*budget
	refused   string
	surged    *Origin // where it was taken from; nil for others
	line      *line   // what it has in common with others of its ReplicaSet
	staying   bool    // it is Ready, and waits for its successor if need be
	// patience is when a surged pod waits for its successor no longer.
	patience time.Time
	// lastCall is zero where there is no firm deadline or the pod will not be
	// asked to stop.
	lastCall time.Time
	// turn is when neither do-not-disrupt, nor a gate, nor the order of pods,
	// nor its successor keeps it waiting any longer: its last call, or earlier
	// where others that share its budget have to leave after it.
	turn  time.Time
	after int // how many have to leave after it, if turn is earlier for their sake

	// What the rules have found out on the way.

	moving   bool   // it waits, but is on its way
	unsurged string // why it is not surged, though the policy says Surge
	released string // why a surged pod waits for its successor no longer
}

func newPlanContext(f Facts) *planContext {
	s := &planContext{now: f.Now, facts: &f, mode: f.DoNotDisrupt, margin: max(f.Margin, 0), rules: rulesInOrder()}
	if s.mode == "" {
		s.mode = v1alpha1.DoNotDisruptUntilLastCall
	}
	if f.Deadline != nil && f.Deadline.Time.IsZero() {
		f.Deadline = nil
	}
	if notice.IsFirm(f.Deadline) {
		s.estimated = notice.IsEstimated(f.Deadline)
		s.deadline = f.Deadline.Time.Time
		s.latest = s.deadline.Add(-s.margin)
	}
	s.gates = inForce(f.Gates, f.Now)
	s.recruit(newPDBState(f.Pods, f.Budgets), compile(f.Workloads))
	return s
}

// recruit makes the candidates, in the order to judge: those whose last call
// has come before those who can still wait, so that a budget they share is
// spent on them.
func (s *planContext) recruit(ledger *pdbState, workloads []workload) {
	for _, pod := range s.facts.Pods {
		if pod != nil {
			s.pods = append(s.pods, s.candidate(pod, ledger, workloads))
		}
	}
	slices.SortFunc(s.pods, inTurn)
	if !s.latest.IsZero() {
		ledger.link(s.pods)
		slices.SortStableFunc(s.pods, func(a, b *podState) int { return s.canWait(a) - s.canWait(b) })
	}
	s.trace()
}

func (s *planContext) candidate(pod *corev1.Pod, ledger *pdbState, workloads []workload) *podState {
	c := &podState{
		pod:     pod,
		grace:   graceOf(pod),
		budgets: ledger.covering(pod),
		refused: s.facts.Refused[pod.UID],
		surged:  takenFrom(pod),
	}
	c.treatment = treatmentOf(workloads, c)
	c.rank, c.strategy = rankOf(c), s.strategyOf(c)
	if s.mode != v1alpha1.DoNotDisruptIgnore {
		c.hold = holdOf(pod, s.now)
	}
	if s.deadline.IsZero() || s.facts.InstanceGone || isLeaving(pod) || stays(pod) || c.strategy == v1alpha1.StrategyNever {
		return c
	}
	lastCall := s.latest.Add(-c.grace)
	if s.respects(c) && !c.hold.endsBefore(lastCall) {
		return c
	}
	c.lastCall, c.turn = lastCall, lastCall
	return c
}

// inTurn orders pods: by rank, then those with the longest grace, whose last
// call is the earliest, then by name.
func inTurn(a, b *podState) int {
	return cmp.Or(
		cmp.Compare(a.rank, b.rank),
		cmp.Compare(b.grace, a.grace),
		cmp.Compare(a.pod.Namespace, b.pod.Namespace),
		cmp.Compare(a.pod.Name, b.pod.Name),
		cmp.Compare(a.pod.UID, b.pod.UID),
	)
}

// canWait is 0 for pods whose last call has come, 1 for others.
func (s *planContext) canWait(c *podState) int {
	if s.pressed(c) {
		return 0
	}
	return 1
}

func (s *planContext) respects(c *podState) bool {
	return s.mode == v1alpha1.DoNotDisruptRespect && c.hold.active()
}

// pressed reports whether the pod's last call has come.
func (s *planContext) pressed(c *podState) bool {
	return !c.lastCall.IsZero() && !s.now.Before(c.lastCall)
}

// awaitsTurn reports whether what can be overridden may still hold the pod. It
// may for ever where there is no firm deadline.
func (s *planContext) awaitsTurn(c *podState) bool {
	return c.turn.IsZero() || s.now.Before(c.turn)
}

// graceLeft returns the grace to give in place of the pod's own: what is left
// before a hard deadline, or nil if its own fits. Before an estimated deadline, and
// after it, every pod gets its own: the instance may run on for longer. A part of a second is rounded
// up, since a pod asked milliseconds after its last call shall keep its whole
// grace; the margin has room for it, or else it is rounded down.
func (s *planContext) graceLeft(c *podState) *int64 {
	if s.latest.IsZero() || s.estimated {
		return nil
	}
	room := s.latest.Sub(s.now)
	if s.margin >= time.Second && room < longestGrace {
		room += time.Second - 1
	}
	room = max(room.Truncate(time.Second), shortestGrace)
	if room >= c.grace {
		return nil
	}
	seconds := int64(room / time.Second)
	return &seconds
}

// sooner returns the earliest of the moments that is later than now; at may be
// zero, as may all of them.
func (s *planContext) sooner(at time.Time, moments ...time.Time) time.Time {
	for _, m := range moments {
		if m.After(s.now) && (at.IsZero() || m.Before(at)) {
			at = m
		}
	}
	return at
}

// moments are those at which the verdict on a pod may change by itself.
func (s *planContext) moments(c *podState, v Verdict) []time.Time {
	switch v.Step {
	case StepWaits:
		moments := []time.Time{c.turn, c.lastCall, c.hold.until}
		for _, g := range s.gates {
			moments = append(moments, g.Until)
		}
		if c.line != nil {
			moments = append(moments, c.line.settled(), c.patience)
		}
		return moments
	case StepEvict: // it may be refused
		return []time.Time{c.lastCall}
	case StepSurge: // it too
		return []time.Time{c.turn, c.lastCall}
	case StepLeaving:
		return []time.Time{s.cutAt(c), stuckAt(c.pod)}
	}
	return nil
}

// judge asks the rules about a pod. Pods are judged in turn, each knowing what
// was said of those before it.
func (s *planContext) judge(c *podState) Verdict {
	v := s.opinion(c)
	v.Pod, v.LastCall, v.Reason = c.pod, c.lastCall, clip(v.Reason)
	if s.isGoing(c, v) {
		s.going[c.rank]++
	}
	return v
}

func (s *planContext) opinion(c *podState) Verdict {
	for _, opinion := range s.rules {
		if v, ok := opinion(s, c); ok {
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

// graceOf returns how long the pod may take to stop, as the API server reads
// it: a negative period counts as one second (kubernetes
// pkg/registry/core/pod, CheckGracefulDelete).
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

// isCritical reports whether the cluster leans on the pod: its priority is
// that of the two system classes, or above (Kubernetes documentation,
// "Guaranteed Scheduling For Critical Add-On Pods").
func isCritical(pod *corev1.Pod) bool {
	const systemCritical = 2_000_000_000
	return pod.Spec.PriorityClassName == "system-cluster-critical" ||
		pod.Spec.PriorityClassName == "system-node-critical" ||
		(pod.Spec.Priority != nil && *pod.Spec.Priority >= systemCritical)
}

// Stays reports whether a drain leaves a pod alone: a DaemonSet or the kubelet
// would only put it back, or nothing of it runs any more.
func Stays(pod *corev1.Pod) bool { return stays(pod) }

// OfDaemonSet reports whether a DaemonSet keeps the pod on every node.
func OfDaemonSet(pod *corev1.Pod) bool {
	_, ok := daemonSetOf(pod)
	return ok
}

// stays reports whether a drain leaves the pod alone.
func stays(pod *corev1.Pod) bool {
	_, daemon := daemonSetOf(pod)
	return daemon || isStatic(pod) || isFinished(pod)
}

func daemonSetOf(pod *corev1.Pod) (string, bool) {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && owner.Kind == "DaemonSet" {
		return owner.Name, true
	}
	return "", false
}

// isStatic reports whether the kubelet runs the pod from a file: what the API
// shows is its mirror, and deleting that stops nothing.
func isStatic(pod *corev1.Pod) bool {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return true
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && owner.Kind == "Node"
}

func isFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
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
