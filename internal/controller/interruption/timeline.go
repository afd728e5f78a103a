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
	// eachAtMost is how many pods an entry names, and of how many that are held back in
	// one pass it is told.
	eachAtMost = 10
	// longest is what an entry that tells of several pods has at most, in bytes, within
	// what a sentence may have.
	longest = 400
)

// drillPrefix begins what is reported of a drill.
const drillPrefix = "Drill: "

// happen notes for the timeline what happens now.
func (r *report) happen(reason, message string) { r.happenAt(r.now, reason, message) }

func (r *report) happenAt(at time.Time, reason, message string) {
	r.happened, r.isNews = append(r.happened, happening{TimelineEntry: r.entry(at, reason, message)}), true
	r.material = r.material || isMaterial(reason)
}

func (r *report) entry(at time.Time, reason, message string) v1alpha1.TimelineEntry {
	if isDrill(r.after) {
		message = drillPrefix + message
	}
	return v1alpha1.TimelineEntry{Time: microTime(at), Reason: reason, Message: clip(message)}
}

// happening is something that happened; if it happened to a pod, to which, and what.
type happening struct {
	v1alpha1.TimelineEntry
	pod  *corev1.ObjectReference
	what string
}

// happenToPod notes what happened to a pod.
func (r *report) happenToPod(reason string, left v1alpha1.PendingPod, what string) {
	r.happen(reason, podName(left)+" "+what)
	last := &r.happened[len(r.happened)-1]
	last.what, last.pod = what, &corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: left.Namespace, Name: left.Name, UID: left.UID,
	}
}

// timeline brings the timeline up to date with what has happened. What happened to
// several pods at the same moment is one entry, or as many as it takes to name them: it
// would fill the timeline, and most of the record, to say it anew of each.
func (r *report) timeline() {
	if !r.isNews {
		return
	}
	all := slices.Clone(r.older)
	open := map[string]*group{}
	for _, h := range slices.Concat(r.durable, r.happened) {
		if h.pod == nil {
			all = append(all, h.TimelineEntry)
			continue
		}
		name, key := h.pod.Namespace+"/"+h.pod.Name, fmt.Sprint(h.Reason, h.Time.UnixMicro(), h.what)
		g := open[key]
		if g == nil || len(g.text(h.what, name)) > longest {
			g = &group{at: len(all)}
			all, open[key] = append(all, h.TimelineEntry), g
		}
		g.pods = append(g.pods, name)
		if len(g.pods) > 1 {
			all[g.at] = r.entry(h.Time.Time, h.Reason, g.text(h.what))
		}
	}
	r.after.Status.Timeline, r.isNews = trim(all), false
}

// group is the pods that one entry tells of, and where that is.
type group struct {
	at   int
	pods []string
}

// text says what happened to the pods, and to some more.
func (g *group) text(what string, more ...string) string {
	pods := slices.Concat(g.pods, more)
	return fmt.Sprintf("%s (%d pods: %s)", what, len(pods), strings.Join(pods, ", "))
}

// mergePods returns what happened, with one entry for what happened to several pods at the
// same moment: an Event for each pod would be most of the requests of a drain.
func mergePods(all []happening) []happening {
	var merged []happening
	open := map[string]int{}
	pods := map[string]*group{}
	for _, h := range all {
		if h.pod == nil {
			merged = append(merged, h)
			continue
		}
		name, key := h.pod.Namespace+"/"+h.pod.Name, fmt.Sprint(h.Reason, h.Time.UnixMicro(), h.what)
		at, known := open[key]
		if !known {
			open[key], pods[key] = len(merged), &group{pods: []string{name}}
			merged = append(merged, h)
			continue
		}
		pods[key].pods = append(pods[key].pods, name)
		text := pods[key].text(h.what)
		if strings.HasPrefix(h.Message, drillPrefix) {
			text = drillPrefix + text
		}
		merged[at].pod, merged[at].Message = nil, clip(text)
	}
	return merged
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

// happenEach notes for each pod why it is held back, and how many there are beyond the
// bound.
func (r *report) happenEach(reason string, pods []v1alpha1.PendingPod) {
	for _, left := range pods[:min(len(pods), eachAtMost)] {
		r.happenToPod(reason, left, left.Reason)
	}
	if more := len(pods) - eachAtMost; more > 0 {
		r.happen(reason, fmt.Sprintf("and %d more pods; see status.drain.pendingPods", more))
	}
}

// trim keeps a timeline within its bound: its beginning, and its end.
func trim(t []v1alpha1.TimelineEntry) []v1alpha1.TimelineEntry {
	if over := len(t) - maxTimeline; over > 0 {
		return append(t[:keepFirst:keepFirst], t[keepFirst+over:]...)
	}
	return t
}

// emit turns what happened into one Kubernetes Event, about what it concerns most: a
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
