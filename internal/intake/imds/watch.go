package imds

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/internal/cloud/metadata"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

const (
	// maintenanceEvery is how many reads pass between reads of maintenance
	// events, which are announced days ahead.
	maintenanceEvery = 5
	// longestPause is the longest wait between failing reads.
	longestPause = 30 * time.Second
)

// watch reads metadata until ctx is done. It backs off only while no path
// responds: a path that fails must not delay the notices of the others.
func (s *Source) watch(ctx context.Context) {
	pause := backoff{first: s.o.Interval, longest: longestPause}
	for looks := 0; ; looks++ {
		responds, err := s.look(ctx, looks%maintenanceEvery == 0)
		if ctx.Err() != nil {
			return
		}
		s.looked(ctx, err)
		wait := vary(s.o.Interval)
		if responds {
			pause.reset()
		} else {
			wait = pause.next()
		}
		if err != nil {
			looks = -1 // the next read includes maintenance events, which may be what failed
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
		instance = s.self.InstanceID
	}
	s.read = metadata.Explain(err, instance)
	s.mu.Unlock()
	s.o.Metrics.Up(Name, err == nil)
	if err == nil {
		if was != nil {
			log.FromContext(ctx).Info("instance metadata responds", "instance", instance)
		}
		return
	}
	for _, reason := range metadata.Reasons(err) {
		if reason == metadata.Unreadable {
			continue // lookAt has logged and counted it
		}
		s.o.Metrics.Failed(Name, "read", string(reason))
		s.logThrottled(ctx, "read "+string(reason)+instance, "cannot read instance metadata, retrying",
			"reason", reason, "error", err.Error(), "advice", metadata.Advice(reason, instance))
	}
}

// subject reads one path for notices.
type subject struct {
	path string
	read func(text string) (n notice.Notice, ok bool, err error)
}

// subjects are the paths that are read each time, the most urgent first.
func subjects() []subject {
	return []subject{
		{pathSpot, func(text string) (notice.Notice, bool, error) { return ok(readSpot(text)) }},
		{pathAutoScaling, func(text string) (notice.Notice, bool, error) {
			n, ok := readLifecycle(text)
			return n, ok, nil
		}},
		{pathRebalance, func(text string) (notice.Notice, bool, error) { return ok(readRebalance(text)) }},
	}
}

// look reads each path once, independently of the others. It reports whether
// any path responds, and joins the errors of those that fail.
func (s *Source) look(ctx context.Context, whole bool) (responds bool, _ error) {
	instance, err := s.identify(ctx)
	if err != nil {
		return false, err
	}
	see := func(n notice.Notice) {
		n.InstanceID = instance
		if s.observe(n) {
			s.poke()
		}
	}
	var failed []error
	note := func(err error) {
		failed = append(failed, err)
		responds = responds || err == nil || hasReason(err, metadata.Unreadable)
	}
	for _, p := range subjects() {
		err := s.lookAt(ctx, p.path, func(text string) error {
			n, ok, err := p.read(text)
			if ok {
				see(n)
			}
			return err
		})
		note(err)
		if hasReason(err, metadata.HopLimit) || hasReason(err, metadata.Disabled) {
			return responds, err // no path can respond, and each would wait for its timeout
		}
	}
	if whole {
		note(s.lookAtMaintenance(ctx, see))
	}
	return responds, errors.Join(failed...)
}

func hasReason(err error, reason metadata.Reason) bool {
	return slices.Contains(metadata.Reasons(err), reason)
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

// lookAt reads a path. Content that cannot be decoded is counted, logged, and
// an error: it may be a notice.
func (s *Source) lookAt(ctx context.Context, path string, read func(text string) error) error {
	text, found, err := s.metadata.Get(ctx, path)
	if err != nil || !found {
		return err
	}
	if err := read(text); err != nil {
		s.o.Metrics.Unreadable(Name, path)
		s.logThrottled(ctx, "unreadable "+path, "cannot decode instance metadata: a notice may be lost", "path", path, "error", err.Error(),
			"advice", metadata.Advice(metadata.Unreadable, ""))
		return &metadata.ReadError{Reason: metadata.Unreadable, Err: fmt.Errorf("decoding instance metadata %s: %w", path, err)}
	}
	return nil
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
