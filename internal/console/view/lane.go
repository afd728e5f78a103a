package view

import (
	"fmt"
	"slices"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// Lane is one line of a time line: the node, its replacement, a hook or a pod.
type Lane struct {
	// Of is node, replacement, hook or pod.
	Of     string `json:"of"`
	Label  string `json:"label"`
	State  string `json:"state,omitempty"`
	Reason string `json:"reason,omitempty"`
	Tone   Tone   `json:"tone,omitempty"`
	// Text says in words what the segments and marks show.
	Text     string    `json:"text"`
	Segments []Segment `json:"segments,omitempty"`
	Marks    []Mark    `json:"marks,omitempty"`
}

// Segment is a part of a lane. Without an end it goes on.
type Segment struct {
	// Is says what happens: runs, waits, leaves, grace, boots, ready or lost.
	Is   string `json:"is"`
	From Millis `json:"from"`
	To   Millis `json:"to,omitempty"`
}

// Mark is a moment in a lane.
type Mark struct {
	// Is says what the moment is: lastcall, asked, gone or lost.
	Is string `json:"is"`
	At Millis `json:"at"`
}

// PodTimes is what a time line shows of a pod. A zero time is not known.
type PodTimes struct {
	Label, State, Reason                   string
	Tone                                   Tone
	Noticed, Surged, Asked, Gone, LastCall time.Time
	Grace                                  time.Duration
	Lost, Stays                            bool
	// GoneUnknown is true if the pod left and the record does not have the time.
	GoneUnknown bool
}

// Lane returns the lane of a pod. Times in its text count from the notice.
func (p PodTimes) Lane() Lane {
	l := Lane{Of: "pod", Label: p.Label, State: p.State, Reason: p.Reason, Tone: p.Tone, Text: p.text()}
	graceEnd := p.Asked.Add(p.Grace)
	switch {
	case p.Stays:
		l.Segments = []Segment{{Is: "runs", From: At(p.Noticed)}}
		return l
	case p.Asked.IsZero() && p.Gone.IsZero():
		l.Segments = []Segment{{Is: "waits", From: At(p.Noticed)}}
	case p.Asked.IsZero():
		l.Segments = []Segment{{Is: "waits", From: At(p.Noticed), To: At(p.Gone)}}
	default:
		l.Segments = []Segment{{Is: "waits", From: At(p.Noticed), To: At(p.Asked)}, {Is: "leaves", From: At(p.Asked), To: At(p.Gone)}}
		if p.GoneUnknown {
			l.Segments = l.Segments[:1]
		}
		l.Marks = append(l.Marks, Mark{Is: "asked", At: At(p.Asked)})
		if from := later(p.Gone, p.Asked); p.Grace > 0 && graceEnd.After(from) && !p.GoneUnknown {
			// Before the last one, so that a pod that still leaves is drawn over its grace.
			l.Segments = slices.Insert(l.Segments, 1, Segment{Is: "grace", From: At(from), To: At(graceEnd)})
		}
	}
	if !p.Surged.IsZero() {
		l.Marks = append(l.Marks, Mark{Is: "surged", At: At(p.Surged)})
	}
	if !p.LastCall.IsZero() {
		l.Marks = append(l.Marks, Mark{Is: "lastcall", At: At(p.LastCall)})
	}
	switch {
	case p.Lost:
		l.Marks = append(l.Marks, Mark{Is: "lost", At: At(p.Gone)})
	case !p.Gone.IsZero():
		l.Marks = append(l.Marks, Mark{Is: "gone", At: At(p.Gone)})
	}
	return l
}

// text describes the lane for people who do not see it.
func (p PodTimes) text() string {
	after := func(t time.Time) string { return Offset(t.Sub(p.Noticed)) }
	text := ""
	add := func(format string, args ...any) {
		if text != "" {
			text += "; "
		}
		text += fmt.Sprintf(format, args...)
	}
	switch {
	case p.Stays:
		return "stays on the node"
	case !p.Surged.IsZero():
		add("its successor was started at %s", after(p.Surged))
	}
	if p.Asked.IsZero() && p.Gone.IsZero() && !p.GoneUnknown {
		add("not asked to leave yet")
	} else if !p.Asked.IsZero() {
		add("asked to leave at %s", after(p.Asked))
	}
	if p.Grace > 0 {
		add("grace %s", p.Grace)
	}
	switch {
	case p.Lost:
		add("lost at %s", after(p.Gone))
	case !p.Gone.IsZero():
		add("gone at %s", after(p.Gone))
	case p.GoneUnknown:
		add("it left, and the record does not have the time")
	}
	if !p.LastCall.IsZero() {
		add("last call at %s", after(p.LastCall))
	}
	return text
}

// Offset formats a time since the notice, such as +1m30s.
func Offset(d time.Duration) string {
	d = d.Round(100 * time.Millisecond)
	if d >= 10*time.Second || d <= -10*time.Second {
		d = d.Round(time.Second)
	}
	if d < 0 {
		return d.String()
	}
	return "+" + d.String()
}

// podLane returns the lane of a pod of an interruption.
func podLane(p record.PodHistory, noticed time.Time) Lane {
	t := PodTimes{
		Label: p.Pod, State: string(p.State), Reason: p.Reason, Noticed: noticed, Surged: p.Surged, Asked: p.Asked, Gone: p.Gone,
		LastCall: p.LastCall, Grace: p.Grace, Lost: p.State == v1beta1.PodLost,
		GoneUnknown: p.State == v1beta1.PodLeft && p.Gone.IsZero(),
	}
	switch {
	case t.Lost:
		t.Tone = Bad
	case p.Overridden, p.State == v1beta1.PodRefused:
		t.Tone = Warn
	case p.State == v1beta1.PodLeft:
		t.Tone = Good
	}
	return t.Lane()
}

// replacementLane returns the lane of the replacement, if there is one.
func replacementLane(r *v1beta1.ReplacementStatus) (Lane, bool) {
	if r == nil || r.StartTime == nil {
		return Lane{}, false
	}
	l := Lane{Of: "replacement", Label: "replacement", State: string(r.Phase), Reason: r.Message}
	if name := r.NodeName; name != "" {
		l.Label += " " + name
	} else if r.Name != "" {
		l.Label += " " + r.Name
	}
	l.Text = "needed"
	from := At(r.StartTime.Time)
	if r.OrderTime != nil {
		l.Text += fmt.Sprintf(", requested after %s", r.OrderTime.Sub(r.StartTime.Time).Round(100*time.Millisecond))
	}
	switch {
	case r.ReadyTime != nil:
		l.Tone = Good
		l.Text += fmt.Sprintf(", ready after %s", r.ReadyTime.Sub(r.StartTime.Time).Round(100*time.Millisecond))
		l.Segments = []Segment{{Is: "boots", From: from, To: At(r.ReadyTime.Time)}, {Is: "ready", From: At(r.ReadyTime.Time)}}
	case r.Phase == v1beta1.ReplacementFailed:
		l.Tone, l.Text = Bad, l.Text+", failed"
		l.Segments = []Segment{{Is: "waits", From: from}}
	default:
		l.Text += ", not ready yet"
		l.Segments = []Segment{{Is: "boots", From: from}}
	}
	return l, true
}

// hookLane returns the lane of a hook of the policy.
func hookLane(h *v1beta1.HookStatus) Lane {
	l := Lane{Of: "hook", Label: "hook " + h.Name, State: string(h.State), Reason: h.Message}
	s := Segment{Is: "waits", From: At(h.StartTime.Time)}
	l.Text = fmt.Sprintf("try %d, running", h.Try)
	if h.CompletionTime != nil {
		s.To = At(h.CompletionTime.Time)
		l.Text = fmt.Sprintf("try %d, took %s", h.Try, h.CompletionTime.Sub(h.StartTime.Time).Round(100*time.Millisecond))
	}
	switch h.State {
	case v1beta1.HookSucceeded:
		l.Tone = Good
	case v1beta1.HookFailed:
		l.Tone = Bad
	}
	l.Segments = []Segment{s}
	return l
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
