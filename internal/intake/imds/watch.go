package imds

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/internal/cloud/metadata"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

const (
	// maintenanceEvery is how many reads pass between reads of maintenance
	// events, which are announced days ahead.
	maintenanceEvery = 5
	// missedEnough is after how many consecutive reads an event that metadata
	// no longer lists is over.
	missedEnough = 3
	// longestPause is the longest wait between failing reads.
	longestPause = 30 * time.Second
)

// watch reads metadata until ctx is done.
func (s *Source) watch(ctx context.Context) {
	pause := backoff{first: s.o.Interval, longest: longestPause}
	for looks := 0; ; looks++ {
		err := s.look(ctx, looks%maintenanceEvery == 0)
		if ctx.Err() != nil {
			return
		}
		s.looked(ctx, err)
		wait := vary(s.o.Interval)
		if err != nil {
			wait = pause.next()
			looks = -1 // the next read includes maintenance events
		} else {
			pause.reset()
		}
		if !sleep.For(ctx, wait) {
			return
		}
	}
}

// looked stores the result of a read, and logs it if it is new.
func (s *Source) looked(ctx context.Context, err error) {
	s.mu.Lock()
	was, instance := s.read, s.instance
	if instance == "" {
		instance = s.expected
	}
	s.read = err
	s.mu.Unlock()
	s.o.Metrics.Up(Name, err == nil)
	if err == nil {
		if was != nil {
			log.FromContext(ctx).Info("instance metadata responds", "instance", instance)
		}
		return
	}
	reason := metadata.Unexpected
	var trouble *metadata.ReadError
	if errors.As(err, &trouble) {
		reason = trouble.Reason
	}
	s.o.Metrics.Failed(Name, "read", string(reason))
	s.logThrottled(ctx, "read "+string(reason)+instance, "cannot read instance metadata, retrying",
		"reason", reason, "error", err.Error(), "advice", metadata.Advice(reason, instance))
}

// look reads everything once. An error means that metadata does not respond.
// Content that cannot be decoded is not an error.
func (s *Source) look(ctx context.Context, whole bool) error {
	instance, err := s.identify(ctx)
	if err != nil {
		return err
	}
	see := func(n notice.Notice) {
		n.InstanceID = instance
		if s.deduper.Observe(n) {
			s.poke()
		}
	}
	now := s.o.Clock()
	for _, p := range []struct {
		path string
		read func(text string) (n notice.Notice, ok bool, err error)
	}{
		{pathSpot, func(text string) (notice.Notice, bool, error) { return ok(readSpot(text, now)) }},
		{pathRebalance, func(text string) (notice.Notice, bool, error) { return ok(readRebalance(text)) }},
		{pathAutoScaling, func(text string) (notice.Notice, bool, error) {
			n, ok := readLifecycle(text)
			return n, ok, nil
		}},
	} {
		err := s.lookAt(ctx, p.path, func(text string) error {
			n, ok, err := p.read(text)
			if ok {
				see(n)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	if !whole {
		return nil
	}
	return s.lookAtMaintenance(ctx, see)
}

// ok reports a notice if there is no error.
func ok(n notice.Notice, err error) (notice.Notice, bool, error) { return n, err == nil, err }

// identify reads, once, the instance id in metadata.
func (s *Source) identify(ctx context.Context) (string, error) {
	s.mu.Lock()
	instance := s.instance
	s.mu.Unlock()
	if instance != "" {
		return instance, nil
	}
	text, found, err := s.metadata.Get(ctx, pathInstance)
	if err != nil {
		return "", err
	}
	instance = strings.TrimSpace(text)
	if !found || !instanceFormat.MatchString(instance) {
		return "", &metadata.ReadError{Reason: metadata.Unexpected, Err: fmt.Errorf("reading instance metadata %s: %s is no instance id", pathInstance, quote(text))}
	}
	s.mu.Lock()
	s.instance = instance
	s.mu.Unlock()
	s.poke()
	return instance, nil
}

// lookAt reads a path. Content that cannot be decoded is counted and skipped: a
// later read may succeed.
func (s *Source) lookAt(ctx context.Context, path string, read func(text string) error) error {
	text, found, err := s.metadata.Get(ctx, path)
	if err != nil || !found {
		return err
	}
	if err := read(text); err != nil {
		s.o.Metrics.Unreadable(Name, path)
		s.logThrottled(ctx, "unreadable "+path, "cannot decode instance metadata", "path", path, "error", err.Error())
	}
	return nil
}

// lookAtMaintenance reads the scheduled events. Only if a known event is no
// longer listed does it read the history.
func (s *Source) lookAtMaintenance(ctx context.Context, see func(notice.Notice)) error {
	listed, sure := map[string]bool{}, true
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
			sure = sure && err == nil
			return err
		})
	}
	if err := note(pathScheduled, false); err != nil {
		return err
	}
	if len(s.missing(listed)) == 0 {
		return nil
	}
	if err := note(pathHistory, true); err != nil {
		return err
	}
	if !sure {
		return nil // the missing event may be the one that was not decoded
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

// backoff is an exponential backoff.
type backoff struct {
	first, longest time.Duration
	failures       int
}

func (b *backoff) next() time.Duration {
	pause := b.longest
	if b.failures < 10 {
		pause = min(b.longest, b.first<<b.failures)
		b.failures++
	}
	return vary(pause)
}

func (b *backoff) reset() { b.failures = 0 }

// vary adds jitter of up to a fifth, so that the nodes of a cluster do not act
// at once.
func vary(d time.Duration) time.Duration {
	fifth := int64(d / 5)
	if fifth <= 0 {
		return d
	}
	return d + time.Duration(rand.Int64N(2*fifth)-fifth)
}
