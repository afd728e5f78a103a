package interruption

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// entries are where the pods stand in the status, by UID.
func (r *report) entries() map[types.UID]*v1alpha1.PendingPod {
	byUID := map[types.UID]*v1alpha1.PendingPod{}
	for i := range r.drain().PendingPods {
		byUID[r.drain().PendingPods[i].UID] = &r.drain().PendingPods[i]
	}
	return byUID
}

// foretell says of the pods that are about to be asked to stop that they were. Not
// of those that could not be asked the time before: to say so and to take it back
// would be two writes with each try.
func (r *report) foretell(verdicts []drain.Verdict) {
	byUID := r.entries()
	for _, v := range verdicts {
		left := byUID[v.Pod.UID]
		if v.Step == drain.StepSurge || left == nil || left.Verdict == verdictLost {
			continue
		}
		if left.Verdict == verdictRefused && v.Overrides == "" { // an override is always written first
			continue
		}
		r.tell(v.Pod.UID, *left)
		r.isAsked(left, v)
	}
}

// tell notes how a pod stood before it was said what becomes of it.
func (r *report) tell(pod types.UID, was v1alpha1.PendingPod) {
	if r.told == nil {
		r.told = map[types.UID]v1alpha1.PendingPod{}
	}
	r.told[pod] = was
}

// isAsked says that a pod was asked to stop.
func (r *report) isAsked(left *v1alpha1.PendingPod, v drain.Verdict) {
	at := metav1.NewTime(r.now)
	left.AskedTime, left.GraceSeconds = &at, v.GraceSeconds
	if left.GraceSeconds == nil {
		left.GraceSeconds = v.Pod.Spec.TerminationGracePeriodSeconds
	}
	left.Verdict, left.Reason = string(drain.StepLeaving), clip(v.Reason)
	r.untold = append(r.untold, untold{reasonFor(v), *left, v.Reason})
}

// takeBack takes back of all pods that they were asked to stop.
func (r *report) takeBack() {
	for _, left := range r.entries() {
		r.retract(left)
	}
	r.untold = nil
}

// untold is what has happened to a pod, and stands in its entry.
type untold struct {
	reason string
	left   v1alpha1.PendingPod
	what   string
}

// asked notes what became of the pods that were to be asked to stop in this pass.
func (r *report) asked(o outcome) {
	byUID := r.entries()
	for _, v := range o.asked {
		left := byUID[v.Pod.UID]
		if _, told := r.told[v.Pod.UID]; told || left == nil || left.Verdict == verdictLost {
			continue
		}
		r.tell(v.Pod.UID, *left)
		switch v.Step {
		case drain.StepSurge:
			left.Verdict, left.Reason = string(drain.StepSurge), clip(v.Reason)
			r.untold = append(r.untold, untold{v1alpha1.ReasonSurged, *left, v.Reason})
		default:
			r.isAsked(left, v)
		}
	}
	for pod, why := range o.unasked {
		left := byUID[pod]
		if left == nil || left.Verdict == verdictLost {
			continue
		}
		r.retract(left)
		if left.Verdict != verdictRefused || left.Reason != clip(why) {
			r.material = true // a later pass does not find it again
		}
		left.Verdict, left.Reason = verdictRefused, clip(why)
	}
}

// tellPods adds what has happened to pods to the timeline.
func (r *report) tellPods() {
	for _, u := range r.untold {
		r.happenToPod(u.reason, u.left, u.what)
	}
	r.untold = nil
}

// retract takes back that a pod was asked to stop, where that was said.
func (r *report) retract(left *v1alpha1.PendingPod) {
	was, told := r.told[left.UID]
	if !told {
		return
	}
	pod := left.UID
	*left = was
	delete(r.told, pod)
	isIts := func(h happening) bool {
		return h.pod != nil && h.pod.UID == pod && slices.Contains([]string{v1alpha1.ReasonOverridden, v1alpha1.ReasonDeleted, v1alpha1.ReasonEvicted}, h.Reason)
	}
	r.durable, r.happened, r.isNews = slices.DeleteFunc(r.durable, isIts), slices.DeleteFunc(r.happened, isIts), true
}

// maxCorrection is by how much the written eviction time of a pod may be wrong
// without a write for that alone.
const maxCorrection = 5 * time.Second

// isNegligible reports whether two versions of a status differ at most in the order of
// pods and in the second at which they were evicted. The next write corrects that.
func isNegligible(was, is *v1alpha1.InterruptionStatus) bool {
	if was.Drain == nil || is.Drain == nil || len(was.Drain.PendingPods) != len(is.Drain.PendingPods) {
		return equality.Semantic.DeepEqual(was, is)
	}
	before, after := was.DeepCopy(), is.DeepCopy()
	before.Drain.PendingPods, after.Drain.PendingPods = byUID(before.Drain.PendingPods), byUID(after.Drain.PendingPods)
	for i := range after.Drain.PendingPods {
		before, left := &before.Drain.PendingPods[i], &after.Drain.PendingPods[i]
		if before.Verdict != string(drain.StepLeaving) || before.AskedTime == nil || left.AskedTime == nil {
			continue
		}
		if left.AskedTime.Sub(before.AskedTime.Time).Abs() <= maxCorrection {
			left.AskedTime, left.Reason = before.AskedTime, before.Reason
		}
	}
	return equality.Semantic.DeepEqual(before, after)
}

// byUID returns pods in an order that does not depend on the plan.
func byUID(pods []v1alpha1.PendingPod) []v1alpha1.PendingPod {
	return slices.SortedFunc(slices.Values(pods), func(a, b v1alpha1.PendingPod) int { return strings.Compare(string(a.UID), string(b.UID)) })
}
