// Package hook says what hooks and notifications are: the Job that a template
// makes, the body of a webhook, how a Job ended, and what is wrong with any of
// them. It is pure: package errand makes the Jobs and the calls.
package hook

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// DefaultTimeout is how long one try may take where the policy says nothing.
const DefaultTimeout = time.Minute

// Subject is what hooks and notifications are told.
type Subject struct {
	// Interruption is the record's name and UID its UID.
	Interruption string
	UID          types.UID
	// Since is when an earlier interruption of the same instance was over
	// (status.since), or zero. It keeps the Jobs and keys of that one, whose
	// record had the same UID, apart from this one's.
	Since time.Time
	// Drain tells the drains of one record apart, whose hooks are run anew; empty
	// where it has not begun.
	Drain string
	// Node is the node's name, and InstanceID the cloud's id of its instance.
	Node, InstanceID string
	// Kind is the kind of the notice that rules.
	Kind string
	// Policy is the policy whose hook or notification it is.
	Policy string
	// Phase is the record's.
	Phase v1alpha1.Phase
	// Reason is a CamelCase word for what is told, and Message a sentence about
	// it, or several, a line each.
	Reason, Message string
	// Deadline is when the instance will be gone; nil if nobody knows.
	Deadline *time.Time
	// Drill tells that somebody does it on purpose.
	Drill bool
	// Pods counts the pods of the node.
	Pods v1alpha1.PodCounts
}

// Key identifies something that is done for the record, such as a try of a
// hook: the same parts give the same key, after a restart too. It is made of 32
// hexadecimal digits.
func (s Subject) Key(parts ...string) string {
	sum := sha256.New()
	var since int64
	if !s.Since.IsZero() {
		since = s.Since.UnixMicro()
	}
	fmt.Fprintf(sum, "%q %d %q", s.UID, since, parts)
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// TryKey identifies a try of a hook. Its Job is named by it, and its webhook
// carries it as Idempotency-Key.
func (s Subject) TryKey(name string, try int32) string {
	return s.Key("hook", s.Drain, name, fmt.Sprint(try))
}

// deadline is the deadline as RFC 3339, or empty.
func (s Subject) deadline() string {
	if s.Deadline == nil {
		return ""
	}
	return s.Deadline.UTC().Format(time.RFC3339)
}

// Timeout is how long one try of the hook may take.
func Timeout(h v1alpha1.Hook) time.Duration {
	if h.Timeout == nil {
		return DefaultTimeout
	}
	return h.Timeout.Duration
}

// Awaited says which of the hooks of that time is not done with, and why, as
// the rest of a sentence that begins with "waits: "; empty where none is. A
// go-ahead is when a person last approved: later than the end of a hook that
// failed it lets the rest go on.
func Awaited(hooks []v1alpha1.Hook, when v1alpha1.HookTime, status []v1alpha1.HookStatus, s Subject, goAhead time.Time) string {
	for _, h := range hooks {
		if h.When != when {
			continue
		}
		var how *v1alpha1.HookStatus
		if i := slices.IndexFunc(status, func(s v1alpha1.HookStatus) bool { return s.Name == h.Name }); i >= 0 {
			how = &status[i]
		}
		if why := Waits(h, how, s, goAhead); why != "" {
			return why
		}
	}
	return ""
}

// Waits says what is waited for of one hook, as Awaited does; status is nil where
// it has not begun.
func Waits(h v1alpha1.Hook, status *v1alpha1.HookStatus, s Subject, goAhead time.Time) string {
	switch {
	case status == nil:
		return fmt.Sprintf("hook %s runs first", h.Name)
	case Over(h, *status, goAhead):
		return ""
	}
	return waits(h, *status, s)
}

// Over tells whether nothing waits for the hook any more: it succeeded, or it
// failed for good and the policy or a person goes on without it. A hook that
// has failed and has no completion time is between two tries.
func Over(h v1alpha1.Hook, status v1alpha1.HookStatus, goAhead time.Time) bool {
	if status.State == v1alpha1.HookRunning || status.CompletionTime == nil {
		return false
	}
	holds := status.State == v1alpha1.HookFailed && h.OnFailure == v1alpha1.HookHold
	return !holds || goAhead.After(status.CompletionTime.Time)
}

func waits(h v1alpha1.Hook, status v1alpha1.HookStatus, s Subject) string {
	switch {
	case status.State == v1alpha1.HookRunning:
		end := status.StartTime.Add(Timeout(h))
		return fmt.Sprintf("hook %s runs (try %d of %d, at most until %s)", h.Name, status.Try, h.Retries+1, clock(end, status.StartTime.Time))
	case status.CompletionTime == nil:
		next := NextTry(status)
		return fmt.Sprintf("hook %s is tried again at %s (try %d of %d)", h.Name, clock(next, status.StartTime.Time), status.Try+1, h.Retries+1)
	}
	node := s.Node
	if node == "" {
		node = s.Interruption
	}
	return fmt.Sprintf("hook %s has failed and the policy holds for it; `lifeboat approve %s` goes on", h.Name, node)
}

// NextTry is when a hook whose latest try failed is tried again: 2, 4, 8 …
// seconds after the begin of that try, at most a minute. A try that took longer
// is followed by the next at once.
func NextTry(status v1alpha1.HookStatus) time.Time {
	return status.StartTime.Add(Backoff(status.Try))
}

// Backoff is how long to wait after so many failed tries.
func Backoff(tries int32) time.Duration {
	return min(time.Second<<min(max(tries, 1), 6), time.Minute)
}

// clock writes a moment, with the day if that is not the day of since.
func clock(t, since time.Time) string {
	layout := "15:04:05"
	if t.UTC().Format(time.DateOnly) != since.UTC().Format(time.DateOnly) {
		layout = "2006-01-02 15:04:05"
	}
	return t.UTC().Format(layout) + " UTC"
}
