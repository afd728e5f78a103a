package termination

import (
	"fmt"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/cloud"
)

// Beating notes that a heartbeat is about to be sent.
func Beating(s *Status, now time.Time) {
	s.LastHeartbeat = microTime(now)
	s.Heartbeats++
}

// Beaten notes what came of it at each hook. That one has nothing to extend is no
// miss where another was told: it has let go, and the other holds the instance.
func Beaten(s *Status, errs ...error) {
	timeout := time.Duration(s.TimeoutSeconds) * time.Second
	err := missed(errs)
	if err == nil {
		if s.Misses > 0 {
			s.EndTime = nil // it can be extended again; for how long, the hook says
		}
		s.Misses, s.ExpiryTime = 0, microTime(s.LastHeartbeat.Add(timeout))
		return
	}
	s.Misses++
	s.Message = clip(fmt.Sprintf("extending hook %s of group %s: %v; its time is out at %s", names(s), s.Group, err, clock(s.ExpiryTime.Time)))
	if cloud.IsDenied(err) {
		s.EndTime = microTime(s.ExpiryTime.Add(-early))
	}
}

// missed is why the instance was not extended; nil: it was.
func missed(errs []error) error {
	var gone error
	told := false
	for _, err := range errs {
		switch {
		case err == nil:
			told = true
		case cloud.IsNoAction(err):
			gone = err
		default:
			return err
		}
	}
	if told {
		return nil
	}
	return gone
}

// Answering notes that the hooks are about to be answered.
func Answering(s *Status, now time.Time) {
	s.AnswerTime = microTime(now)
	s.Tries++
	for i := range s.Hooks {
		s.Hooks[i].Accepted = false // it was not enough, or this would not be
	}
}

// Answered notes what came of the answer of each hook, in their order.
func Answered(s *Status, errs []error) {
	var refused []string
	for i, err := range errs {
		if s.Hooks[i].Accepted = err == nil; err != nil {
			refused = append(refused, fmt.Sprintf("%s: %v", s.Hooks[i].Name, err))
		}
	}
	s.Message = fmt.Sprintf("hook %s is answered with %s; the instance goes once group %s has seen to it", names(s), cloud.Continue, s.Group)
	if len(refused) > 0 {
		s.Message = fmt.Sprintf("answering hook %s of group %s; the state is looked at, and it is answered again if it has not changed", strings.Join(refused, ", "), s.Group)
	}
	s.Message = clip(s.Message)
}

// clip keeps a sentence within what the CRD takes.
func clip(text string) string {
	const most = 500
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
