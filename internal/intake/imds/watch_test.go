package imds

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/internal/cloud/metadata"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll/polltest"
)

const instance = "i-0a1b2c3d4e5f60718"

// page is fake metadata.
type page struct {
	mu     sync.Mutex
	says   map[string]string
	fails  error            // of every path
	failed map[string]error // by path
	counts map[string]int
	looks  []time.Time // at the first path
}

func newPage() *page {
	return &page{says: map[string]string{pathInstance: instance, pathScheduled: "[]"}, counts: map[string]int{}, failed: map[string]error{}}
}

func (p *page) Get(_ context.Context, path string) (string, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[path]++
	if path == pathSpot {
		p.looks = append(p.looks, time.Now())
	}
	text, found := p.says[path]
	err := p.fails
	if err == nil {
		err = p.failed[path]
	}
	if err != nil {
		return "", false, err
	}
	return text, found, nil
}

func (p *page) set(path, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.says[path] = text
}

func (p *page) remove(path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.says, path)
}

func (p *page) failPath(path string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed[path] = err
}

func (p *page) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fails = err
}

// inBubble runs a source on the page during play, in virtual time.
func inBubble(t *testing.T, play func(p *page, w *polltest.World, s *Source)) {
	synctest.Test(t, func(t *testing.T) {
		w, p := polltest.New(t), newPage()
		w.AddNode(instance)
		ctx, cancel := context.WithCancel(t.Context())
		s := New(p, Options{Kube: w.AgentClient(), Metrics: w.Metrics, Identify: func(context.Context) (Identity, error) {
			return Identity{Node: polltest.NodeName(instance), UID: "uid", InstanceID: instance}, nil
		}})
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		synctest.Wait()
		play(p, w, s)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

const twoEvents = `[{"EventId":"instance-event-1","Code":"instance-stop","NotBefore":"21 May 2066 09:00:43 GMT","State":"active"},
	{"EventId":"instance-event-2","Code":"system-reboot","NotBefore":"21 May 2066 09:00:43 GMT","State":"active"}]`

const oneEvent = `[{"EventId":"instance-event-2","Code":"system-reboot","NotBefore":"21 May 2066 09:00:43 GMT","State":"active"}]`

func TestRequestsPerMinute(t *testing.T) {
	inBubble(t, func(p *page, _ *polltest.World, _ *Source) {
		time.Sleep(10*time.Minute - time.Second)
		p.mu.Lock()
		defer p.mu.Unlock()
		total := 0
		for _, n := range p.counts {
			total += n
		}
		if p.counts[pathInstance] != 1 || p.counts[pathHistory] != 0 {
			t.Errorf("asked who it is %d times and for history %d times", p.counts[pathInstance], p.counts[pathHistory])
		}
		if total < 900 || total > 1050 {
			t.Errorf("%d requests in ten minutes (%v), want three each 2 s and one each 10 s", total, p.counts)
		}
	})
}

func TestEventIsNoLongerListed(t *testing.T) {
	inBubble(t, func(p *page, w *polltest.World, _ *Source) {
		p.set(pathScheduled, twoEvents)
		time.Sleep(30 * time.Second)
		p.set(pathScheduled, oneEvent)
		time.Sleep(15 * time.Second)
		for _, n := range w.Written(instance) {
			if n.Withdrawn {
				t.Errorf("taken back at once: %+v", n)
			}
		}
		time.Sleep(time.Minute)
		got := map[string]bool{}
		for _, n := range w.Written(instance) {
			got[n.Subject] = n.Withdrawn
		}
		if diff := cmp.Diff(map[string]bool{"instance-event-1": true, "instance-event-2": false}, got); diff != "" {
			t.Errorf("taken back (-want +got):\n%s", diff)
		}
	})
}

func TestUnreadableReplyWithdrawsNothing(t *testing.T) {
	for _, text := range []string{`<html>`, `[{"EventId":"instance-event-1","Code":"instance-stop","NotBefore":"soon"}]`, `{}`} {
		inBubble(t, func(p *page, w *polltest.World, _ *Source) {
			p.set(pathScheduled, twoEvents)
			time.Sleep(30 * time.Second)
			p.set(pathScheduled, text)
			time.Sleep(10 * time.Minute)
			for _, n := range w.Written(instance) {
				if n.Withdrawn {
					t.Errorf("%q took back %+v", text, n)
				}
			}
			if len(w.Written(instance)) != 2 {
				t.Errorf("on record: %v", w.Written(instance))
			}
		})
	}
}

func TestBackOffAndRecovery(t *testing.T) {
	inBubble(t, func(p *page, w *polltest.World, s *Source) {
		time.Sleep(10 * time.Second)
		p.fail(&metadata.ReadError{Reason: metadata.Throttled, Err: errors.New("503")})
		time.Sleep(10 * time.Minute)
		p.mu.Lock()
		looks := len(p.looks)
		last := p.looks[looks-1].Sub(p.looks[looks-2])
		p.mu.Unlock()
		if looks > 35 || last < 20*time.Second || last > 40*time.Second {
			t.Errorf("%d looks, the last two %s apart; want ever fewer, up to 30 s apart", looks, last)
		}
		if s.Ready() == nil {
			t.Error("ready without metadata")
		}
		p.set(pathSpot, fmt.Sprintf(`{"action":"terminate","time":%q}`, time.Now().Add(2*time.Minute).UTC().Format(time.RFC3339)))
		p.fail(nil)
		time.Sleep(40 * time.Second)
		if len(w.Written(instance)) != 1 || s.Ready() != nil {
			t.Errorf("on record %v, ready: %v", w.Written(instance), s.Ready())
		}
		time.Sleep(time.Minute)
		p.fail(&metadata.ReadError{Reason: metadata.Unreachable, Err: errors.New("away")})
		time.Sleep(3 * time.Second)
		p.fail(nil)
		time.Sleep(6 * time.Second) // of back-off there is one pause of 2 s and one of 4 s, each a fifth more at most
		if s.Ready() != nil {
			t.Errorf("a short trouble lasts: %v", s.Ready())
		}
	})
}

func TestJitteredInterval(t *testing.T) {
	b := backoff{first: time.Second, longest: 30 * time.Second}
	for i := range 40 {
		base := min(30*time.Second, time.Second<<min(i, 10))
		if got := b.next(); got < base*4/5 || got > base*6/5 {
			t.Errorf("pause %d is %s, want around %s", i, got, base)
		}
	}
	b.reset()
	if got := b.next(); got > 1200*time.Millisecond {
		t.Errorf("after a success the first pause is %s", got)
	}
}
