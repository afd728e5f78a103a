package drain

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

const (
	// successorTimeout is how long a surged pod waits for its successor, which may stay
	// unschedulable.
	successorTimeout = 5 * time.Minute
	// surgeStatusDelay is how long after a surge the ReplicaSet's status is not trusted. Its
	// controller releases the pod first, then starts the successor, and counts last (kubernetes
	// pkg/controller/replicaset, syncReplicaSet). In between, the status counts a Ready pod
	// that is no longer the ReplicaSet's. Origin.Seen detects a controller with a longer delay,
	// unless others change the ReplicaSet too.
	surgeStatusDelay = 2 * time.Second
)

// surgedGroup is the shared state of the surged pods of one ReplicaSet on this node.
type surgedGroup struct {
	// set is the ReplicaSet; nil if it is deleted or being deleted.
	set *appsv1.ReplicaSet
	// staying counts the pods that are Ready and wait for a successor. evicted counts those that
	// this plan evicts.
	staying, evicted int32
	newest           time.Time // when the last of them was surged
	unreleased       bool      // the ReplicaSet still controls one
	unseen           bool      // the ReplicaSet has not changed since one was surged
}

// takenFrom returns where a surged pod was taken from, or nil. A pod that has its label again
// was given back. If the annotation cannot be parsed, the missing label still shows that the pod
// must leave.
func takenFrom(pod *corev1.Pod) *Origin {
	if _, ok := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; ok {
		return nil
	}
	label, labelled := pod.Labels[v1beta1.LabelSurged]
	if _, ok := pod.Annotations[v1beta1.AnnotationSurgeOrigin]; !ok && !labelled {
		return nil
	}
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil && ref.Kind != kindReplicaSet {
		return nil
	}
	if o, ok := SurgedFrom(pod); ok {
		return &o
	}
	return &Origin{ReplicaSet: label}
}

// resolveSurged fills in the state of the surged pods. It needs their turns.
func (s *planContext) resolveSurged() {
	var surged []*podState
	for _, c := range s.pods {
		if c.surged != nil && !isLeaving(c.pod) && !stays(c.pod) {
			surged = append(surged, c)
		}
	}
	lines := map[types.UID]*surgedGroup{}
	for _, c := range surged {
		l := lines[c.surged.UID]
		if l == nil {
			l = &surgedGroup{}
			if set := s.known.sets[c.surged.UID]; set != nil && set.DeletionTimestamp == nil {
				l.set = set
			}
			lines[c.surged.UID] = l
		}
		s.addSurged(c, l)
	}
	s.resolveWaves()
}

func (s *planContext) addSurged(c *podState, l *surgedGroup) {
	c.group = l
	// A time in the future comes from another clock: it delays no pod.
	if at := c.surged.Time; !at.After(s.now.Add(successorTimeout)) {
		c.successorDeadline = at.Add(successorTimeout)
		if at.After(l.newest) {
			l.newest = at
		}
	}
	l.unreleased = l.unreleased || metav1.GetControllerOfNoCopy(c.pod) != nil
	l.unseen = l.unseen || (l.set != nil && c.surged.Seen != "" && c.surged.Seen == l.set.ResourceVersion)
	if IsReady(c.pod) && s.awaitsTurn(c) && s.now.Before(c.successorDeadline) {
		c.staying = true
		l.staying++
	}
}

func (l *surgedGroup) settled() time.Time { return l.newest.Add(surgeStatusDelay) }

// uncounted says why the ReplicaSet's status is not trusted yet.
func (l *surgedGroup) uncounted(now time.Time) string {
	switch {
	case l.unreleased:
		return fmt.Sprintf("ReplicaSet %s has not let go of it yet", l.set.Name)
	case l.unseen, l.set.Status.ObservedGeneration < l.set.Generation, now.Before(l.settled()):
		return fmt.Sprintf("ReplicaSet %s has not recounted its pods yet", l.set.Name)
	}
	return ""
}

// hasSpareReady reports whether the ReplicaSet has as many Ready pods as it wants without one more of
// the surged pods.
func (l *surgedGroup) hasSpareReady() bool {
	return l.set.Status.ReadyReplicas+l.staying-wanted(l.set.Spec.Replicas) > l.evicted
}

func (l *surgedGroup) count() string {
	return fmt.Sprintf("ReplicaSet %s has %d of %d Ready", l.set.Name, l.set.Status.ReadyReplicas, wanted(l.set.Spec.Replicas))
}

// isOverdue reports whether a surged pod serves, and its ReplicaSet lacks Ready pods after the time
// in which its successor should have started.
func (c *podState) isOverdue(now time.Time) bool {
	return c.group != nil && c.group.set != nil && IsReady(c.pod) && !now.Before(c.successorDeadline) &&
		c.group.set.Status.ReadyReplicas < wanted(c.group.set.Spec.Replicas)
}

// markReleased records that a surged pod leaves.
func (c *podState) markReleased() {
	if c.staying {
		c.group.evicted++
	}
}

// awaitsSuccessor holds a surged pod until its ReplicaSet has as many Ready pods as it wants
// without it, as long as there is time. The pod always leaves in the end: no controller would
// take it back.
func awaitsSuccessor(s *planContext, c *podState) (Verdict, bool) {
	if c.group == nil {
		return Verdict{}, false
	}
	why, goes := s.release(c)
	if goes {
		c.whyReleased = why
		return Verdict{}, false
	}
	latest := c.successorDeadline
	if !s.now.Before(latest) { // it waits for others, so none of a higher rank waits for it
		return say(StepWaits, "waits: "+why+s.byItsTurn(c))
	}
	c.moving = true
	if !c.turn.IsZero() {
		latest = earliest(latest, c.turn)
	}
	return say(StepWaits, fmt.Sprintf("waits: %s; evicted at %s at the latest", why, clock(latest)))
}

// release says why a surged pod leaves or waits, and whether it leaves.
func (s *planContext) release(c *podState) (string, bool) {
	l := c.group
	switch {
	case l.set == nil:
		return fmt.Sprintf("ReplicaSet %s, which it was taken from, is gone", c.surged.ReplicaSet), true
	case wanted(l.set.Spec.Replicas) == 0:
		return fmt.Sprintf("ReplicaSet %s, which it was taken from, is scaled to zero", l.set.Name), true
	case !IsReady(c.pod):
		return "it is not Ready itself, so no traffic is lost", true
	}
	uncounted := l.uncounted(s.now)
	switch {
	case uncounted == "" && l.hasSpareReady():
		return fmt.Sprintf("its successor is Ready (%s)", l.count()), true
	case !s.awaitsTurn(c):
		return "its successor is not Ready, but " + s.whyOverridden(c), true
	case c.isOverdue(s.now) && s.known.waves[c.surged.UID].unsurged > 0:
		return fmt.Sprintf("its successor has found no room, or has not started, for %s; it leaves after the other pods of ReplicaSet %s", successorWait(), l.set.Name), false
	case !s.now.Before(c.successorDeadline):
		return fmt.Sprintf("its successor is not Ready after %s, which is long enough", successorWait()), true
	case uncounted != "":
		return uncounted, false
	}
	return fmt.Sprintf("its successor is not Ready yet (%s)", l.count()), false
}

// maySurge reports whether the pod's successor starts before the pod stops, so that its leave
// uses no disruption of a PodDisruptionBudget. What holds a pod until its last call leaves no time
// for that.
func (s *planContext) maySurge(c *podState) bool {
	switch {
	case c.surged != nil:
		return true
	case c.strategy != v1beta1.StrategySurge, s.facts.SurgeDisabled, c.hold.active() && !c.hold.endsBefore(c.lastCall):
		return false
	}
	return s.known.eligibilityOf(c.pod).not == ""
}

// successorFirst surges a pod if the policy says so and it may run twice. That uses no
// disruption of a PodDisruptionBudget. At its turn a surge is pointless: stopping the pod starts
// its successor too.
func successorFirst(s *planContext, c *podState) (Verdict, bool) {
	if c.strategy != v1beta1.StrategySurge || c.surged != nil {
		return Verdict{}, false
	}
	if s.facts.SurgeDisabled {
		c.whyUnsurged = "surge is disabled in lifeboatd, by --surge=false or the chart's value surge.enabled"
		return Verdict{}, false
	}
	if !s.awaitsTurn(c) && permitFor(c).granted {
		c.whyUnsurged = s.whyOverridden(c)
		return Verdict{}, false
	}
	fit := s.known.eligibilityOf(c.pod)
	switch {
	case fit.not == "" && s.known.waves[fit.set.UID].noRoom:
		c.whyUnsurged = fmt.Sprintf("an earlier successor has found no room, or has not started, for %s", successorWait())
		return Verdict{}, false
	case fit.not == "" && fit.unsettled == "":
		if v, waits := s.awaitsWave(c, fit); waits {
			return v, true
		}
		return s.surge(c, fit), true
	case fit.not == "" && s.awaitsTurn(c):
		c.moving = true
		return say(StepWaits, fmt.Sprintf("waits: it will be surged, but %s%s", fit.unsettled, s.byItsTurn(c)))
	}
	c.whyUnsurged = fit.not + fit.unsettled
	return Verdict{}, false
}

func (s *planContext) surge(c *podState, fit surgeEligibility) Verdict {
	end := c.lastCall
	if s.awaitsTurn(c) {
		end = c.turn
	}
	// A time that is counted from now would change with every pass of a drain that waits.
	latest := "after " + successorWait()
	if !end.IsZero() && end.Before(s.now.Add(successorTimeout)) {
		latest = "at " + clock(end)
	}
	return Verdict{
		Step: StepSurge,
		Reason: fmt.Sprintf("its successor is started first: Deployment %s may run it twice; evicted when that is Ready, %s at the latest",
			fit.deployment.Name, latest),
		Origin: &Origin{
			ReplicaSet: fit.set.Name, UID: fit.set.UID, Hash: c.pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey],
			Time: s.now, Seen: fit.set.ResourceVersion,
		},
	}
}

// whyNotSurged is the end of the reason of a pod that the policy would have surged.
func (c *podState) whyNotSurged() string {
	if c.whyUnsurged == "" {
		return ""
	}
	return fmt.Sprintf(" (not surged: %s)", c.whyUnsurged)
}
