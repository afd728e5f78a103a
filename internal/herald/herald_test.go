package herald_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/lifeboat-dev/lifeboat/internal/calm"
	"github.com/lifeboat-dev/lifeboat/internal/herald"
)

// recorder notes when it was told what.
type recorder struct {
	mu   sync.Mutex
	told []string
	at   []time.Duration
	from time.Time
}

func (r *recorder) Eventf(about, _ runtime.Object, _, reason, _, note string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pod, _ := about.(*corev1.ObjectReference)
	r.told = append(r.told, fmt.Sprintf("%s %s %s", pod.Name, reason, fmt.Sprintf(note, args...)))
	r.at = append(r.at, time.Since(r.from))
}

func play(t *testing.T, story func(h *herald.Herald, c *calm.Calm, stop context.CancelFunc)) *recorder {
	r := &recorder{}
	synctest.Test(t, func(t *testing.T) {
		r.from = time.Now()
		c := &calm.Calm{}
		h := herald.New(r, scheme.Scheme, c)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- h.Start(ctx) }()
		story(h, c, stop)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return r
}

func tell(h *herald.Herald, name string) {
	pod := &corev1.Pod{}
	pod.Name = name
	h.Eventf(pod, nil, "Normal", "Evicted", "Evicted", "%s", "goes")
	pod.Name = "changed since"
}

func TestEventsAreToldInTheirOrder(t *testing.T) {
	r := play(t, func(h *herald.Herald, c *calm.Calm, _ context.CancelFunc) {
		for i := range 3 {
			tell(h, fmt.Sprint("p", i))
		}
		time.Sleep(time.Second)
	})
	if got := fmt.Sprint(r.told); got != "[p0 Evicted goes p1 Evicted goes p2 Evicted goes]" || r.at[2] > 50*time.Millisecond {
		t.Errorf("%s at %v", got, r.at)
	}
}

func TestEventsWaitUntilNothingUrgentIsDone(t *testing.T) {
	r := play(t, func(h *herald.Herald, c *calm.Calm, _ context.CancelFunc) {
		c.Busy()()
		tell(h, "p")
		for range 20 {
			time.Sleep(100 * time.Millisecond)
			c.Busy()()
		}
		time.Sleep(time.Second)
	})
	if len(r.at) != 1 || r.at[0] < 2*time.Second || r.at[0] > 2300*time.Millisecond {
		t.Errorf("told at %v, want soon after two seconds", r.at)
	}
}

func TestEventsAreNotHeldBackForEver(t *testing.T) {
	r := play(t, func(h *herald.Herald, c *calm.Calm, _ context.CancelFunc) {
		tell(h, "p")
		for range 1200 {
			c.Busy()()
			time.Sleep(100 * time.Millisecond)
		}
	})
	if len(r.at) != 1 || r.at[0] > 61*time.Second {
		t.Errorf("told at %v, want after a minute at the latest", r.at)
	}
}

func TestWhatIsLeftIsToldAtTheEnd(t *testing.T) {
	r := play(t, func(h *herald.Herald, c *calm.Calm, stop context.CancelFunc) {
		c.Busy()()
		for i := range 100 {
			tell(h, fmt.Sprint("p", i))
		}
		synctest.Wait()
		stop()
		synctest.Wait()
	})
	if len(r.told) != 100 {
		t.Errorf("%d were told", len(r.told))
	}
}
