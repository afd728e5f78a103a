package drain

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// annotationVolcanoGroup names the PodGroup of a pod (volcano-sh/apis, scheduling/v1beta1,
// KubeGroupNameAnnotationKey).
const annotationVolcanoGroup = "scheduling.k8s.io/group-name"

// Labels of pods that end or restart together. Sources: kubernetes-sigs/scheduler-plugins
// (apis/scheduling), kubernetes-sigs/jobset (its restart policy recreates all Jobs), and
// kubernetes-sigs/lws (RecreateGroupOnPodRestart).
const (
	labelPodGroup      = "scheduling.x-k8s.io/pod-group"
	labelJobSet        = "jobset.sigs.k8s.io/jobset-name"
	labelLeaderWorkers = "leaderworkerset.sigs.k8s.io/name"
	labelReplica       = "leaderworkerset.sigs.k8s.io/group-index"
)

// gang is the pods of one gang on the node. They are planned as one: if one of them goes, all do.
type gang struct {
	name    string
	members []*podState
}

// gangOf names the gang of a pod, or is empty.
func gangOf(pod *corev1.Pod) string {
	if name := pod.Labels[labelPodGroup]; name != "" {
		return "PodGroup " + name
	}
	if name := pod.Annotations[annotationVolcanoGroup]; name != "" {
		return "PodGroup " + name
	}
	if name := pod.Labels[labelJobSet]; name != "" {
		return "JobSet " + name
	}
	if name := pod.Labels[labelLeaderWorkers]; name != "" {
		return fmt.Sprintf("replica %s of LeaderWorkerSet %s", pod.Labels[labelReplica], name)
	}
	return ""
}

// joinGangs finds the gangs with several pods on the node. All pods of a gang have the earliest last
// call of any, so that the one with the longest grace gets it whole.
func (s *planContext) joinGangs() {
	byName := map[string]*gang{}
	for _, c := range s.pods {
		name := gangOf(c.pod)
		if name == "" || stays(c.pod) || isLeaving(c.pod) || c.strategy == v1beta1.StrategyNever {
			continue
		}
		key := c.pod.Namespace + "/" + name
		if byName[key] == nil {
			byName[key] = &gang{name: name}
		}
		byName[key].members = append(byName[key].members, c)
	}
	for _, g := range byName {
		if len(g.members) > 1 {
			g.join()
		}
	}
}

func (g *gang) join() {
	first := g.members[0].lastCall
	for _, c := range g.members {
		if c.lastCall.IsZero() { // it is respected whatever the deadline
			continue
		}
		if first.IsZero() || c.lastCall.Before(first) {
			first = c.lastCall
		}
	}
	for _, c := range g.members {
		c.gang = g
		if !c.lastCall.IsZero() {
			c.lastCall, c.turn = first, first
		}
	}
}

// holdGangs makes the pods of a gang wait while one of them waits, until their last call. Without a
// last call a PodDisruptionBudget holds only the pods that it does not let go: it may never let
// all go at once.
func (s *planContext) holdGangs(verdicts []Verdict) {
	held := map[*gang]*Verdict{}
	for i, c := range s.pods {
		if c.gang != nil && held[c.gang] == nil && verdicts[i].Step == StepWaits && (!c.byBudget || !c.lastCall.IsZero()) {
			held[c.gang] = &verdicts[i]
		}
	}
	for i, c := range s.pods {
		v := &verdicts[i]
		if c.gang == nil || v.Step == StepWaits || v.Step == StepStays {
			continue
		}
		if waits := held[c.gang]; waits != nil && !s.lastCallReached(c) {
			*v = Verdict{Pod: v.Pod, LastCall: v.LastCall, Returned: v.Returned, Step: StepWaits, Cause: v1beta1.PodReasonGang, Reason: clip(fmt.Sprintf(
				"waits: the pods of %s leave together, and %s is held%s (%s)", c.gang.name, waits.Pod.Name, s.byItsTurn(c), waits.Reason))}
			continue
		}
		v.Reason = clip(fmt.Sprintf("%s; the %d pods of %s on this node leave together", v.Reason, len(c.gang.members), c.gang.name))
	}
}
