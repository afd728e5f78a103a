package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// Pod records a pod at time t; gone means that it is deleted from the API server.
func (w *World) Pod(t time.Time, pod *corev1.Pod, gone bool) []Moment {
	if pod.Spec.NodeName == "" {
		return nil // not anywhere yet
	}
	p := w.pods[pod.UID]
	if p == nil {
		if gone {
			return nil
		}
		p = newPodTrack(pod)
		w.pods[pod.UID] = p
	}
	before := *p
	p.observe(t, pod, gone)
	w.measure(t)
	n := w.byNode[p.node]
	switch {
	case n == nil || !w.Started() || p.stays:
		return nil
	case !n.interrupted && p.ready && !before.ready:
		return []Moment{w.moment(t, MomentReady, n.name, p.key(), "is Ready on "+n.name)}
	case !n.interrupted:
		return nil
	}
	out := w.asked(t, n, p, before)
	if before.over().IsZero() && !p.over().IsZero() {
		out = append(out, w.ended(t, n, p))
	}
	return append(out, w.emptied(t, n)...)
}

// asked reports that a pod was asked to stop, or got a shorter grace period.
func (w *World) asked(t time.Time, n *nodeTrack, p *podTrack, before podTrack) []Moment {
	switch {
	case before.asked.IsZero() && !p.asked.IsZero() && p.gone.IsZero() && n.powerLost.IsZero():
		return []Moment{w.moment(t, MomentAsked, n.name, p.key(), fmt.Sprintf("asked to stop: needs %s, has %s", seconds(p.need), seconds(p.grace)))}
	case !before.asked.IsZero() && p.grace < before.grace && p.over().IsZero():
		return []Moment{w.moment(t, MomentShortened, n.name, p.key(),
			fmt.Sprintf("its grace is cut from %s to %s", seconds(before.grace), seconds(p.grace)))}
	default:
		return nil
	}
}

func (w *World) ended(t time.Time, n *nodeTrack, p *podTrack) Moment {
	kind := MomentWhole
	switch p.verdict() {
	case Cut:
		kind = MomentCut
	case Lost:
		kind = MomentLost
	}
	return w.moment(t, kind, n.name, p.key(), p.describe())
}

// emptied reports, once, that the last pod which had to leave a node has ended.
func (w *World) emptied(t time.Time, n *nodeTrack) []Moment {
	if n.empty || !n.powerLost.IsZero() || w.left(n) > 0 {
		return nil
	}
	n.empty = true
	text := "empty: every pod that had to leave is gone"
	if !w.deadline.IsZero() {
		text += fmt.Sprintf(", %s before the deadline", seconds(w.deadline.Sub(t)))
	}
	return []Moment{w.moment(t, MomentEmpty, n.name, "", text)}
}

// left counts the pods that still have to leave a node.
func (w *World) left(n *nodeTrack) int {
	count := 0
	for _, p := range w.podsOn(n) {
		if !p.stays && p.over().IsZero() {
			count++
		}
	}
	return count
}

// Record records Lifeboat's Interruption of an instance.
func (w *World) Record(t time.Time, record *v1beta1.Interruption) []Moment {
	n := w.byInstance(record.Spec.InstanceID)
	if n == nil {
		return nil
	}
	n.record = record
	var out []Moment
	for _, notice := range record.Spec.Notices {
		if slices.Contains(n.recordedIDs, notice.ID) {
			continue
		}
		n.recordedIDs = append(n.recordedIDs, notice.ID)
		text := fmt.Sprintf("Lifeboat has recorded: %s", notice.Kind)
		if notice.InstanceState != "" {
			text += " (" + notice.InstanceState + ")"
		}
		out = append(out, w.moment(t, MomentRecorded, n.name, "", text))
	}
	for _, e := range n.newEntries(record.Status.Timeline) {
		pod, text := w.aboutPod(n, e.Message)
		out = append(out, w.moment(t, MomentReported, n.name, pod, text))
	}
	return out
}

// aboutPod splits a message that begins with the name of one of the node's pods.
func (w *World) aboutPod(n *nodeTrack, message string) (pod, text string) {
	first, rest, _ := strings.Cut(message, " ")
	for _, p := range w.podsOn(n) {
		if p.key() == first {
			return first, rest
		}
	}
	return "", message
}

// newEntries returns the new timeline entries. The timeline is bounded: old entries disappear, so
// the function looks for the last one that it returned.
func (n *nodeTrack) newEntries(timeline []v1beta1.TimelineEntry) []v1beta1.TimelineEntry {
	from := 0
	for i, e := range timeline {
		if e.Reason == n.lastEntry.Reason && e.Message == n.lastEntry.Message && e.Time.Equal(&n.lastEntry.Time) {
			from = i + 1
		}
	}
	fresh := timeline[from:]
	if len(fresh) > 0 {
		n.lastEntry = fresh[len(fresh)-1]
	}
	var out []v1beta1.TimelineEntry
	for _, e := range fresh {
		if !isObserved(e.Reason) {
			out = append(out, e)
		}
	}
	return out
}

// isObserved names the entries that the timeline shows from observation, not from Lifeboat's
// record.
func isObserved(reason string) bool {
	switch reason {
	case v1beta1.ReasonNoticeReceived, v1beta1.ReasonCordoned, v1beta1.ReasonPodTerminated, v1beta1.ReasonDrained:
		return true
	default:
		return false
	}
}
