package sqs_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/intake/sqs"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// march is what a source did, and when, since it began.
type march struct {
	mu       sync.Mutex
	began    time.Time
	ahead    map[string]time.Duration // when what is done ahead of a notice was done
	recorded map[string]time.Duration
	received []time.Time // what the notices say
}

// follow runs a source on a queue. What is done ahead takes as long as takes says of its
// notice, or until it may take no longer, and reports what acts says.
func follow(t *testing.T, api sqs.API, takes func(id string) time.Duration, acts bool) *march {
	t.Helper()
	m := &march{began: time.Now(), ahead: map[string]time.Duration{}, recorded: map[string]time.Duration{}}
	w := &world{t: t, queue: "http://queue/0/lifeboat", calls: &calls{}, log: &lines{}}
	stop := w.run(api, recorderFunc(func(_ context.Context, n notice.Notice) (intake.Outcome, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.recorded[n.ID] = time.Since(m.began)
		m.received = append(m.received, n.ReceivedTime.Time)
		return intake.Recorded, nil
	}), sqs.Options{Receivers: 1, Ahead: func(ctx context.Context, n notice.Notice) bool {
		select {
		case <-time.After(takes(n.ID)):
		case <-ctx.Done():
			return false
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.ahead[n.ID] = time.Since(m.began)
		return acts
	}})
	time.Sleep(30 * time.Second)
	stop()
	return m
}

// spots are the bodies of spot warnings, named by their place.
func spots(n int) []string {
	var bodies []string
	for i := range n {
		bodies = append(bodies, spot(fmt.Sprint("s", i), instance).String())
	}
	return bodies
}

func TestNothingIsRecordedBeforeAllInHandIsDoneAhead(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const long = 700 * time.Millisecond
		m := follow(t, newPaper(append(spots(9), rebalance("hint", instance).String())...), func(id string) time.Duration {
			if id == "s3" {
				return long
			}
			return time.Millisecond
		}, true)
		if len(m.ahead) != 9 || len(m.recorded) != 10 {
			t.Fatalf("ahead of %v, recorded %v", m.ahead, m.recorded)
		}
		for id, at := range m.recorded {
			if urgent := id != "hint"; urgent && (at < long || at > long+200*time.Millisecond) || !urgent && at > time.Millisecond {
				t.Errorf("%s was recorded after %s", id, at)
			}
		}
		for _, at := range m.received {
			if at.After(m.began.Add(time.Millisecond)) {
				t.Errorf("received %s after it was", at.Sub(m.began))
			}
		}
	})
}

// What cannot be done ahead in time is left to the record, which is made all the same.
func TestWhatHangsAheadIsRecordedAllTheSame(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := follow(t, newPaper(spots(10)...), func(id string) time.Duration {
			if id == "s3" {
				return time.Hour
			}
			return time.Millisecond
		}, true)
		if len(m.ahead) != 9 || len(m.recorded) != 10 {
			t.Fatalf("ahead of %v, recorded %v", m.ahead, m.recorded)
		}
		for id, at := range m.recorded {
			if at > 3*time.Second {
				t.Errorf("%s was recorded after %s", id, at)
			}
		}
	})
}

func TestOneNoticeWaitsForNoOther(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := follow(t, newPaper(spots(1)...), func(string) time.Duration { return 20 * time.Millisecond }, true)
		if at := m.recorded["s0"]; at != m.ahead["s0"] || at > 25*time.Millisecond {
			t.Errorf("done ahead after %s, recorded after %s", m.ahead["s0"], at)
		}
	})
}

// Where nothing is to be done ahead, as on a replica that does not lead, nothing is waited for.
func TestWhereNothingIsDoneAheadNothingWaits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := follow(t, newPaper(spots(10)...), func(id string) time.Duration {
			if id == "s3" {
				return time.Second
			}
			return 0
		}, false)
		for id, at := range m.recorded {
			if id != "s3" && at > time.Millisecond {
				t.Errorf("%s was recorded after %s", id, at)
			}
		}
	})
}
