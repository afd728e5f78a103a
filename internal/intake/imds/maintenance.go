package imds

import (
	"context"
	"errors"

	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// missedEnough is after how many consecutive reads an event that metadata no
// longer lists is over.
const missedEnough = 3

// lookAtMaintenance reads the scheduled events. Only if a known event is no
// longer listed does it read the history.
func (s *Source) lookAtMaintenance(ctx context.Context, see func(notice.Notice)) error {
	listed := map[string]bool{}
	note := func(path string, isHistory bool) error {
		return s.lookAt(ctx, path, func(text string) error {
			notices, err := readMaintenance(text, isHistory)
			for _, n := range notices {
				if isHistory && !s.knows(n.Subject) {
					continue // it was over before it was observed
				}
				listed[n.Subject] = true
				s.remember(n)
				see(n)
			}
			return err
		})
	}
	err := note(pathScheduled, false)
	if len(s.missing(listed)) == 0 {
		return err
	}
	if err := errors.Join(err, note(pathHistory, true)); err != nil {
		return err // the missing event may be in what could not be read
	}
	for _, n := range s.missing(listed) {
		if s.miss(n.Subject) {
			see(poll.Withdraw(n, "EC2 no longer lists the scheduled event "+n.EventTypeCode))
		}
	}
	return nil
}

func (s *Source) knows(subject string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.known[subject]
	return ok
}

// remember stores an upcoming event, or drops one that is over.
func (s *Source) remember(n notice.Notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.Withdrawn {
		delete(s.known, n.Subject)
		return
	}
	s.known[n.Subject] = event{notice: n}
}

// missing returns the upcoming events that are not listed.
func (s *Source) missing(listed map[string]bool) []notice.Notice {
	s.mu.Lock()
	defer s.mu.Unlock()
	var missing []notice.Notice
	for subject, e := range s.known {
		if !listed[subject] {
			missing = append(missing, e.notice)
		}
	}
	return missing
}

// miss counts that an event is not listed, and reports whether that is enough
// to consider it over.
func (s *Source) miss(subject string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.known[subject]
	e.missed++
	s.known[subject] = e
	if e.missed < missedEnough {
		return false
	}
	delete(s.known, subject)
	return true
}
