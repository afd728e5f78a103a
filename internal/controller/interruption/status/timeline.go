package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

const (
	// maxTimeline bounds status.timeline, as the CRD does.
	maxTimeline = 50
	// keepFirst is how many of the first entries are kept when the timeline is full.
	keepFirst = 8
	// maxNames is how many pods an entry names, and how many entries of single pods a
	// pass adds for one reason.
	maxNames = 10
	// maxGroupText is the size of an entry about several pods, in bytes: less than the
	// limit of a message.
	maxGroupText = 400
	// maxText is the limit of a message in the CRD, in bytes.
	maxText = 500
	// drillPrefix begins each message about a drill.
	drillPrefix = "Drill: "
)

// event is a timeline entry; if it is about a pod, also which pod and what happened.
type event struct {
	v1beta1.TimelineEntry
	pod  *corev1.ObjectReference
	what string
}

// Record notes for the timeline what happens now.
func (u *Update) Record(reason, message string) { u.RecordAt(u.now, reason, message) }

// RecordAt notes for the timeline what happened at a time.
func (u *Update) RecordAt(at time.Time, reason, message string) {
	if record.IsDrill(u.after) {
		message = drillPrefix + message
	}
	entry := v1beta1.TimelineEntry{Time: MicroTime(at), Reason: reason, Message: Clip(message)}
	u.events, u.timelineDirty = append(u.events, event{TimelineEntry: entry}), true
	u.material = u.material || !reasons[reason].transitional
}

// recordPod notes what happened to a pod.
func (u *Update) recordPod(reason string, left v1beta1.PodStatus, what string) {
	u.Record(reason, podName(left)+" "+what)
	last := &u.events[len(u.events)-1]
	last.what, last.pod = what, &corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: left.Namespace, Name: left.Name, UID: left.UID,
	}
}

// recordNames adds one entry for several pods.
func (u *Update) recordNames(reason, what string, names []string) {
	if len(names) == 0 {
		return
	}
	shown := names[:min(len(names), maxNames)]
	text := what + " " + strings.Join(shown, ", ")
	if more := len(names) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	u.Record(reason, text)
}

// recordEach notes for each pod why it is held back, and how many there are beyond the
// bound.
func (u *Update) recordEach(reason string, pods []v1beta1.PodStatus) {
	for _, left := range pods[:min(len(pods), maxNames)] {
		u.recordPod(reason, left, left.Message)
	}
	if more := len(pods) - maxNames; more > 0 {
		u.Record(reason, fmt.Sprintf("and %d more pods; see status.drain.pods", more))
	}
}

// buildTimeline adds the events of this pass to the timeline.
func (u *Update) buildTimeline() {
	if !u.timelineDirty {
		return
	}
	all := slices.Clone(u.entries)
	for _, e := range timelineEntries(slices.Concat(u.writtenEvents, u.events)) {
		all = append(all, e.TimelineEntry)
	}
	u.after.Status.Timeline, u.timelineDirty = trim(all), false
}

// podGroup is one entry about several pods.
type podGroup struct {
	at    int // its index among the merged events
	names []string
	whats []string
}

// timelineEntries merges events about pods into one entry where the same happened to
// several at the same time: one for each pod would fill the timeline.
func timelineEntries(all []event) []event {
	return groupPods(all, maxGroupText, func(e event) string { return e.what })
}

// kubernetesEvents merges events about pods into one for each reason and pass. Pods whose
// sentences differ, because each has a budget of its own, share it too: one for each pod
// would be most requests of a drain. The timeline has every sentence.
func kubernetesEvents(all []event) []event {
	return groupPods(all, 0, func(event) string { return "" })
}

// groupPods merges events about pods that have the same reason, time and key. A new group
// begins where the text would exceed maxLen bytes; zero: never.
func groupPods(all []event, maxLen int, key func(event) string) []event {
	var merged []event
	groups := map[string]*podGroup{} // the open ones
	for _, e := range all {
		if e.pod == nil {
			merged = append(merged, e)
			continue
		}
		id, name := fmt.Sprint(e.Reason, e.Time.UnixMicro(), key(e)), e.pod.Namespace+"/"+e.pod.Name
		g := groups[id]
		if g != nil {
			with := &podGroup{at: g.at, names: append(g.names, name), whats: append(g.whats, e.what)}
			if text := with.text(); maxLen == 0 || len(text) <= maxLen {
				if strings.HasPrefix(e.Message, drillPrefix) {
					text = drillPrefix + text
				}
				merged[g.at].pod, merged[g.at].Message = nil, Clip(text)
				groups[id] = with
				continue
			}
		}
		groups[id] = &podGroup{at: len(merged), names: []string{name}, whats: []string{e.what}}
		merged = append(merged, e)
	}
	return merged
}

// trim keeps a timeline within its bound: the first entries and the latest.
func trim(t []v1beta1.TimelineEntry) []v1beta1.TimelineEntry {
	if over := len(t) - maxTimeline; over > 0 {
		return append(t[:keepFirst:keepFirst], t[keepFirst+over:]...)
	}
	return t
}
