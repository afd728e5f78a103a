package drain

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

const (
	// surgePatience is for how long a surged pod waits for its successor, which
	// may find no room.
	surgePatience = 5 * time.Minute
	// surgeSettle is how long after a surge the ReplicaSet's status is not
	// believed. Its controller lets go of the pod first, starts the successor
	// next and counts last (kubernetes pkg/controller/replicaset,
	// syncReplicaSet), so for a moment the status counts a pod as Ready that is
	// not the ReplicaSet's any more. Where the controller is further behind,
	// Origin.Seen tells, unless somebody else changes the ReplicaSet as well.
	surgeSettle = 2 * time.Second
)

// line is what the surged pods of one ReplicaSet on this node have in common.
type line struct {
	// set is the ReplicaSet; nil if it is gone or going.
	set *appsv1.ReplicaSet
	// staying counts those that are Ready and stay as long as they are needed,
	// let those of them that this plan lets go.
	staying, let int32
	newest       time.Time // when the last of them was surged
	unreleased   bool      // the ReplicaSet still controls one
	unseen       bool      // the ReplicaSet has not changed since one was surged
}

// takenFrom returns where a surged pod was taken from, or nil. One that has its
// label back was given back. Where the annotation cannot be read the label
// still tells that the pod has to leave.
func takenFrom(pod *corev1.Pod) *Origin {
	if _, ok := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; ok {
		return nil
	}
	label, labelled := pod.Labels[v1alpha1.LabelSurged]
	if _, ok := pod.Annotations[v1alpha1.AnnotationSurged]; !ok && !labelled {
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

// trace finds out how the surged pods stand. It needs their turns.
func (s *planContext) trace() {
	var surged []*podState
	surges := false
	for _, c := range s.pods {
		surges = surges || c.strategy == v1alpha1.StrategySurge
		if c.surged != nil && !isLeaving(c.pod) && !stays(c.pod) {
			surged = append(surged, c)
		}
	}
	if !surges && surged == nil {
		return
	}
	s.known = indexOwners(s.facts.Owners)
	lines := map[types.UID]*line{}
	for _, c := range surged {
		l := lines[c.surged.UID]
		if l == nil {
			l = &line{}
			if set := s.known.sets[c.surged.UID]; set != nil && set.DeletionTimestamp == nil {
				l.set = set
			}
			lines[c.surged.UID] = l
		}
		s.enlist(c, l)
	}
}

func (s *planContext) enlist(c *podState, l *line) {
	c.line = l
	// A time that lies in the future was not written by this clock: it keeps
	// nobody waiting.
	if at := c.surged.Time; !at.After(s.now.Add(surgePatience)) {
		c.patience = at.Add(surgePatience)
		if at.After(l.newest) {
			l.newest = at
		}
	}
	l.unreleased = l.unreleased || metav1.GetControllerOfNoCopy(c.pod) != nil
	l.unseen = l.unseen || (l.set != nil && c.surged.Seen != "" && c.surged.Seen == l.set.ResourceVersion)
	if IsReady(c.pod) && s.awaitsTurn(c) && s.now.Before(c.patience) {
		c.staying = true
		l.staying++
	}
}

func (l *line) settled() time.Time { return l.newest.Add(surgeSettle) }

// uncounted says why the ReplicaSet's status is not to be believed yet.
func (l *line) uncounted(now time.Time) string {
	switch {
	case l.unreleased:
		return fmt.Sprintf("ReplicaSet %s has not let go of it yet", l.set.Name)
	case l.unseen, l.set.Status.ObservedGeneration < l.set.Generation, now.Before(l.settled()):
		return fmt.Sprintf("ReplicaSet %s has not counted its pods anew yet", l.set.Name)
	}
	return ""
}

// spare reports whether the ReplicaSet has as many Ready as it wants without a
// further one of the surged pods.
func (l *line) spare() bool {
	return l.set.Status.ReadyReplicas+l.staying-wanted(l.set.Spec.Replicas) > l.let
}

func (l *line) count() string {
	return fmt.Sprintf("ReplicaSet %s has %d of %d Ready", l.set.Name, l.set.Status.ReadyReplicas, wanted(l.set.Spec.Replicas))
}

// letGo notes that a surged pod goes.
func (c *podState) letGo() {
	if c.staying {
		c.line.let++
	}
}

// awaitsSuccessor keeps a surged pod until its ReplicaSet has as many Ready as
// it wants without it: so there are never fewer, as long as there is time. It
// always leaves: nothing would take it back.
func awaitsSuccessor(s *planContext, c *podState) (Verdict, bool) {
	if c.line == nil {
		return Verdict{}, false
	}
	why, goes := s.release(c)
	if goes {
		c.released = why
		return Verdict{}, false
	}
	c.moving = true
	latest := c.patience
	if !c.turn.IsZero() {
		latest = earliest(latest, c.turn)
	}
	return say(StepWaits, fmt.Sprintf("waits: %s; evicted at %s at the latest", why, clock(latest)))
}

// release says why a surged pod goes or waits, and whether it goes.
func (s *planContext) release(c *podState) (string, bool) {
	l := c.line
	switch {
	case l.set == nil:
		return fmt.Sprintf("ReplicaSet %s, which it was taken from, is gone", c.surged.ReplicaSet), true
	case wanted(l.set.Spec.Replicas) == 0:
		return fmt.Sprintf("ReplicaSet %s, which it was taken from, is scaled to zero", l.set.Name), true
	case !IsReady(c.pod):
		return "it is not Ready itself, so nobody loses by it", true
	}
	uncounted := l.uncounted(s.now)
	switch {
	case uncounted == "" && l.spare():
		return fmt.Sprintf("its successor is Ready (%s)", l.count()), true
	case !s.awaitsTurn(c):
		return "its successor is not Ready, but " + s.whyOverridden(c), true
	case !s.now.Before(c.patience):
		return fmt.Sprintf("its successor is not Ready after %s, which is long enough", minutes(surgePatience)), true
	case uncounted != "":
		return uncounted, false
	}
	return fmt.Sprintf("its successor is not Ready yet (%s)", l.count()), false
}

// successorFirst surges a pod where the policy says so and it may run twice.
// That takes nothing from a PodDisruptionBudget. Where its time has come it is
// of no use any more: to stop the pod starts its successor as well.
func successorFirst(s *planContext, c *podState) (Verdict, bool) {
	if c.strategy != v1alpha1.StrategySurge || c.surged != nil {
		return Verdict{}, false
	}
	if !s.awaitsTurn(c) && permitFor(c).granted {
		c.unsurged = s.whyOverridden(c)
		return Verdict{}, false
	}
	fit := s.known.fitnessOf(c.pod)
	switch {
	case fit.not == "" && fit.unsettled == "":
		return s.surge(c, fit), true
	case fit.not == "" && s.awaitsTurn(c):
		c.moving = true
		return say(StepWaits, fmt.Sprintf("waits: it is to be surged, but %s%s", fit.unsettled, s.byItsTurn(c)))
	}
	c.unsurged = fit.not + fit.unsettled
	return Verdict{}, false
}

func (s *planContext) surge(c *podState, fit fitness) Verdict {
	latest := s.now.Add(surgePatience)
	switch {
	case c.lastCall.IsZero():
	case s.awaitsTurn(c):
		latest = earliest(latest, c.turn)
	default:
		latest = earliest(latest, c.lastCall)
	}
	return Verdict{
		Step: StepSurge,
		Reason: fmt.Sprintf("its successor is started first: Deployment %s may run it twice; evicted when that is Ready, at %s at the latest",
			fit.deployment, clock(latest)),
		Origin: &Origin{
			ReplicaSet: fit.set.Name, UID: fit.set.UID, Hash: c.pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey],
			Time: s.now, Seen: fit.set.ResourceVersion,
		},
	}
}

// whyNotSurged ends the reason of a pod that the policy would have surged.
func (c *podState) whyNotSurged() string {
	if c.unsurged == "" {
		return ""
	}
	return fmt.Sprintf(" (not surged: %s)", c.unsurged)
}
