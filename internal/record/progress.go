package record

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// FirstNotice returns when the first notice of the current interruption was
// received.
func FirstNotice(in *v1beta1.Interruption) time.Time {
	var first time.Time
	var before []string // handled by the interruption before this one
	if since := Since(&in.Status); !since.IsZero() {
		for _, e := range in.Status.History {
			if !e.EndTime.After(since) {
				before = append(before, e.HandledNotices...)
			}
		}
	}
	for _, n := range in.Spec.Notices {
		if notice.IsHandled(&n, before) {
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

// NodeName returns the node of an Interruption, or its instance if it has none.
func NodeName(in *v1beta1.Interruption) string {
	switch {
	case in.Status.NodeName != "":
		return in.Status.NodeName
	case in.Spec.NodeName != "":
		return in.Spec.NodeName
	}
	return in.Spec.InstanceID
}

// NewestKind returns the kind of the newest notice, for an Interruption that the
// controller has not processed yet.
func NewestKind(in *v1beta1.Interruption) string {
	if n := len(in.Spec.Notices); n > 0 {
		return in.Spec.Notices[n-1].Kind
	}
	return ""
}

// IsCompleted reports whether nothing is left to do: the Interruption completed, and
// no notice arrived since that is not handled.
func IsCompleted(in *v1beta1.Interruption) bool {
	done, handled := in.Status.CompletionTime, notice.Handled(&in.Status)
	return done != nil && !slices.ContainsFunc(in.Spec.Notices, func(n v1beta1.Notice) bool {
		return n.ReceivedTime.After(done.Time) && !notice.IsHandled(&n, handled)
	})
}

// IsSettled reports whether no more pods will move: the node is empty, or the
// action moves none. It does not wait for the end of the instance, which can
// take minutes and never comes in a drill by queue. An Interruption is not settled
// while the controller has not processed its newest notice, or while it is
// queued or waits for a person.
func IsSettled(in *v1beta1.Interruption) bool {
	if !IsSeen(in) {
		return false
	}
	switch in.Status.Phase {
	case v1beta1.PhaseDrained, v1beta1.PhaseNotified, v1beta1.PhaseIgnored, v1beta1.PhaseCancelled:
		return true
	}
	return IsCompleted(in)
}

// IsSeen reports whether the controller has processed the newest notice, or nothing is to do about it.
func IsSeen(in *v1beta1.Interruption) bool {
	n := len(in.Spec.Notices)
	return n == 0 || in.Status.LastNoticeID == in.Spec.Notices[n-1].ID || notice.Finished(in)
}

// Message returns the message of the condition Ready.
func Message(in *v1beta1.Interruption) string {
	if ready := meta.FindStatusCondition(in.Status.Conditions, v1beta1.ConditionReady); ready != nil {
		return ready.Message
	}
	return ""
}

// WaitsFor returns what an Interruption waits for: the reason of its first waiting
// pod, otherwise the message of the condition Ready.
func WaitsFor(in *v1beta1.Interruption) string {
	for _, left := range Pending(Drain(&in.Status)) {
		if left.State == v1beta1.PodWaiting {
			return left.Namespace + "/" + left.Name + " " + left.Message
		}
	}
	return Message(in)
}

// NodeNames are the names of the node that an Interruption names, and of the one that was drained. They
// differ if the node was not known at first, or has another name since.
func NodeNames(in *v1beta1.Interruption) (names []string) {
	for _, name := range []string{in.Spec.NodeName, in.Status.NodeName} {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
