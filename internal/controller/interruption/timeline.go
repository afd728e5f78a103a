package interruption

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

const (
	// maxTimeline bounds status.timeline, as the CRD does.
	maxTimeline = 50
	// keepFirst entries, which tell how it began, outlive the rest.
	keepFirst = 8
	// eachAtMost is how many pods of one pass get an entry of their own.
	eachAtMost = 10
)

// happen adds a timeline entry for now.
func (r *report) happen(reason, message string) { r.happenAt(r.now, reason, message) }

func (r *report) happenAt(at time.Time, reason, message string) {
	if isDrill(r.after) {
		message = "Drill: " + message
	}
	h := happening{TimelineEntry: v1alpha1.TimelineEntry{Time: microTime(at), Reason: reason, Message: clip(message)}}
	r.happened = append(r.happened, h)
	r.after.Status.Timeline = append(r.after.Status.Timeline, h.TimelineEntry)
}

// happening is an entry of the timeline, and the pod that it is about, if it is
// about one.
type happening struct {
	v1alpha1.TimelineEntry
	pod *corev1.ObjectReference
}

// happenToPod adds an entry about a pod.
func (r *report) happenToPod(reason string, left v1alpha1.PodLeft, what string) {
	r.happen(reason, podName(left)+" "+what)
	r.happened[len(r.happened)-1].pod = &corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: left.Namespace, Name: left.Name, UID: left.UID,
	}
}

// happenTo adds one entry for several pods.
func (r *report) happenTo(reason, what string, names []string) {
	if len(names) == 0 {
		return
	}
	shown := names[:min(len(names), eachAtMost)]
	text := what + " " + strings.Join(shown, ", ")
	if more := len(names) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	r.happen(reason, text)
}

// happenEach adds an entry per pod, and one for those beyond the bound.
func (r *report) happenEach(reason string, pods []v1alpha1.PodLeft) {
	for _, left := range pods[:min(len(pods), eachAtMost)] {
		r.happenToPod(reason, left, left.Reason)
	}
	if more := len(pods) - eachAtMost; more > 0 {
		r.happen(reason, fmt.Sprintf("and %d more pods; see status.podsLeft", more))
	}
}

// trim keeps the timeline within its bound: its beginning, and its end.
func (r *report) trim() {
	t := r.after.Status.Timeline
	if over := len(t) - maxTimeline; over > 0 {
		r.after.Status.Timeline = append(t[:keepFirst:keepFirst], t[keepFirst+over:]...)
	}
}

// emit turns an entry into one Kubernetes Event, about what it concerns most: a
// pod, the node, or else the record. Not about all of them: events are most of
// what is written for a notice. The record, or the node, is what it is related to.
func (c *Controller) emit(r *report, h happening) {
	typ := corev1.EventTypeNormal
	switch h.Reason {
	case v1alpha1.ReasonPodLost, v1alpha1.ReasonOverridden, v1alpha1.ReasonNoticeReceived, v1alpha1.ReasonHookFailed, v1alpha1.ReasonNotifyFailed,
		v1alpha1.ReasonReplacementFailed, v1alpha1.ReasonHookOpen:
		typ = corev1.EventTypeWarning
	}
	var about, related runtime.Object = r.after, nil
	switch {
	case h.pod != nil:
		about, related = h.pod, r.after
	case r.node != nil && isAboutNode(h.Reason):
		about, related = r.node, r.after
	case r.node != nil:
		related = r.node
	}
	c.Events.Eventf(about, related, typ, h.Reason, h.Reason, "%s", h.Message)
}

// isAboutNode reports whether what happened is to be found with the node.
func isAboutNode(reason string) bool {
	return slices.Contains([]string{
		v1alpha1.ReasonNoticeReceived, v1alpha1.ReasonMarkedAtRisk, v1alpha1.ReasonCordoned, v1alpha1.ReasonDrained,
		v1alpha1.ReasonPutBack, v1alpha1.ReasonPostponed, v1alpha1.ReasonTerminated, v1alpha1.ReasonPodLost,
		v1alpha1.ReasonHandedOver, v1alpha1.ReasonDetached, v1alpha1.ReasonHookHolds, v1alpha1.ReasonHookAnswered, v1alpha1.ReasonHookOpen,
		v1alpha1.ReasonHookPassed,
	}, reason)
}

// isDrill reports whether somebody sent a notice of the record on purpose.
func isDrill(in *v1alpha1.Interruption) bool {
	return slices.ContainsFunc(in.Spec.Notices, func(n v1alpha1.Notice) bool { return n.Drill })
}

func microTime(t time.Time) metav1.MicroTime {
	return metav1.NewMicroTime(t.Truncate(time.Microsecond))
}
