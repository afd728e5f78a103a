package termination

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/lifecycle"
)

// extend has the hooks wait on, in time.
func (f *Facts) extend(s *Status) Decision {
	d := Decision{Status: s, Pending: true}
	bound := f.bound(s)
	text := "extended while the node is drained"
	if !bound.IsZero() {
		text += ", until " + clock(bound) + " at the latest"
	}
	if s.Misses == 0 {
		s.Message = fmt.Sprintf("hook %s of group %s holds the instance and is %s", names(s), s.Group, text)
	}
	if !bound.IsZero() && !s.ExpiryTime.Time.Before(bound.Add(early)) {
		d.Wake = bound // it lasts as it is
		return d
	}
	next := f.nextHeartbeat(s)
	if f.Now.Before(next) {
		d.Wake = next
		if !bound.IsZero() && bound.Before(next) {
			d.Wake = bound
		}
		return d
	}
	d.Do = Heartbeat
	return d
}

// bound is when the instance goes, whatever is left on it; zero: no one knows.
func (f *Facts) bound(s *Status) time.Time {
	var at time.Time
	if d := f.Deadline; d != nil && (d.Type == v1alpha1.DeadlineHard || s.Retains) {
		at = d.Time.Time
	}
	if s.EndTime != nil && (at.IsZero() || s.EndTime.Time.Before(at)) {
		at = s.EndTime.Time
	}
	return at
}

// nextHeartbeat is when the hooks' time is extended next: a third of it after the
// last, so that two may get lost. The first comes sooner, and not for all instances
// at once.
func (f *Facts) nextHeartbeat(s *Status) time.Time {
	timeout := time.Duration(s.TimeoutSeconds) * time.Second
	switch {
	case s.LastHeartbeat == nil:
		return s.HeldTime.Add(timeout/6 + time.Duration(spread(f.InstanceID)*float64(timeout/6)))
	case s.Misses > 0:
		return s.LastHeartbeat.Add(afterMiss(timeout, s.ExpiryTime.Sub(s.LastHeartbeat.Time), s.Misses))
	}
	return s.LastHeartbeat.Add(timeout / 3)
}

// afterMiss is how soon a heartbeat is sent again that was not taken, with so much
// time left: the sooner the less that is. Once it is out for certain, something
// else holds the instance, and there is no hurry any more.
func afterMiss(timeout, left time.Duration, misses int32) time.Duration {
	pace := min(timeout/24<<min(misses-1, 8), timeout/3)
	switch {
	case left > 0:
		return max(min(pace, left/2), firstRetry)
	case left > -lookEvery: // since when it is held is known no better
		return max(pace, firstRetry)
	}
	return max(pace, lastRetry)
}

// answer lets the instance go, again and again until its state says that it does.
func (f *Facts) answer(s *Status) Decision {
	if text := f.givesUp(s); text != "" {
		s.Message = text
		return Decision{Status: s}
	}
	d := Decision{Status: s, Pending: true}
	if !f.Seen.Time.IsZero() && f.Now.Sub(f.Seen.Time) > freshFor && slices.ContainsFunc(s.Hooks, func(h v1alpha1.HookAnswer) bool { return h.Token == "" }) {
		s.Message = fmt.Sprintf("hook %s is answered once group %s could be looked at again, last at %s", names(s), s.Group, clock(f.Seen.Time))
		d.Look, d.Wake = true, f.Now.Add(lookSoon)
		return d
	}
	if at := f.nextAnswer(s); f.Now.Before(at) {
		d.Wake, d.Look = at, !f.lookedSince(s)
		return d
	}
	d.Do = Answer
	return d
}

// givesUp says why no answer is given any more, if none is.
func (f *Facts) givesUp(s *Status) string {
	accepted := !slices.ContainsFunc(s.Hooks, func(h v1alpha1.HookAnswer) bool { return !h.Accepted })
	blind, others := f.Seen.Time.IsZero(), f.others()
	switch {
	case accepted && len(others) > 0 && f.lookedSince(s):
		return fmt.Sprintf("hook %s is answered; hook %s of group %s still holds the instance, and is not Lifeboat's to answer", names(s), strings.Join(others, ", "), s.Group)
	case s.Tries >= blindTries && !accepted && lifecycle.Read(s.State).Phase == lifecycle.Warming:
		return fmt.Sprintf("no terminate hook of group %s is pending: it is a launch hook that holds the instance on its way into the warm pool", s.Group)
	case blind && (accepted || s.Tries >= blindTries):
		s.CompletedTime = microTime(f.Now)
		return fmt.Sprintf("hook %s was answered; whether the instance goes on is not known; allow autoscaling:DescribeAutoScalingGroups", names(s))
	}
	return ""
}

// lookedSince reports whether the group was looked at after the last answer.
func (f *Facts) lookedSince(s *Status) bool {
	return s.AnswerTime != nil && f.Seen.Time.After(s.AnswerTime.Time)
}

// nextAnswer is when the hooks are answered again.
func (f *Facts) nextAnswer(s *Status) time.Time {
	if s.AnswerTime == nil {
		return f.Now
	}
	wait := min(firstRetry<<min(max(s.Tries-1, 0), 8), lastRetry)
	if s.Tries >= blindTries && len(f.others()) > 0 {
		wait = slowRetry
	}
	wait += time.Duration(spread(f.InstanceID, fmt.Sprint(s.Tries)) * float64(wait/4))
	return s.AnswerTime.Add(wait)
}

func names(s *Status) string {
	var all []string
	for _, h := range s.Hooks {
		all = append(all, h.Name)
	}
	return strings.Join(all, ", ")
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func microTime(t time.Time) *metav1.MicroTime {
	at := metav1.NewMicroTime(t.Truncate(time.Microsecond))
	return &at
}
