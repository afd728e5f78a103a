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
func (r *report) entries() map[types.UID]*v1alpha1.PodLeft {
	byUID := map[types.UID]*v1alpha1.PodLeft{}
	for i := range r.after.Status.PodsLeft {
		byUID[r.after.Status.PodsLeft[i].UID] = &r.after.Status.PodsLeft[i]
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
		if v.Step == drain.StepSurge || left == nil || left.Verdict == verdictLost || left.Verdict == verdictRefused {
			continue
		}
		r.tell(v.Pod.UID, *left)
		r.isAsked(left, v)
	}
}

// tell notes how a pod stood before it was said what becomes of it.
func (r *report) tell(pod types.UID, was v1alpha1.PodLeft) {
	if r.told == nil {
		r.told = map[types.UID]v1alpha1.PodLeft{}
	}
	r.told[pod] = was
}

// isAsked says that a pod was asked to stop.
func (r *report) isAsked(left *v1alpha1.PodLeft, v drain.Verdict) {
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
	left   v1alpha1.PodLeft
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
func (r *report) retract(left *v1alpha1.PodLeft) {
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

// touchUp is by how much the time at which a pod was asked to stop, as it was
// foretold, may be wrong without being written anew for that alone: it is put right
// with what is written next.
const touchUp = 5 * time.Second

// isTouchUp reports whether a status differs from what it was by no more than the
// second at which pods were asked to stop, the sentence that says so, and their
// order.
func isTouchUp(was, is *v1alpha1.InterruptionStatus) bool {
	if len(was.PodsLeft) != len(is.PodsLeft) {
		return false
	}
	before, after := *was, *is
	before.PodsLeft, after.PodsLeft = byUID(was.PodsLeft), byUID(is.PodsLeft)
	for i := range after.PodsLeft {
		before, left := &before.PodsLeft[i], &after.PodsLeft[i]
		if before.Verdict != string(drain.StepLeaving) || before.AskedTime == nil || left.AskedTime == nil {
			continue
		}
		if left.AskedTime.Sub(before.AskedTime.Time).Abs() <= touchUp {
			left.AskedTime, left.Reason = before.AskedTime, before.Reason
		}
	}
	return equality.Semantic.DeepEqual(before, after)
}

// byUID returns a list in an order that no plan changes.
func byUID(pods []v1alpha1.PodLeft) []v1alpha1.PodLeft {
	return slices.SortedFunc(slices.Values(pods), func(a, b v1alpha1.PodLeft) int { return strings.Compare(string(a.UID), string(b.UID)) })
}
