package drain

import (
	"fmt"
	"math"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

const (
	// longestWave is how long a wave of surges takes at most while the next one still has time. A
	// pod is surged at twice the time of a wave before its turn at the latest.
	longestWave = 30 * time.Second
	// waveOverhead is the time of a wave in which no pod starts: the scheduler and the
	// controllers' counts take it.
	waveOverhead = 5 * time.Second
)

// waves counts the surges of one ReplicaSet on this node. A surged pod serves, but the ReplicaSet
// and its Deployment do not count it: if all were surged at once, the Deployment's status would
// say that no pod is available.
type waves struct {
	// left are the pods that may still be surged, under way those whose successors are not
	// Ready, and missing those that the whole ReplicaSet lacks.
	left, underWay, missing int
	// noRoom is set if a successor was not Ready in time: then the other pods are evicted as
	// their budgets allow, since each surge would take as long. unsurged are these others.
	noRoom   bool
	unsurged int
	// time is how long a wave takes: twice the time in which the slowest of the pods started,
	// since the new node may have to pull its image.
	time time.Duration
}

func (w *waves) observe(pod *corev1.Pod) {
	w.time = max(w.time, min(2*startTime(pod)+waveOverhead, longestWave))
}

// startTime is how long the pod took to become Ready. A pod that became Ready again later gives a
// longer time.
func startTime(pod *corev1.Pod) time.Duration {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && pod.Status.StartTime != nil && !c.LastTransitionTime.Before(pod.Status.StartTime) {
			return min(c.LastTransitionTime.Sub(pod.Status.StartTime.Time), longestWave)
		}
	}
	return longestWave
}

// resolveWaves counts the surges of each ReplicaSet. It needs the groups.
func (s *planContext) resolveWaves() {
	s.known.waves = map[types.UID]*waves{}
	of := func(uid types.UID) *waves {
		w := s.known.waves[uid]
		if w == nil {
			w = &waves{}
			if set := s.known.sets[uid]; set != nil {
				w.missing = int(max(0, wanted(set.Spec.Replicas)-set.Status.ReadyReplicas))
			}
			s.known.waves[uid] = w
		}
		return w
	}
	for _, c := range s.pods {
		switch {
		case c.surged != nil:
			if c.isOverdue(s.now) {
				of(c.surged.UID).noRoom = true
			}
			if c.staying {
				w := of(c.surged.UID)
				w.underWay++
				w.observe(c.pod)
			}
		case c.strategy == v1beta1.StrategySurge && !isLeaving(c.pod) && !stays(c.pod):
			if fit := s.known.eligibilityOf(c.pod); fit.set != nil && fit.not == "" {
				w := of(fit.set.UID)
				w.left++
				if !c.hold.active() {
					w.unsurged++
				}
				w.observe(c.pod)
			}
		}
	}
}

// awaitsWave holds a pod that would be surged until its ReplicaSet has recovered from earlier
// surges. Waves follow the limits of the Deployment's own rollouts while there is time, and become
// larger as the pods' turn comes near.
func (s *planContext) awaitsWave(c *podState, of surgeEligibility) (Verdict, bool) {
	w := s.known.waves[of.set.UID]
	size := wanted(of.set.Spec.Replicas) // at least one at a time, and no more than a rollout may add and miss
	atOnce := max(1, min(rolloutSetting(of.deployment, size, true), rolloutSetting(of.deployment, size, false)))
	if !c.turn.IsZero() {
		fit := int64((c.turn.Sub(s.now) - 1) / w.time) // how many waves there is time for
		if fit <= 1 {
			atOnce = math.MaxInt
		} else {
			atOnce = max(atOnce, ceil(w.left+w.underWay, int(fit)))
			c.nextWave = c.turn.Add(-time.Duration(fit) * w.time)
		}
	}
	// One is always under way, whatever else the ReplicaSet lacks.
	if w.underWay == 0 || max(w.underWay, w.missing) < atOnce {
		w.left, w.underWay, w.missing = w.left-1, w.underWay+1, w.missing+1
		return Verdict{}, false
	}
	c.moving = true
	return say(StepWaits, fmt.Sprintf("waits: it will be surged after others: Deployment %s may replace %d at a time%s", of.deployment.Name, atOnce, s.byItsTurn(c)))
}

// rolloutSetting returns the maxSurge of the Deployment, rounded up, or its maxUnavailable, rounded
// down. The defaults are 25 % each (k8s.io/api/apps/v1, RollingUpdateDeployment).
func rolloutSetting(d *appsv1.Deployment, size int32, surge bool) int {
	value := intstr.FromString("25%")
	if r := d.Spec.Strategy.RollingUpdate; r != nil && surge && r.MaxSurge != nil {
		value = *r.MaxSurge
	} else if r != nil && !surge && r.MaxUnavailable != nil {
		value = *r.MaxUnavailable
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(&value, int(size), surge)
	if err != nil {
		return 1
	}
	return n
}

// ceil returns a / b, rounded up.
func ceil(a, b int) int { return (a + b - 1) / b }
