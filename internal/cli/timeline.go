package cli

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
)

// entry is one line of the output of `watch`.
type entry struct {
	Time time.Time `json:"time"`
	// SecondsSinceNotice counts from when Lifeboat received the first notice of
	// this interruption.
	SecondsSinceNotice float64        `json:"secondsSinceNotice"`
	Interruption       string         `json:"interruption"`
	InstanceID         string         `json:"instanceID"`
	Node               string         `json:"node"`
	Kind               string         `json:"kind"`
	Phase              v1alpha1.Phase `json:"phase"`
	Reason             string         `json:"reason"`
	Message            string         `json:"message"`
}

// timeline returns each entry of each Interruption once, however often the
// Interruption is seen. The record's timeline is bounded and drops its middle
// entries first, so entries are identified by content, not by index.
type timeline struct {
	returned map[types.UID]map[v1alpha1.TimelineEntry]bool
}

func newTimeline() *timeline {
	return &timeline{returned: map[types.UID]map[v1alpha1.TimelineEntry]bool{}}
}

// news returns the entries that were not returned before, oldest first.
func (t *timeline) news(in *v1alpha1.Interruption) []entry {
	returned := t.returned[in.UID]
	if returned == nil {
		returned = map[v1alpha1.TimelineEntry]bool{}
		t.returned[in.UID] = returned
	}
	origin := firstNotice(in)
	var news []entry
	for _, e := range in.Status.Timeline {
		key := e
		key.Time.Time = e.Time.UTC() // as a map key, a time must not carry a location
		if returned[key] {
			continue
		}
		returned[key] = true
		news = append(news, entry{
			Time:               e.Time.UTC(),
			SecondsSinceNotice: e.Time.Sub(origin).Round(time.Millisecond).Seconds(),
			Interruption:       in.Name,
			InstanceID:         in.Spec.InstanceID,
			Node:               nodeOf(in),
			Kind:               in.Status.Kind,
			Phase:              in.Status.Phase,
			Reason:             e.Reason,
			Message:            e.Message,
		})
	}
	slices.SortStableFunc(news, func(a, b entry) int { return a.Time.Compare(b.Time) })
	return news
}

// line formats an entry for people.
func (e entry) line(s terminal.Stream) string {
	offset := terminal.Offset(time.Duration(e.SecondsSinceNotice * float64(time.Second)))
	return fmt.Sprintf("%-8s  %s  %s  %s\n", offset, s.Paint(terminal.Bold, e.Node), s.Paint(styleOf(e.Reason), fmt.Sprintf("%-14s", e.Reason)), terminal.Line(e.Message))
}

func styleOf(reason string) terminal.Style {
	switch reason {
	case v1alpha1.ReasonPodLost, v1alpha1.ReasonProtectionOverridden, v1alpha1.ReasonHookFailed:
		return terminal.Bad
	case v1alpha1.ReasonNoticeReceived, v1alpha1.ReasonEvictionBlocked, v1alpha1.ReasonAwaitingApproval, v1alpha1.ReasonOnHold,
		v1alpha1.ReasonQueued, v1alpha1.ReasonPostponed, v1alpha1.ReasonNotifyFailed, v1alpha1.ReasonTerminated:
		return terminal.Warn
	case v1alpha1.ReasonDrained, v1alpha1.ReasonCompleted, v1alpha1.ReasonNodeRestored, v1alpha1.ReasonApproved,
		v1alpha1.ReasonReleased, v1alpha1.ReasonHookSucceeded, v1alpha1.ReasonSurged:
		return terminal.Good
	}
	return terminal.Plain
}

// firstNotice returns when the first notice of the current interruption was
// received.
func firstNotice(in *v1alpha1.Interruption) time.Time {
	var first time.Time
	for _, n := range in.Spec.Notices {
		if in.Status.Since != nil && slices.Contains(in.Status.HandledNotices, n.ID) {
			continue
		}
		if first.IsZero() || n.ReceivedTime.Time.Before(first) {
			first = n.ReceivedTime.Time
		}
	}
	if first.IsZero() {
		return in.CreationTimestamp.Time
	}
	return first
}

// nodeOf returns the node of an Interruption, or its instance if it has none.
func nodeOf(in *v1alpha1.Interruption) string {
	switch {
	case in.Status.NodeName != "":
		return in.Status.NodeName
	case in.Spec.NodeName != "":
		return in.Spec.NodeName
	}
	return in.Spec.InstanceID
}

// isAbout reports whether name is the node, instance or name of an
// Interruption.
func isAbout(in *v1alpha1.Interruption, name string) bool {
	return name == in.Status.NodeName || name == in.Spec.NodeName || name == in.Spec.InstanceID || name == in.Name
}

// isCompleted reports whether nothing is left to do: the record completed, and
// no notice arrived since.
func isCompleted(in *v1alpha1.Interruption) bool {
	done := in.Status.CompletionTime
	return done != nil && !slices.ContainsFunc(in.Spec.Notices, func(n v1alpha1.Notice) bool {
		return n.ReceivedTime.After(done.Time)
	})
}

// isSettled reports whether no more pods will move: the node is empty, or the
// action moves none. It does not wait for the end of the instance, which can
// take minutes and never comes in a drill by queue. A record is not settled
// while the controller has not processed its newest notice, or while it is
// queued or waits for a person.
func isSettled(in *v1alpha1.Interruption) bool {
	if !isSeen(in) {
		return false
	}
	switch in.Status.Phase {
	case v1alpha1.PhaseDrained, v1alpha1.PhaseNotified, v1alpha1.PhaseIgnored, v1alpha1.PhaseCancelled:
		return true
	}
	return isCompleted(in)
}

// isSeen reports whether the controller has processed the newest notice.
func isSeen(in *v1alpha1.Interruption) bool {
	n := len(in.Spec.Notices)
	return n == 0 || in.Status.LastNoticeID == in.Spec.Notices[n-1].ID
}
