package tracing

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// sender is a collector in memory.
type sender struct {
	rejects int64
	err     error
	hangs   chan struct{} // it answers once this is closed; nil: at once
	names   []string
}

func (s *sender) Send(ctx context.Context, spans []*tracepb.Span, _ string) (int64, error) {
	if s.hangs != nil {
		select {
		case <-s.hangs:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	for _, span := range spans {
		s.names = append(s.names, span.GetName())
	}
	return s.rejects, s.err
}

// run calls f with a controller that sends, in a bubble with its own clock.
func run(t *testing.T, to *sender, f func(*testing.T, *Controller)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, err := New(Options{Sender: to, Version: "v1", Clock: time.Now, Registerer: prometheus.NewRegistry()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Start(ctx) }()
		defer func() {
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}()
		f(t, c)
	})
}

// finished is an Interruption that is over; it has one span.
func finished(name string, ago time.Duration) *v1beta1.Interruption {
	in := &v1beta1.Interruption{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	end := metav1.NewMicroTime(time.Now().Add(-ago))
	in.Status.CompletionTime = &end
	in.CreationTimestamp = metav1.NewTime(end.Add(-time.Minute))
	return in
}

func (c *Controller) counted(outcome string) int {
	return int(testutil.ToFloat64(c.spans.WithLabelValues(outcome)))
}

func TestEachInterruptionIsSentOnce(t *testing.T) {
	to := &sender{}
	run(t, to, func(t *testing.T, c *Controller) {
		in := finished("i-1", 0)
		running := finished("i-2", 0)
		running.Status.CompletionTime = nil
		for _, in := range []*v1beta1.Interruption{in, in, running, finished("i-old", time.Hour)} {
			c.take(t.Context(), in)
		}
		synctest.Wait()
		if len(to.names) != 1 || c.counted(outcomeSent) != 1 {
			t.Fatalf("sent %v", to.names)
		}
		time.Sleep(time.Minute)
		c.take(t.Context(), finished("i-1", 0)) // a later interruption of the same instance
		synctest.Wait()
		if len(to.names) != 2 {
			t.Errorf("sent %v", to.names)
		}
		c.forget("i-1")
		if len(c.sent) != 0 {
			t.Errorf("%d deleted Interruptions are remembered", len(c.sent))
		}
	})
}

// A replica that becomes the leader hours after its start must not send again what the leader before
// it has sent.
func TestLateLeaderSendsRecentInterruptions(t *testing.T) {
	to := &sender{}
	run(t, to, func(t *testing.T, c *Controller) {
		time.Sleep(5 * time.Hour)
		for _, in := range []*v1beta1.Interruption{finished("i-old", time.Hour), finished("i-recent", time.Minute)} {
			c.take(t.Context(), in)
		}
		synctest.Wait()
		if c.counted(outcomeSent) != 1 {
			t.Errorf("%d spans are sent, want those of i-recent", c.counted(outcomeSent))
		}
	})
}

// Reconciles do not wait for a collector that hangs. What does not fit is dropped and counted.
func TestSlowCollectorDelaysNothing(t *testing.T) {
	to := &sender{}
	run(t, to, func(t *testing.T, c *Controller) {
		to.hangs = make(chan struct{})
		begin := time.Now()
		c.take(t.Context(), finished("first", 0))
		synctest.Wait() // its request hangs
		for i := range queueSize + 5 {
			c.take(t.Context(), finished(fmt.Sprintf("i-%d", i), 0))
		}
		if took := time.Since(begin); took != 0 || c.counted(outcomeOverflow) != 5 {
			t.Errorf("took %s, %d dropped", took, c.counted(outcomeOverflow))
		}
		close(to.hangs)
		synctest.Wait()
		if c.counted(outcomeSent) != queueSize+1 {
			t.Errorf("%d sent", c.counted(outcomeSent))
		}
	})
}

func TestLostSpansAreCounted(t *testing.T) {
	for outcome, to := range map[string]*sender{outcomeFailed: {err: errors.New("no route")}, outcomeRejected: {rejects: 1}} {
		run(t, to, func(t *testing.T, c *Controller) {
			c.take(t.Context(), finished("i-1", 0))
			synctest.Wait()
			if c.counted(outcome) != 1 || c.counted(outcomeSent) != 0 {
				t.Errorf("%s: %d, sent %d", outcome, c.counted(outcome), c.counted(outcomeSent))
			}
		})
	}
}
