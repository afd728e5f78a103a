package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	emulated "github.com/lifeboat-dev/lifeboat/emulator/sqs"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/intake/sqs"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// noise is what a busy account sends to a queue whose rules are too broad.
func noise(i int) string {
	id := fmt.Sprintf("i-%017x", i)
	switch i % 4 {
	case 0:
		return state(fmt.Sprint("p", i), id, "pending").String()
	case 1:
		return state(fmt.Sprint("r", i), id, "running").String()
	case 2:
		return state(fmt.Sprint("t", i), id, "terminated").String()
	}
	return message{id: fmt.Sprint("f", i), detailType: "EC2 Spot Instance Request Fulfillment", instance: id}.String()
}

// fill puts messages into the queue without HTTP.
func (w *world) fill(count int) {
	w.t.Helper()
	for i := range count {
		if _, err := w.server.States.SQS.Send("lifeboat", emulated.Outgoing{Body: noise(i)}, account); err != nil {
			w.t.Fatal(err)
		}
	}
}

func TestSpotWarningPassesNoise(t *testing.T) {
	const messages = 5000
	w := newWorld(t)
	w.fill(messages)
	w.send(spot("a", instance).String())
	began := time.Now()
	w.start(w.aws, sqs.Options{})
	w.until("the warning is recorded", func() bool { return len(w.records()) == 1 })
	took := time.Since(began)
	w.untilOutcomes(map[string]float64{"ofNoConcern": messages * 3 / 4, "foreign": messages / 4, "recorded": 1})
	w.untilEmpty()
	t.Logf("recorded behind %d messages after %s, with %d receives and %d deletes",
		messages, took.Round(time.Millisecond), w.calls.of("receive"), w.calls.of("delete"))

	batches := messages/10 + 1
	// Batches that others empty, and the polls that wait at the end.
	if slack := batches / 10; w.calls.of("receive") > batches+slack || w.calls.of("delete") > batches+slack {
		t.Errorf("%d receives and %d deletes for %d full batches", w.calls.of("receive"), w.calls.of("delete"), batches)
	}
	if w.nodes.asked != messages/4+1 {
		t.Errorf("the node index was asked %d times, want only for what may concern a node", w.nodes.asked)
	}
	if got := w.log.with(""); got > 10 {
		t.Errorf("%d lines in the log of a burst:\n%s", got, w.log)
	}
	if diff := cmp.Diff(map[string][]string{instance: {"a"}}, w.records()); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// A slow message must delay neither those of its batch nor those of the next.
func TestSlowWriteDelaysNoOther(t *testing.T) {
	w := newWorld(t)
	slow := make(chan struct{})
	var quick atomic.Int32
	recorder := recorderFunc(func(_ context.Context, n notice.Notice) (intake.Outcome, error) {
		if n.ID == "slow" {
			<-slow
		} else {
			quick.Add(1)
		}
		return intake.Recorded, nil
	})
	w.send(spot("slow", instance).String())
	for i := range 35 {
		w.send(spot(fmt.Sprint("n", i), instance).String())
	}
	w.run(w.aws, recorder, sqs.Options{})
	w.until("all others are recorded", func() bool { return quick.Load() == 35 })
	close(slow)
	w.untilEmpty()
}

type recorderFunc func(context.Context, notice.Notice) (intake.Outcome, error)

func (f recorderFunc) Record(ctx context.Context, n notice.Notice) (intake.Outcome, error) {
	return f(ctx, n)
}

func (recorderFunc) Report(context.Context, intake.Report) (intake.Outcome, error) {
	return "", errors.New("no report was expected")
}

func (recorderFunc) Answer(context.Context, intake.Probe) error {
	return errors.New("no probe was expected")
}

// BenchmarkNoise processes a full queue over HTTP, in messages per second.
func BenchmarkNoise(b *testing.B) {
	const messages = 2000
	for _, share := range []int{0, 2} { // relevant messages per hundred
		b.Run(fmt.Sprintf("%d%%relevant", share), func(b *testing.B) {
			w := newWorld(b)
			for b.Loop() {
				b.StopTimer()
				w.fill(messages)
				for i := range messages * share / 100 {
					id := fmt.Sprintf("i-f%016x", i)
					w.nodes.add(id)
					w.send(spot(fmt.Sprint("s", i, b.Elapsed()), id).String())
				}
				b.StartTimer()
				stop := w.start(w.aws, sqs.Options{})
				w.untilEmpty()
				stop()
			}
			b.ReportMetric(float64(messages)*float64(b.N)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}
