package lifecycle

import (
	"fmt"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// longestMessage is the limit of the CRD.
const longestMessage = 512

// noteHeld records since when the hooks hold the instance, and their timeouts.
func (f *TerminationFacts) noteHeld(s *Status) {
	own, _ := Split(f.Seen.Hooks, true)
	timeout, global := Limits(own)
	abandons := f.Seen.HooksKnown && len(s.Hooks) > 0
	for _, h := range own {
		abandons = abandons && h.Abandons
	}
	if timeout <= 0 && !f.Seen.HooksKnown {
		timeout = time.Duration(s.TimeoutSeconds) * time.Second // as it was at that time
	}
	timeout = Hook{Timeout: max(timeout, 0)}.timeout()
	s.TimeoutSeconds, s.RetainOnAbandon = int64(timeout/time.Second), f.Retain && abandons
	if s.WaitingSince == nil {
		s.WaitingSince = microTime(f.heldSince())
	}
	s.CompletedTime = nil // if it was set, it was wrong: the state decides
	if s.ExpiryTime == nil {
		s.ExpiryTime = microTime(s.WaitingSince.Add(timeout))
	}
	if s.EndTime == nil && global > 0 {
		s.EndTime = microTime(s.WaitingSince.Add(global - early))
	}
}

// heldSince is the latest possible start of the hold: the time of the event, or else just after
// the previous read of the group.
func (f *TerminationFacts) heldSince() time.Time {
	w := f.read()
	if !w.at.IsZero() && !w.at.After(f.Now) && f.Now.Sub(w.at) < 2*time.Hour {
		return w.at
	}
	return f.Now.Add(-lookEvery)
}

// hold returns the calls for the hooks from the status. All hooks are called together, because
// one intent is written for all.
func (f *TerminationFacts) hold(s *Status) Hold {
	timeout := time.Duration(s.TimeoutSeconds) * time.Second
	h := Hold{Now: f.Now, InstanceID: f.InstanceID, Since: s.WaitingSince.Time, Calls: map[string]CallRecord{}}
	_, h.Others = Split(f.Seen.Hooks, true)
	var record CallRecord
	if s.LastHeartbeat != nil {
		record = CallRecord{At: s.LastHeartbeat.Time, Do: Heartbeat, Outcome: Accepted, Extended: s.LastHeartbeat.Time}
	}
	if s.FailedHeartbeats > 0 {
		record.Outcome, record.Tries, record.Extended = Failed, int(s.FailedHeartbeats), s.ExpiryTime.Add(-timeout)
		if wasDenied(s) {
			record.Outcome = Denied
		}
	}
	if s.CompleteCallTime != nil && !s.CompleteCallTime.Time.Before(record.At) {
		record.At, record.Do, record.Outcome, record.Tries, record.Completed = s.CompleteCallTime.Time, Complete, Accepted, int(s.Tries), s.CompleteCallTime.Time
	}
	for _, hook := range s.Hooks {
		h.Own = append(h.Own, Hook{Name: hook.Name, Own: true, Terminating: true, Timeout: timeout})
		if !hook.Accepted && record.Do == Complete {
			record.Outcome, record.Completed = Failed, time.Time{}
		}
	}
	for _, hook := range s.Hooks {
		h.Calls[hook.Name] = record
	}
	return h
}

// Note records a call for the hooks before it is made, so that a crash repeats neither call at
// once.
func Note(s *Status, do Verb, now time.Time) {
	if do == Heartbeat {
		s.LastHeartbeat = microTime(now)
		s.Heartbeats++
		return
	}
	s.CompleteCallTime = microTime(now)
	s.Tries++
	for i := range s.Hooks {
		s.Hooks[i].Accepted = false // it was not enough, or no result would be sent
	}
}

// NoteResult records the error of each hook, in their order.
func NoteResult(s *Status, do Verb, errs ...error) {
	if do == Heartbeat {
		noteHeartbeat(s, missed(errs))
		return
	}
	var refused []string
	for i, err := range errs {
		if s.Hooks[i].Accepted = err == nil; err != nil {
			refused = append(refused, fmt.Sprintf("%s: %v", s.Hooks[i].Name, err))
		}
	}
	s.Message = fmt.Sprintf("hook %s is answered with %s; the instance continues when group %s has processed the answer", hookNames(s), cloud.Continue, s.Group)
	if len(refused) > 0 {
		s.Message = fmt.Sprintf("answering hook %s of group %s; the state is looked at, and it is answered again if it has not changed", strings.Join(refused, ", "), s.Group)
	}
	s.Message = notice.Cut(s.Message, longestMessage)
}

func noteHeartbeat(s *Status, err error) {
	if err == nil {
		if s.FailedHeartbeats > 0 {
			s.EndTime = nil // it can be extended again; its timeout says for how long
		}
		s.FailedHeartbeats, s.ExpiryTime = 0, microTime(s.LastHeartbeat.Add(time.Duration(s.TimeoutSeconds)*time.Second))
		return
	}
	s.FailedHeartbeats++
	s.Message = notice.Cut(fmt.Sprintf("extending hook %s of group %s: %v; its time is out at %s", hookNames(s), s.Group, err, clock(s.ExpiryTime.Time)), longestMessage)
	if OutcomeOf(err) == Denied {
		s.EndTime = microTime(s.ExpiryTime.Add(-early))
	}
}

// wasDenied reports whether the last heartbeat was denied: noteHeartbeat set the end then. The global time-out is far
// longer than the timeout of a hook, so it sets no such end.
func wasDenied(s *Status) bool {
	return s.FailedHeartbeats > 0 && s.EndTime != nil && s.EndTime.Time.Equal(s.ExpiryTime.Add(-early))
}

// missed is why the instance got no heartbeat; nil: it got one. If one hook has no pending
// action but another accepted a heartbeat, that is no miss: the first is completed, and the
// other holds the instance.
func missed(errs []error) error {
	var gone error
	extended := false
	for _, err := range errs {
		switch OutcomeOf(err) {
		case Accepted:
			extended = true
		case NoAction:
			gone = err
		default:
			return err
		}
	}
	if extended {
		return nil
	}
	return gone
}

func hookNames(s *Status) string {
	names := make([]string, len(s.Hooks))
	for i, h := range s.Hooks {
		names[i] = h.Name
	}
	return strings.Join(names, ", ")
}
