// Package hooks defines hooks and notifications: the Job that a template makes,
// the body of a webhook, the result of a Job, and validation. It is pure;
// package hookrunner creates the Jobs and makes the requests.
package hooks

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// DefaultTimeout is the timeout of one try if the policy sets none.
const DefaultTimeout = time.Minute

// Subject is the information that hooks and notifications get.
type Subject struct {
	// Interruption is the record's name and UID its UID.
	Interruption string
	UID          types.UID
	// Since is when an earlier interruption of the same instance ended
	// (status.since), or zero. It makes the Jobs and keys differ from those of
	// the earlier interruption, whose record has the same UID.
	Since time.Time
	// Drain distinguishes drains of one record: each runs the hooks again.
	// Empty if no drain has started.
	Drain string
	// Node is the node's name, and InstanceID the cloud's id of its instance.
	Node, InstanceID string
	// Kind is the kind of the governing notice.
	Kind string
	// Policy is the policy that the hook or notification belongs to.
	Policy string
	// Phase is the phase of the record.
	Phase v1beta1.Phase
	// Reason is a CamelCase reason; Message is one or more sentences, one per
	// line.
	Reason, Message string
	// Deadline is when the instance will be gone; nil if unknown.
	Deadline *time.Time
	// Drill is true for an interruption that a person injected.
	Drill bool
	// Pods counts the pods of the node.
	Pods v1beta1.PodCounts
}

// Key identifies an operation for the record, such as a try of a hook. The same
// parts give the same key, also after a restart. It has 32 hexadecimal digits.
func (s Subject) Key(parts ...string) string {
	sum := sha256.New()
	var since int64
	if !s.Since.IsZero() {
		since = s.Since.UnixMicro()
	}
	fmt.Fprintf(sum, "%q %d %q", s.UID, since, parts)
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// TryKey identifies a try of a hook. It is part of the Job's name, and the
// webhook's Idempotency-Key.
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
func Timeout(h v1beta1.Hook) time.Duration {
	if h.Timeout == nil {
		return DefaultTimeout
	}
	return h.Timeout.Duration
}

// Awaited names the first unfinished hook of that time and why it is waited
// for. The text completes a sentence that begins with "waits: "; empty if none
// is. goAhead is the time of the last approval: if later than a hook's failure,
// the other hooks continue.
func Awaited(hooks []v1beta1.Hook, when v1beta1.HookTime, status []v1beta1.HookStatus, s Subject, goAhead time.Time) string {
	for _, h := range hooks {
		if h.When != when {
			continue
		}
		var how *v1beta1.HookStatus
		if i := slices.IndexFunc(status, func(s v1beta1.HookStatus) bool { return s.Name == h.Name }); i >= 0 {
			how = &status[i]
		}
		if why := WaitReason(h, how, s, goAhead); why != "" {
			return why
		}
	}
	return ""
}

// WaitReason says why one hook is waited for, as Awaited does. status is nil if
// the hook has not started.
func WaitReason(h v1beta1.Hook, status *v1beta1.HookStatus, s Subject, goAhead time.Time) string {
	switch {
	case status == nil:
		return fmt.Sprintf("hook %s runs first", h.Name)
	case IsFinished(h, *status, goAhead):
		return ""
	}
	return waitReason(h, *status, s)
}

// IsFinished reports whether the hook no longer blocks: it succeeded, or it
// failed and the policy or an approval lets the drain continue. A failed hook
// without a completion time is between two tries.
func IsFinished(h v1beta1.Hook, status v1beta1.HookStatus, goAhead time.Time) bool {
	if status.State == v1beta1.HookRunning || status.CompletionTime == nil {
		return false
	}
	holds := status.State == v1beta1.HookFailed && h.OnFailure == v1beta1.HookHold
	return !holds || goAhead.After(status.CompletionTime.Time)
}

func waitReason(h v1beta1.Hook, status v1beta1.HookStatus, s Subject) string {
	switch {
	case status.State == v1beta1.HookRunning:
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
	return fmt.Sprintf("hook %s failed and the policy holds the drain; `lifeboat approve %s` continues it", h.Name, node)
}

// NextTry is when a hook is retried after a failed try: 2, 4, 8 … seconds after
// that try began, at most a minute. A try that took longer is retried at once.
func NextTry(status v1beta1.HookStatus) time.Time {
	return status.StartTime.Add(Backoff(status.Try))
}

// Backoff is the wait after that many failed tries.
func Backoff(tries int32) time.Duration {
	return min(time.Second<<min(max(tries, 1), 6), time.Minute)
}

// clock formats a time, with the date if it differs from that of since.
func clock(t, since time.Time) string {
	layout := "15:04:05"
	if t.UTC().Format(time.DateOnly) != since.UTC().Format(time.DateOnly) {
		layout = "2006-01-02 15:04:05"
	}
	return t.UTC().Format(layout) + " UTC"
}
