package interruption

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	h := v1alpha1.TimelineEntry{Time: microTime(at), Reason: reason, Message: clip(message)}
	r.happened = append(r.happened, h)
	r.after.Status.Timeline = append(r.after.Status.Timeline, h)
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

// happenEach adds an entry per sentence, and one for those beyond the bound.
func (r *report) happenEach(reason string, sentences []string) {
	for _, s := range sentences[:min(len(sentences), eachAtMost)] {
		r.happen(reason, s)
	}
	if more := len(sentences) - eachAtMost; more > 0 {
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

// emit turns a timeline entry into a Kubernetes Event about the node, to which
// the record is related; or about the record, where there is no node. Not about
// both: events are most of what is written for a notice, and the record has its
// timeline.
func (c *Controller) emit(r *report, h v1alpha1.TimelineEntry) {
	typ := corev1.EventTypeNormal
	switch h.Reason {
	case v1alpha1.ReasonPodLost, v1alpha1.ReasonOverridden, v1alpha1.ReasonNoticeReceived:
		typ = corev1.EventTypeWarning
	}
	if r.node == nil {
		c.Events.Eventf(r.after, nil, typ, h.Reason, h.Reason, "%s", h.Message)
		return
	}
	c.Events.Eventf(r.node, r.after, typ, h.Reason, h.Reason, "%s", h.Message)
}

// isDrill reports whether somebody sent a notice of the record on purpose.
func isDrill(in *v1alpha1.Interruption) bool {
	return slices.ContainsFunc(in.Spec.Notices, func(n v1alpha1.Notice) bool { return n.Drill })
}

func microTime(t time.Time) metav1.MicroTime {
	return metav1.NewMicroTime(t.Truncate(time.Microsecond))
}
