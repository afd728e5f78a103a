package record

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// PodHistory is what an Interruption records about one pod. A zero time is not recorded.
type PodHistory struct {
	// Pod is namespace/name.
	Pod string
	// State is the state in status.drain.pendingPods; Left or Lost if the pod is not there.
	State, Reason                 string
	Surged, Asked, Gone, LastCall time.Time
	Grace                         time.Duration
	// Overridden is true if the pod was deleted although a budget protected it.
	Overridden bool
}

// The states of pods that are not in status.drain.pendingPods.
const (
	PodLeft = "Left"
	PodLost = "Lost"
)

var (
	onePod      = regexp.MustCompile(`^[a-z0-9][-a-z0-9]*/[a-z0-9][-a-z0-9.]*$`)
	samePods    = regexp.MustCompile(`^(.*) \([0-9]+ pods: (.*?)\)?$`)
	otherPods   = regexp.MustCompile(`^[0-9]+ pods: (.*)$`)
	departure   = regexp.MustCompile(`^(\S+)(?: \((\S+) of ([0-9]+)s grace\))?$`)
	morePods    = regexp.MustCompile(` and [0-9]+ more$`)
	drillPrefix = "Drill: "
)

// podText is a pod in a timeline entry, with what happened to it.
type podText struct{ pod, what string }

// podsIn returns the pods that a timeline entry about pods names.
func podsIn(message string) []podText {
	message = strings.TrimPrefix(message, drillPrefix)
	var all []podText
	if list := otherPods.FindStringSubmatch(message); list != nil {
		for _, part := range strings.Split(list[1], "; ") {
			name, what, _ := strings.Cut(part, " ")
			all = append(all, podText{name, what})
		}
	} else if list := samePods.FindStringSubmatch(message); list != nil {
		for _, name := range strings.Split(list[2], ", ") {
			all = append(all, podText{name, list[1]})
		}
	} else {
		name, what, _ := strings.Cut(message, " ")
		all = []podText{{name, what}}
	}
	return slices.DeleteFunc(all, func(p podText) bool { return !onePod.MatchString(p.pod) })
}

// PodsIn returns the names of the pods that a timeline entry about pods names.
func PodsIn(message string) []string {
	var names []string
	for _, p := range podsIn(message) {
		names = append(names, p.pod)
	}
	return names
}

// Pods returns the history of each pod of the current drain, in the order in which they are
// recorded. The timeline is bounded, so it can lack pods of a large node.
func Pods(in *v1beta1.Interruption) []PodHistory {
	h := histories{byPod: map[string]*PodHistory{}}
	first := FirstNotice(in)
	for i := range in.Status.Timeline {
		if e := &in.Status.Timeline[i]; !e.Time.Time.Before(first) {
			h.read(e)
		}
	}
	for i := range Drain(&in.Status).PendingPods {
		h.pending(&Drain(&in.Status).PendingPods[i])
	}
	all := make([]PodHistory, len(h.order))
	for i, p := range h.order {
		all[i] = *p
	}
	return all
}

type histories struct {
	byPod map[string]*PodHistory
	order []*PodHistory
}

func (h *histories) of(pod string) *PodHistory {
	if h.byPod[pod] == nil {
		h.byPod[pod] = &PodHistory{Pod: pod, State: PodLeft}
		h.order = append(h.order, h.byPod[pod])
	}
	return h.byPod[pod]
}

// read adds what a timeline entry says about pods.
func (h *histories) read(e *v1beta1.TimelineEntry) {
	switch e.Reason {
	case v1beta1.ReasonPodTerminated:
		h.left(e)
	case v1beta1.ReasonPodLost:
		_, list, _ := strings.Cut(strings.TrimPrefix(e.Message, drillPrefix), ": ")
		for _, pod := range strings.Split(morePods.ReplaceAllString(list, ""), ", ") {
			if onePod.MatchString(pod) {
				p := h.of(pod)
				p.State, p.Reason, p.Gone = PodLost, "it was still there when its instance went", e.Time.Time
			}
		}
	case v1beta1.ReasonSurged:
		for _, named := range podsIn(e.Message) {
			h.of(named.pod).Surged = e.Time.Time
		}
	case v1beta1.ReasonEvicted, v1beta1.ReasonDeleted, v1beta1.ReasonProtectionOverridden:
		for _, named := range podsIn(e.Message) {
			p := h.of(named.pod)
			p.Asked, p.Reason = e.Time.Time, named.what
			p.Overridden = e.Reason == v1beta1.ReasonProtectionOverridden
		}
	}
}

// left reads an entry such as "left shop/web-1 (3s of 30s grace), shop/web-2 and 4 more".
func (h *histories) left(e *v1beta1.TimelineEntry) {
	list := strings.TrimPrefix(strings.TrimPrefix(e.Message, drillPrefix), "left ")
	for _, part := range strings.Split(morePods.ReplaceAllString(list, ""), ", ") {
		m := departure.FindStringSubmatch(part)
		if m == nil || !onePod.MatchString(m[1]) {
			continue
		}
		p := h.of(m[1])
		p.Gone = e.Time.Time
		if seconds, err := strconv.ParseInt(m[3], 10, 64); err == nil {
			p.Grace = time.Duration(seconds) * time.Second
		}
		if took, err := time.ParseDuration(m[2]); err == nil && p.Asked.IsZero() {
			p.Asked = p.Gone.Add(-took)
		}
	}
}

// pending adds what the list of pending pods says about a pod.
func (h *histories) pending(left *v1beta1.PendingPod) {
	p := h.of(left.Namespace + "/" + left.Name)
	p.State, p.Reason = left.State, left.Reason
	if left.State != PodLost {
		p.Gone = time.Time{}
	}
	if left.LastCall != nil {
		p.LastCall = left.LastCall.Time
	}
	if left.EvictionTime != nil {
		p.Asked = left.EvictionTime.Time
	}
	if left.GraceSeconds != nil {
		p.Grace = time.Duration(*left.GraceSeconds) * time.Second
	}
}
