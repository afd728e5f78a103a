package sqs_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/intake/sqs"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

func TestReceiversGrowWhileBatchesAreBusy(t *testing.T) {
	for size, wantInHand := range map[int]int{
		10: (100 + 12) * 10, // a thousand messages in the background, and a batch per receiver
		7:  (142 + 12) * 7,  // SQS returns partial batches although it has more
		5:  200 * 5,         // all of them
		4:  2 * 4,           // no sign of a burst
	} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var inHand, most atomic.Int32
				api := &batchQueue{fakeQueue: newFakeQueue(), batches: 200, size: size}
				w := &world{t: t, queue: "http://queue/0/lifeboat", calls: &calls{}, log: &lines{}}
				stop := w.run(api, recorderFunc(func(context.Context, notice.Notice) (intake.Outcome, error) {
					most.Store(max(most.Load(), inHand.Add(1)))
					time.Sleep(time.Second)
					inHand.Add(-1)
					return intake.Recorded, nil
				}), sqs.Options{Receivers: 2, MaxReceivers: 12, ConcurrentWrites: 2000})
				time.Sleep(125 * time.Second) // all messages are processed, and no receive ends now
				if got := int(most.Load()); got != wantInHand {
					t.Errorf("%d messages were processed concurrently, want %d", got, wantInHand)
				}
				before := w.calls.of("receive")
				time.Sleep(time.Minute)
				if got := w.calls.of("receive") - before; got != 2*3 {
					t.Errorf("%d receives in a minute of an empty queue, want those of two receivers", got)
				}
				stop()
			})
		})
	}
}

// batchQueue returns some batches of one size, and then none.
type batchQueue struct {
	*fakeQueue
	batches, size int
}

func (q *batchQueue) ReceiveMessage(ctx context.Context, in *awssqs.ReceiveMessageInput, o ...func(*awssqs.Options)) (*awssqs.ReceiveMessageOutput, error) {
	q.mu.Lock()
	if q.batches > 0 {
		q.batches--
		body := spot("s", instance).String()
		q.messages = slices.Repeat([]types.Message{{Body: &body, ReceiptHandle: aws.String("handle")}}, q.size)
	}
	out := q.messages
	q.messages = nil
	q.mu.Unlock()
	if len(out) > 0 {
		return &awssqs.ReceiveMessageOutput{Messages: out}, nil
	}
	return q.fakeQueue.ReceiveMessage(ctx, in, o...)
}

func (*batchQueue) DeleteMessageBatch(context.Context, *awssqs.DeleteMessageBatchInput, ...func(*awssqs.Options)) (*awssqs.DeleteMessageBatchOutput, error) {
	return &awssqs.DeleteMessageBatchOutput{}, nil
}

func TestUrgentNoticesAreWrittenFirst(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var mu sync.Mutex
		waited := map[string]time.Duration{}
		var bodies []string
		for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
			bodies = append(bodies, rebalance(id, instance).String())
		}
		// Not the last: Go's scheduler runs the newest goroutine first.
		api := newFakeQueue(slices.Insert(bodies, len(bodies)-1, spot("spot", instance).String())...)
		w := &world{t: t, queue: "http://queue/0/lifeboat", calls: &calls{}, log: &lines{}}
		began := time.Now()
		stop := w.run(api, recorderFunc(func(_ context.Context, n notice.Notice) (intake.Outcome, error) {
			mu.Lock()
			waited[n.ID] = time.Since(began)
			mu.Unlock()
			time.Sleep(time.Second)
			return intake.Recorded, nil
		}), sqs.Options{Receivers: 1, ConcurrentWrites: 2})
		time.Sleep(10 * time.Second)
		stop()
		// Two writes may be in flight before it, for a second each. In the order of the batch
		// it would wait for three seconds. The order of two writes that are admitted at the
		// same instant is not defined.
		if took, written := waited["spot"]; !written || took > time.Second {
			t.Errorf("the spot warning was written after %s: %v", took, waited)
		}
	})
}

func TestNoticeIsRecordedWhenNodeRegisters(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		began := time.Now()
		api := newFakeQueue(spot("a", other).String())
		w, stop := startOnFakeQueue(t, api, func(context.Context, notice.Notice) (intake.Outcome, error) {
			if time.Since(began) < 5*time.Second {
				return intake.NotYetKnown, nil
			}
			return intake.Recorded, nil
		})
		<-api.deleted
		if took := time.Since(began); took > 7*time.Second {
			t.Errorf("recorded %s after the notice, though the node was there after five seconds", took)
		}
		synctest.Wait()
		if !slices.Equal(api.hidden, []int32{15}) {
			t.Errorf("hidden for %v seconds", api.hidden)
		}
		if got := w.count("lifeboat_received_messages_total", "outcome"); got["notYetKnown"] != 1 || got["recorded"] != 1 {
			t.Errorf("outcomes %v", got)
		}
		stop()
	})
}
