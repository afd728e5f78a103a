// Package notice defines notices, the signals that one instance is going away or is
// unhealthy, and how the notices about one instance combine. It is pure: it knows neither
// where notices come from nor what is done about them.
package notice

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// Notice is one signal from one source that an instance is going away or is unhealthy. It
// has the form in which a source passes it to the recorder.
type Notice struct {
	v1beta1.Notice

	// InstanceID is the cloud's id of the instance.
	InstanceID string
	// DrillID is the drill that the notice says it belongs to; empty: none.
	DrillID string `json:",omitempty"`
	// Account and Region are where the notice says it comes from.
	Account, Region string
}

// Received returns when the notice was received, and now if its writer's clock was ahead.
// Use it for durations and schedules. Finished tells by id, and not by time, whether a
// notice came after a completion.
func Received(n *v1beta1.Notice, now time.Time) time.Time {
	if n.ReceivedTime.After(now) {
		return now
	}
	return n.ReceivedTime.Time
}

// Unanswered returns the notices that are not handled: their keys are not in handled.
func Unanswered(notices []v1beta1.Notice, handled []string) []v1beta1.Notice {
	if len(handled) == 0 {
		return notices
	}
	return slices.DeleteFunc(slices.Clone(notices), func(n v1beta1.Notice) bool { return IsHandled(&n, handled) })
}

// Key identifies what a notice is about, to remember that it was handled. A planned change keeps its key
// while its start and its action stay the same: AWS Health sends updates of a change, also after it
// took place, and each has another event id. Other notices are identified by their ids. So is a
// withdrawal, which says nothing about a change that is planned again.
func Key(n *v1beta1.Notice) string {
	if n.Kind != KindScheduledChange || n.Subject == "" || n.Deadline == nil || n.Withdrawn {
		return n.ID
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%d", n.Source, n.Subject, n.InstanceAction, n.Deadline.Time.Unix()))
	return "change-" + hex.EncodeToString(sum[:8])
}

// Handled returns the keys of the notices that need nothing any more.
func Handled(s *v1beta1.InterruptionStatus) (keys []string) {
	for i := range s.History {
		keys = append(keys, s.History[i].HandledNotices...)
	}
	return keys
}

// EndsAll reports whether nothing was left to do about an instance after a reason ended so.
func EndsAll(o v1beta1.Outcome) bool {
	return o == v1beta1.OutcomeCompleted || o == v1beta1.OutcomeCancelled
}

// IsHandled reports whether a notice is among those that were handled.
func IsHandled(n *v1beta1.Notice, handled []string) bool {
	return slices.Contains(handled, Key(n)) || slices.Contains(handled, n.ID)
}

// Finished reports whether nothing is left to do about an Interruption: it is
// completed, and every notice is handled or withdrawn. It compares keys and not
// times, because received times come from the clocks of several replicas.
func Finished(in *v1beta1.Interruption) bool {
	if in.Status.CompletionTime == nil {
		return false
	}
	handled := Handled(&in.Status)
	return !slices.ContainsFunc(in.Spec.Notices, func(n v1beta1.Notice) bool { return !n.Withdrawn && !IsHandled(&n, handled) })
}

// Ruling returns the notice that rules among those that are not withdrawn. The order is: one
// that says the instance no longer runs; the earliest firm deadline (see IsFirm); a termination by
// an Auto Scaling group; the earliest soft deadline; the newest. The time of a person's request is a
// wish, and gives it no rank. It reports false if there is none.
func Ruling(notices []v1beta1.Notice) (v1beta1.Notice, bool) {
	var best *v1beta1.Notice
	for i := range notices {
		if n := &notices[i]; !n.Withdrawn && (best == nil || overrules(n, best)) {
			best = n
		}
	}
	if best == nil {
		return v1beta1.Notice{}, false
	}
	return *best, true
}

// Deadline returns when the instance ends, as the notices say that are not withdrawn: the earliest
// firm deadline (see IsFirm), else the earliest soft one, else nil. Estimates no longer
// count once the instance is stopped or terminated: its end is known. A person's request ends nothing.
func Deadline(notices []v1beta1.Notice) *v1beta1.Deadline {
	var best *v1beta1.Deadline
	gone := InstanceGone(notices)
	for _, n := range notices {
		if n.Deadline == nil || n.Withdrawn || n.Kind == KindRequested || gone && n.Deadline.Type == v1beta1.DeadlineEstimated {
			continue
		}
		if best == nil || earlier(n.Deadline, best) {
			best = n.Deadline.DeepCopy()
		}
	}
	return best
}

// InstanceGone reports whether a notice that is not withdrawn says that the instance no longer runs.
func InstanceGone(notices []v1beta1.Notice) bool {
	return slices.ContainsFunc(notices, func(n v1beta1.Notice) bool { return !n.Withdrawn && isGone(&n) })
}

func isGone(n *v1beta1.Notice) bool {
	return n.Kind == KindInstanceStateChange && (n.InstanceState == StateStopped || n.InstanceState == StateTerminated)
}

// overrules reports whether a comes before b in the order of Ruling. Of equal ones the
// newer rules.
func overrules(a, b *v1beta1.Notice) bool {
	if rankA, rankB := rank(a), rank(b); rankA != rankB {
		return rankA > rankB
	}
	if rank(a) > 0 && a.Deadline != nil && b.Deadline != nil && *a.Deadline != *b.Deadline {
		return earlier(a.Deadline, b.Deadline)
	}
	return !a.Time.Before(&b.Time)
}

func rank(n *v1beta1.Notice) int {
	switch {
	case n.Kind == KindRequested:
		return 0
	case isGone(n):
		return 4
	case IsFirm(n.Deadline):
		return 3
	case n.Kind == KindAutoScalingTermination:
		return 2
	case n.Deadline != nil:
		return 1
	}
	return 0
}

// earlier orders deadlines: firm ones first, then by time. At the same time a hard
// one comes before an estimate.
func earlier(a, b *v1beta1.Deadline) bool {
	switch {
	case IsFirm(a) != IsFirm(b):
		return IsFirm(a)
	case a.Time.Equal(&b.Time):
		return a.Type == v1beta1.DeadlineHard && b.Type != v1beta1.DeadlineHard
	}
	return a.Time.Before(&b.Time)
}

// At returns a deadline.
func At(t time.Time, typ v1beta1.DeadlineType) *v1beta1.Deadline {
	return &v1beta1.Deadline{Time: metav1.NewTime(t), Type: typ}
}

// AfterDeadline is how long after its hard deadline an instance that still exists counts as alive.
const AfterDeadline = 10 * time.Minute

// IsFirm reports whether a deadline cannot be moved: it is hard, or the estimated end of a
// shutdown that has begun. The deadline may be nil.
func IsFirm(d *v1beta1.Deadline) bool {
	return d != nil && (d.Type == v1beta1.DeadlineHard || d.Type == v1beta1.DeadlineEstimated)
}

// IsEstimated reports whether a deadline is an estimate, which never shortens a pod's grace
// period. The deadline may be nil.
func IsEstimated(d *v1beta1.Deadline) bool {
	return d != nil && d.Type == v1beta1.DeadlineEstimated
}
