package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/hooks"
)

const (
	// maxNotifyTries is how many times a notification is sent.
	maxNotifyTries = 3
	// notifyTimeout is how long one request may take, without the wait for a
	// slot.
	notifyTimeout = 10 * time.Second
	// notifyQueueTimeout is how long a request may wait for a slot.
	notifyQueueTimeout = 5 * time.Minute
	// maxNotifyText bounds the message of one notification, in bytes.
	maxNotifyText = 8 << 10
)

// Notify takes each notification of the policy one step further: it sends all
// new timeline entries in one request and retries failed requests. It never
// blocks.
func (r *Runner) Notify(_ context.Context, t NotifyRequest) (NotifyResult, error) {
	out := NotifyResult{Notified: slices.Clone(t.Notified), Idle: true}
	for i := range t.Notifications {
		s := &notifyPass{Runner: r, t: &t, n: &t.Notifications[i], out: &out}
		s.step()
	}
	return out, nil
}

// notifyPass is one notification in one pass.
type notifyPass struct {
	*Runner
	t   *NotifyRequest
	n   *v1beta1.Notification
	out *NotifyResult
}

func (s *notifyPass) step() {
	status := s.status()
	if a, known := s.notifications.ask(s.id(status, status.Tries), s.t.Now); known && a == nil {
		s.busyUntil(s.t.Now.Add(notifyTimeout + resultDelay)) // the pool normally wakes the record sooner
		return
	} else if known {
		status = s.storeResult(status, a)
	}
	due := s.due(status)
	if len(due) == 0 {
		return
	}
	if pause := s.pause(status); pause.After(s.t.Now) {
		s.busyUntil(pause)
		return
	}
	s.send(status, due)
}

// status is the notification's stored state. Without one, nothing of this
// interruption was sent.
func (s *notifyPass) status() v1beta1.NotificationStatus {
	for _, status := range s.out.Notified {
		if status.Name == s.n.Name {
			return status
		}
	}
	through := time.Unix(0, 0) // the API cannot store the zero time
	if !s.t.Subject.Since.IsZero() {
		through = s.t.Subject.Since
	}
	return v1beta1.NotificationStatus{Name: s.n.Name, LastDeliveredTime: micro(through.UTC())}
}

// put stores a status. If the list is full, put drops statuses of notifications
// that the policy no longer has.
func (s *notifyPass) put(status v1beta1.NotificationStatus) {
	status.Message = clip(status.Message, longestMessage)
	for i := range s.out.Notified {
		if s.out.Notified[i].Name == status.Name {
			s.out.Notified[i] = status
			return
		}
	}
	s.out.Notified = append(s.out.Notified, status)
	for len(s.out.Notified) > maxStatuses {
		i := slices.IndexFunc(s.out.Notified, func(old v1beta1.NotificationStatus) bool {
			return !slices.ContainsFunc(s.t.Notifications, func(n v1beta1.Notification) bool { return n.Name == old.Name })
		})
		if i < 0 {
			return
		}
		s.out.Notified = slices.Delete(s.out.Notified, i, i+1)
	}
}

// id identifies the request after that many failed tries.
func (s *notifyPass) id(status v1beta1.NotificationStatus, tries int32) string {
	return s.t.Subject.Key("notification", s.n.Name, fmt.Sprint(status.LastDeliveredTime.UnixMicro()), fmt.Sprint(tries))
}

// storeResult stores the result of a request.
func (s *notifyPass) storeResult(status v1beta1.NotificationStatus, a *callResult) v1beta1.NotificationStatus {
	if !a.ok {
		return s.failed(status, a.message, a.through)
	}
	s.o.Metrics.notifications.WithLabelValues("delivered").Inc()
	status.LastDeliveredTime, status.Tries, status.Message = a.through, 0, ""
	s.put(status)
	return status
}

// failed counts a failed try. After the last one its entries are skipped.
func (s *notifyPass) failed(status v1beta1.NotificationStatus, message string, through metav1.MicroTime) v1beta1.NotificationStatus {
	s.o.Metrics.notifications.WithLabelValues("failed").Inc()
	status.Tries++
	status.Message = message
	if status.Tries >= maxNotifyTries {
		status.Tries, status.LastDeliveredTime = 0, through
		s.out.Happened = append(s.out.Happened, Event{
			Reason: v1beta1.ReasonNotifyFailed, Message: fmt.Sprintf("notification %s was not delivered: %s", s.n.Name, message),
		})
	}
	s.put(status)
	return status
}

// pause is when to retry a failed request, or zero. After a restart the time is
// unknown and the retry is immediate.
func (s *notifyPass) pause(status v1beta1.NotificationStatus) time.Time {
	if status.Tries == 0 {
		return time.Time{}
	}
	a, _ := s.notifications.ask(s.id(status, status.Tries-1), s.t.Now)
	if a == nil {
		return time.Time{}
	}
	return a.read.Add(max(hooks.Backoff(status.Tries), a.after))
}

// busyUntil requests a reconcile at t because work is left.
func (s *notifyPass) busyUntil(t time.Time) {
	s.out.Idle = false
	if s.out.Wake.IsZero() || t.Before(s.out.Wake) {
		s.out.Wake = t
	}
}

// send starts the request that reports the due entries.
func (s *notifyPass) send(status v1beta1.NotificationStatus, due []v1beta1.TimelineEntry) {
	through := due[len(due)-1].Time
	subject := s.t.Subject
	subject.Reason, subject.Message = mostUrgent(due), joined(due)
	if _, err := hooks.Body(s.n.Webhook, subject, nil); err != nil {
		status.Tries = maxNotifyTries - 1 // a retry would fail again
		s.failed(status, err.Error(), through)
		return
	}
	s.notifications.start(s.id(status, status.Tries), &webhookCall{
		webhook: s.n.Webhook, subject: subject, key: subject.Key("told", s.n.Name, fmt.Sprint(through.UnixMicro())),
		record: subject.Interruption, queueTimeout: notifyQueueTimeout, timeout: notifyTimeout, through: through,
	})
	s.busyUntil(s.t.Now.Add(notifyTimeout + resultDelay))
}

// due are the entries to send. Their order is that of the list, not of their
// times: a notice is entered with its arrival time, which may precede existing
// entries.
func (s *notifyPass) due(status v1beta1.NotificationStatus) []v1beta1.TimelineEntry {
	through := status.LastDeliveredTime.UnixMicro()
	last := -1
	for i, e := range s.t.Timeline {
		if e.Time.UnixMicro() == through {
			last = i
		}
	}
	var due []v1beta1.TimelineEntry
	for i, e := range s.t.Timeline {
		isNew := i > last
		if last < 0 { // that entry was trimmed from the timeline
			isNew = e.Time.UnixMicro() > through
		}
		if isNew && s.isOn(e.Reason) {
			due = append(due, e)
		}
	}
	return due
}

// isOn reports whether entries of that reason are sent. ReasonNotifyFailed
// never is: each failure would cause another notification.
func (s *notifyPass) isOn(reason string) bool {
	if reason == v1beta1.ReasonNotifyFailed {
		return false
	}
	on := s.n.Reasons
	if len(on) == 0 {
		on = []string{
			v1beta1.ReasonNoticeReceived, v1beta1.ReasonAwaitingApproval, v1beta1.ReasonCordoned, v1beta1.ReasonDrained,
			v1beta1.ReasonPodLost, v1beta1.ReasonHookFailed, v1beta1.ReasonNodeRestored, v1beta1.ReasonCompleted,
		}
	}
	return slices.Contains(on, "*") || slices.Contains(on, reason)
}

// mostUrgent is the reason of the whole request: one that needs a person's
// attention, else the last.
func mostUrgent(entries []v1beta1.TimelineEntry) string {
	for _, grave := range []string{v1beta1.ReasonPodLost, v1beta1.ReasonHookFailed, v1beta1.ReasonAwaitingApproval} {
		if slices.ContainsFunc(entries, func(e v1beta1.TimelineEntry) bool { return e.Reason == grave }) {
			return grave
		}
	}
	return entries[len(entries)-1].Reason
}

// joined returns the messages, one per line. If they are too long, it keeps the
// last ones.
func joined(entries []v1beta1.TimelineEntry) string {
	var lines []string
	length := 0
	for i := len(entries) - 1; i >= 0; i-- {
		length += len(entries[i].Message) + 1
		if length > maxNotifyText {
			lines = append(lines, fmt.Sprintf("%d earlier; see the Interruption's timeline", i+1))
			break
		}
		lines = append(lines, entries[i].Message)
	}
	slices.Reverse(lines)
	return strings.Join(lines, "\n")
}
