package errand

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/hook"
)

const (
	// triesToTell is how often it is tried to deliver a notification.
	triesToTell = 3
	// tellWithin is how long one try may take, once it is its turn.
	tellWithin = 10 * time.Second
	// turnWithin is how long a try may wait for its turn in a storm.
	turnWithin = 5 * time.Minute
	// longestTold bounds what is told at once, in bytes.
	longestTold = 8 << 10
)

// Tell takes each of the policy's notifications a step further: what has
// happened since the last that was told is told in one request; what has failed
// is tried again. It never waits.
func (r *Runner) Tell(_ context.Context, t Telling) (Told, error) {
	out := Told{Notified: slices.Clone(t.Notified), Idle: true}
	for i := range t.Notifications {
		s := &speech{Runner: r, t: &t, n: &t.Notifications[i], out: &out}
		s.step()
	}
	return out, nil
}

// speech is one notification in one pass.
type speech struct {
	*Runner
	t   *Telling
	n   *v1alpha1.Notification
	out *Told
}

func (s *speech) step() {
	status := s.status()
	if a, known := s.notifications.ask(s.id(status, status.Tries), s.t.Now); known && a == nil {
		s.busyUntil(s.t.Now.Add(tellWithin + late)) // woken before, unless the wake is lost
		return
	} else if known {
		status = s.heard(status, a)
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

// status is how far the notification has come: nothing of this interruption
// was told, where the record does not say.
func (s *speech) status() v1alpha1.NotifiedStatus {
	for _, status := range s.out.Notified {
		if status.Name == s.n.Name {
			return status
		}
	}
	through := time.Unix(0, 0) // the API has no zero time
	if !s.t.Subject.Since.IsZero() {
		through = s.t.Subject.Since
	}
	return v1alpha1.NotifiedStatus{Name: s.n.Name, Through: micro(through.UTC())}
}

// put writes a status into the list. Where that is full, those of notifications
// that the policy no longer has make room.
func (s *speech) put(status v1alpha1.NotifiedStatus) {
	status.Message = clip(status.Message, longestMessage)
	for i := range s.out.Notified {
		if s.out.Notified[i].Name == status.Name {
			s.out.Notified[i] = status
			return
		}
	}
	s.out.Notified = append(s.out.Notified, status)
	for len(s.out.Notified) > most {
		i := slices.IndexFunc(s.out.Notified, func(old v1alpha1.NotifiedStatus) bool {
			return !slices.ContainsFunc(s.t.Notifications, func(n v1alpha1.Notification) bool { return n.Name == old.Name })
		})
		if i < 0 {
			return
		}
		s.out.Notified = slices.Delete(s.out.Notified, i, i+1)
	}
}

// id of the request that follows so many failed ones.
func (s *speech) id(status v1alpha1.NotifiedStatus, tries int32) string {
	return s.t.Subject.Key("notification", s.n.Name, fmt.Sprint(status.Through.UnixMicro()), fmt.Sprint(tries))
}

// heard takes in what came of a request.
func (s *speech) heard(status v1alpha1.NotifiedStatus, a *answer) v1alpha1.NotifiedStatus {
	if !a.ok {
		return s.failed(status, a.message, a.through)
	}
	s.o.Metrics.notifications.WithLabelValues("delivered").Inc()
	status.Through, status.Tries, status.Message = a.through, 0, ""
	s.put(status)
	return status
}

// failed counts a try that failed; the last passes over what it would have told.
func (s *speech) failed(status v1alpha1.NotifiedStatus, message string, through metav1.MicroTime) v1alpha1.NotifiedStatus {
	s.o.Metrics.notifications.WithLabelValues("failed").Inc()
	status.Tries++
	status.Message = message
	if status.Tries >= triesToTell {
		status.Tries, status.Through = 0, through
		s.out.Happened = append(s.out.Happened, Happening{
			Reason: v1alpha1.ReasonNotifyFailed, Message: fmt.Sprintf("notification %s was not delivered: %s", s.n.Name, message),
		})
	}
	s.put(status)
	return status
}

// pause is when what has failed is tried again, or zero. After a restart nobody
// knows, and it is tried at once.
func (s *speech) pause(status v1alpha1.NotifiedStatus) time.Time {
	if status.Tries == 0 {
		return time.Time{}
	}
	a, _ := s.notifications.ask(s.id(status, status.Tries-1), s.t.Now)
	if a == nil {
		return time.Time{}
	}
	return a.read.Add(max(hook.Backoff(status.Tries), a.after))
}

// busyUntil notes that there is something left to do.
func (s *speech) busyUntil(t time.Time) {
	s.out.Idle = false
	if s.out.Wake.IsZero() || t.Before(s.out.Wake) {
		s.out.Wake = t
	}
}

// send makes the request that tells what is due.
func (s *speech) send(status v1alpha1.NotifiedStatus, due []v1alpha1.TimelineEntry) {
	through := due[len(due)-1].Time
	subject := s.t.Subject
	subject.Reason, subject.Message = gravest(due), joined(due)
	body, err := hook.Body(s.n.Webhook, subject)
	if err != nil {
		status.Tries = triesToTell - 1 // it would fail again
		s.failed(status, err.Error(), through)
		return
	}
	s.notifications.start(s.id(status, status.Tries), &call{
		webhook: s.n.Webhook, body: body, key: subject.Key("told", s.n.Name, fmt.Sprint(through.UnixMicro())),
		record: subject.Interruption, patience: turnWithin, limit: tellWithin, through: through,
	})
	s.busyUntil(s.t.Now.Add(tellWithin + late))
}

// due are the entries that are to be told and were not. They come after the
// last that was told in the list, not in time: a notice is entered with the
// time at which it arrived, which may be before that of what is there already.
func (s *speech) due(status v1alpha1.NotifiedStatus) []v1alpha1.TimelineEntry {
	through := status.Through.UnixMicro()
	last := -1
	for i, e := range s.t.Timeline {
		if e.Time.UnixMicro() == through {
			last = i
		}
	}
	var due []v1alpha1.TimelineEntry
	for i, e := range s.t.Timeline {
		isNew := i > last
		if last < 0 { // that entry is no longer there
			isNew = e.Time.UnixMicro() > through
		}
		if isNew && s.isOn(e.Reason) {
			due = append(due, e)
		}
	}
	return due
}

// isOn tells whether entries of that reason are told. That a notification
// failed never is: it would bring about the next.
func (s *speech) isOn(reason string) bool {
	if reason == v1alpha1.ReasonNotifyFailed {
		return false
	}
	on := s.n.Reasons
	if len(on) == 0 {
		on = []string{
			v1alpha1.ReasonNoticeReceived, v1alpha1.ReasonAwaitingApproval, v1alpha1.ReasonCordoned, v1alpha1.ReasonDrained,
			v1alpha1.ReasonPodLost, v1alpha1.ReasonHookFailed, v1alpha1.ReasonPutBack, v1alpha1.ReasonCompleted,
		}
	}
	return slices.Contains(on, "*") || slices.Contains(on, reason)
}

// gravest is the reason that stands for all: one that somebody has to see to,
// else the last.
func gravest(entries []v1alpha1.TimelineEntry) string {
	for _, grave := range []string{v1alpha1.ReasonPodLost, v1alpha1.ReasonHookFailed, v1alpha1.ReasonAwaitingApproval} {
		if slices.ContainsFunc(entries, func(e v1alpha1.TimelineEntry) bool { return e.Reason == grave }) {
			return grave
		}
	}
	return entries[len(entries)-1].Reason
}

// joined are the messages, a line each; of too many, the last ones.
func joined(entries []v1alpha1.TimelineEntry) string {
	var lines []string
	length := 0
	for i := len(entries) - 1; i >= 0; i-- {
		length += len(entries[i].Message) + 1
		if length > longestTold {
			lines = append(lines, fmt.Sprintf("%d earlier; see the Interruption's timeline", i+1))
			break
		}
		lines = append(lines, entries[i].Message)
	}
	slices.Reverse(lines)
	return strings.Join(lines, "\n")
}
