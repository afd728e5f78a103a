package view

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// Detail is one interruption with its time line.
type Detail struct {
	Row
	// Decision says what the policy decided and why.
	Decision string        `json:"decision,omitempty"`
	Needs    []record.Need `json:"needs"`
	Facts    []Fact        `json:"facts"`
	Notices  []Notice      `json:"notices"`
	Entries  []Entry       `json:"entries"`
	Lanes    []Lane        `json:"lanes"`
	// MorePods is the number of pods that left and of which the record has no times.
	MorePods int `json:"morePods,omitempty"`
	// Counts is how many pods the node had over time.
	Counts []Count `json:"counts,omitempty"`
	// From and To are the ends of the axis. An axis without To ends now.
	From Millis `json:"from"`
	To   Millis `json:"to,omitempty"`
	// DeadlineOnAxis is true if the deadline is near enough to be on the axis.
	DeadlineOnAxis bool `json:"deadlineOnAxis,omitempty"`
}

// Fact is a label with a sentence.
type Fact struct {
	Label string `json:"label"`
	Text  string `json:"text"`
	Tone  Tone   `json:"tone,omitempty"`
}

// Notice is a notice about the instance.
type Notice struct {
	Kind     string `json:"kind"`
	Source   string `json:"source"`
	Received Millis `json:"received"`
	Text     string `json:"text,omitempty"`
	State    string `json:"state,omitempty"`
}

// Entry is something that happened.
type Entry struct {
	At     Millis `json:"at"`
	Reason string `json:"reason"`
	Text   string `json:"text"`
	Tone   Tone   `json:"tone,omitempty"`
}

// Count is how many pods were on the node from a time on.
type Count struct {
	At Millis `json:"at"`
	// Serving counts pods that were not asked to leave, and Leaving those that were.
	Serving int `json:"serving"`
	Leaving int `json:"leaving"`
}

// offAxis is how long after the last thing that happened a deadline can be, and still be on the
// axis. A deadline in days would squeeze everything else into one pixel.
const offAxis = 10 * time.Minute

// NewDetail returns an interruption with its time line.
func NewDetail(in *v1beta1.Interruption, program string, now time.Time) Detail {
	d := Detail{
		Row: NewRow(in), Needs: record.Needs(in, program, now), Facts: facts(in, now), Notices: []Notice{}, Entries: []Entry{}, Lanes: []Lane{},
	}
	if d.Needs == nil {
		d.Needs = []record.Need{}
	}
	if in.Status.Decision != nil {
		d.Decision = in.Status.Decision.Message
	}
	for i := range in.Spec.Notices {
		d.Notices = append(d.Notices, notices(in, &in.Spec.Notices[i]))
	}
	for i := range in.Status.Timeline {
		e := &in.Status.Timeline[i]
		d.Entries = append(d.Entries, Entry{At: At(e.Time.Time), Reason: e.Reason, Text: e.Message, Tone: ReasonTone(e.Reason)})
	}
	slices.SortStableFunc(d.Entries, func(a, b Entry) int { return cmp.Compare(a.At, b.At) })
	d.addLanes(in)
	d.setAxis(in, now)
	return d
}

func notices(in *v1beta1.Interruption, n *v1beta1.Notice) Notice {
	v := Notice{Kind: n.Kind, Source: n.Source, Received: At(n.ReceivedTime.Time), Text: cmp.Or(n.Description, n.EventTypeCode, n.InstanceAction)}
	switch {
	case n.Withdrawn:
		v.State = "withdrawn"
	case notice.IsHandled(n, notice.Handled(&in.Status)):
		v.State = "handled"
	}
	return v
}

// addLanes adds the lanes of the node, the replacement, hooks and pods.
func (d *Detail) addLanes(in *v1beta1.Interruption) {
	noticed, drain := record.FirstNotice(in), record.Drain(&in.Status)
	d.Lanes = append(d.Lanes, nodeLane(in, noticed))
	if l, found := replacementLane(drain.Replacement); found {
		d.Lanes = append(d.Lanes, l)
	}
	for i := range drain.Hooks {
		d.Lanes = append(d.Lanes, hookLane(&drain.Hooks[i]))
	}
	pods := record.Pods(in)
	slices.SortStableFunc(pods, func(a, b record.PodHistory) int {
		return cmp.Or(askedOrder(a, b), cmp.Compare(a.Pod, b.Pod))
	})
	for _, p := range pods {
		d.Lanes = append(d.Lanes, podLane(p, noticed))
	}
	d.MorePods = max(0, int(drain.PodCounts.Total)-len(pods))
	d.Counts = counts(pods, noticed)
}

// askedOrder sorts pods that were asked to leave first, in that order.
func askedOrder(a, b record.PodHistory) int {
	switch {
	case a.Asked.IsZero() && b.Asked.IsZero():
		return 0
	case a.Asked.IsZero():
		return 1
	case b.Asked.IsZero():
		return -1
	}
	return a.Asked.Compare(b.Asked)
}

// nodeLane returns the lane of the interrupted node.
func nodeLane(in *v1beta1.Interruption, noticed time.Time) Lane {
	l := Lane{Of: "node", Label: "node " + record.NodeName(in), State: string(in.Status.Phase), Reason: record.Message(in), Tone: tone(in), Text: "noticed"}
	s := Segment{Is: "runs", From: At(noticed)}
	for _, stage := range []struct {
		condition, is, text string
	}{{v1beta1.ConditionCordoned, "leaves", "cordoned"}, {v1beta1.ConditionDrained, "ready", "drained"}} {
		if c := meta.FindStatusCondition(in.Status.Conditions, stage.condition); c != nil && c.Status == "True" {
			// Conditions have whole seconds, and a notice has microseconds.
			at := later(c.LastTransitionTime.Time, noticed)
			s.To = At(at)
			l.Segments, s = append(l.Segments, s), Segment{Is: stage.is, From: At(at)}
			l.Text += fmt.Sprintf("; %s at %s", stage.text, Offset(at.Sub(noticed)))
		}
	}
	if done := in.Status.CompletionTime; done != nil {
		s.To = At(done.Time)
		l.Text += "; over at " + Offset(done.Sub(noticed))
	}
	l.Segments = append(l.Segments, s)
	return l
}

// counts returns how many pods were on the node over time.
func counts(pods []record.PodHistory, noticed time.Time) []Count {
	changes := []time.Time{noticed}
	for _, p := range pods {
		changes = append(changes, p.Asked, p.Gone)
	}
	changes = slices.DeleteFunc(changes, func(t time.Time) bool { return t.IsZero() || t.Before(noticed) })
	slices.SortFunc(changes, time.Time.Compare)
	changes = slices.CompactFunc(changes, time.Time.Equal)
	var all []Count
	for _, t := range changes {
		c := Count{At: At(t)}
		for _, p := range pods {
			switch {
			case p.State == v1beta1.PodLeft && p.Gone.IsZero() && (p.Asked.IsZero() || !t.Before(p.Asked)): // its end is not recorded
			case !p.Gone.IsZero() && !t.Before(p.Gone):
			case !p.Asked.IsZero() && !t.Before(p.Asked):
				c.Leaving++
			default:
				c.Serving++
			}
		}
		all = append(all, c)
	}
	return all
}

// setAxis sets the ends of the axis: from the notice to the last thing that happened or will happen.
func (d *Detail) setAxis(in *v1beta1.Interruption, now time.Time) {
	d.From = At(record.FirstNotice(in))
	end := d.From
	for _, l := range d.Lanes {
		for _, s := range l.Segments {
			end = max(end, s.From, s.To)
		}
	}
	if !d.Over {
		end = max(end, At(now))
	}
	if near := end + Millis(offAxis.Milliseconds()); d.Deadline > 0 && d.Deadline <= near {
		d.DeadlineOnAxis = true
		end = max(end, d.Deadline)
	}
	d.To = max(end, d.From+1000)
	trimMarks(d.Lanes, d.To)
}

// trimMarks removes the marks after the end of the axis.
func trimMarks(lanes []Lane, end Millis) {
	for i := range lanes {
		lanes[i].Marks = slices.DeleteFunc(lanes[i].Marks, func(m Mark) bool { return m.At > end })
	}
}
