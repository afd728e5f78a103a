package sqs_test

import (
	"context"
	"errors"
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
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/intake/sqs"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// These tests use testing/synctest, so that minutes pass instantly, with a fake queue without
// HTTP.

var errDown = errors.New("connection refused")

// inBubble runs a test at a current time: synctest's clock starts in 2000, before EC2 existed.
func inBubble(t *testing.T, test func(*testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 5, 11, 8, 0, 0, 0, time.UTC)))
		test(t)
	})
}

// startOnFakeQueue starts a replica on a fake queue.
func startOnFakeQueue(t *testing.T, api *fakeQueue, recorder recorderFunc) (w *world, stop func()) {
	t.Helper()
	w = &world{t: t, queue: "http://queue/0/lifeboat", calls: &calls{}, log: &lines{}, registry: prometheus.NewRegistry()}
	metrics, err := intake.NewMetrics(w.registry)
	if err != nil {
		t.Fatal(err)
	}
	w.metrics = metrics
	return w, w.run(api, recorder, sqs.Options{Receivers: 1, Metrics: metrics})
}

func TestShortAPIServerOutage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		began, attempts := time.Now(), 0
		api := newFakeQueue(spot("a", instance).String())
		w, _ := startOnFakeQueue(t, api, func(context.Context, notice.Notice) (intake.Outcome, error) {
			attempts++
			if time.Since(began) < 20*time.Second {
				return "", errDown
			}
			return intake.Recorded, nil
		})
		<-api.deleted
		if took := time.Since(began); took > 22*time.Second {
			t.Errorf("recorded after %s", took)
		}
		if attempts < 8 || attempts > 30 {
			t.Errorf("%d attempts in 20 seconds", attempts)
		}
		synctest.Wait()
		if got := w.count("lifeboat_received_messages_total", "outcome"); fmt.Sprint(got) != "map[recorded:1]" {
			t.Errorf("outcomes %v: the message should have stayed in hand", got)
		}
		if w.log.with(`"cannot record notice, retrying`, "connection refused") != 1 {
			t.Errorf("log:\n%s", w.log)
		}
	})
}

func TestAPIServerOutageLongerThanVisibility(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		began := time.Now()
		api := newFakeQueue(spot("a", instance).String())
		w, _ := startOnFakeQueue(t, api, func(context.Context, notice.Notice) (intake.Outcome, error) { return "", errDown })
		time.Sleep(29 * time.Second)
		synctest.Wait()
		if got := w.count("lifeboat_received_messages_total", "outcome"); fmt.Sprint(got) != "map[failed:1]" {
			t.Errorf("outcomes after %s: %v", time.Since(began), got)
		}
		// Renewed every five seconds for twenty-five, and then released.
		if len(api.deletes) != 0 || fmt.Sprint(api.hidden) != "[10 10 10 10 10]" && fmt.Sprint(api.hidden) != "[10 10 10 10]" {
			t.Errorf("deletes %v, visibility %v: the message should have been kept, and left", api.deletes, api.hidden)
		}
	})
}

func TestRejectedRecordStaysInQueue(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var attempts atomic.Int32
		api := newFakeQueue(spot("a", instance).String())
		w, _ := startOnFakeQueue(t, api, func(context.Context, notice.Notice) (intake.Outcome, error) {
			attempts.Add(1)
			return "", fmt.Errorf("%w: spec.notices in body is too clever", intake.ErrRefused)
		})
		time.Sleep(time.Second)
		synctest.Wait()
		if attempts.Load() != 1 || len(api.deletes) != 0 {
			t.Errorf("%d attempts, %v deletes", attempts.Load(), api.deletes)
		}
		if got := w.count("lifeboat_unreadable_messages_total", "reason"); got["record"] != 1 || w.log.with("too clever") != 1 {
			t.Errorf("unreadable %v, log:\n%s", got, w.log)
		}
	})
}

func TestHangingWriteIsRetried(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		began, attempts := time.Now(), 0
		api := newFakeQueue(spot("a", instance).String())
		startOnFakeQueue(t, api, func(ctx context.Context, _ notice.Notice) (intake.Outcome, error) {
			if attempts++; attempts == 1 {
				<-ctx.Done()
				return "", ctx.Err()
			}
			return intake.Recorded, nil
		})
		<-api.deleted
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("recorded after %s", took)
		}
	})
}

func TestStopFinishesReceivedMessages(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		api := newFakeQueue(spot("a", instance).String())
		_, stop := startOnFakeQueue(t, api, func(ctx context.Context, _ notice.Notice) (intake.Outcome, error) {
			select {
			case <-ctx.Done():
				return "", ctx.Err()
			case <-time.After(2 * time.Second):
				return intake.Recorded, nil
			}
		})
		time.Sleep(time.Second)
		began := time.Now()
		stop()
		if took := time.Since(began); took != time.Second || !slices.Equal(api.deletes, []int{1}) {
			t.Errorf("stopped after %s with deletes %v", took, api.deletes)
		}
	})
}

func TestStopReleasesUnfinishedMessages(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		api := newFakeQueue(spot("a", instance).String(), state("b", instance, "running").String())
		_, stop := startOnFakeQueue(t, api, func(ctx context.Context, _ notice.Notice) (intake.Outcome, error) {
			<-ctx.Done()
			return "", ctx.Err()
		})
		time.Sleep(time.Second)
		began := time.Now()
		stop()
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("stopped after %s", took)
		}
		if !slices.Equal(api.deletes, []int{1}) || !slices.Equal(api.hidden, []int32{0}) {
			t.Errorf("deletes %v, visibility %v: want the other deleted, and this one free for others at once", api.deletes, api.hidden)
		}
	})
}

func TestFailedReceivesBackOff(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		api := newFakeQueue()
		api.receiveErr = errDown
		w, stop := startOnFakeQueue(t, api, nil)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		// Pauses of 2.5 to 5 seconds, after some shorter ones.
		if got := w.calls.of("receive"); got < 120 || got > 250 {
			t.Errorf("%d receives in ten minutes without SQS", got)
		}
		if got := w.log.with("cannot reach queue"); got < 9 || got > 11 {
			t.Errorf("%d lines in ten minutes, want one a minute", got)
		}
		stop()
	})
}

func TestEmptyQueueCountsAsReached(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, stop := startOnFakeQueue(t, newFakeQueue(), nil)
		synctest.Wait() // no time passes
		if !w.isUp() {
			t.Error("not up before the first long poll has ended")
		}
		stop()
	})
}

func TestFailedDeletes(t *testing.T) {
	entry := func(fault bool) []types.BatchResultErrorEntry {
		return []types.BatchResultErrorEntry{{Id: aws.String("0"), Code: aws.String("ReceiptHandleIsInvalid"), SenderFault: fault}}
	}
	for _, test := range []struct {
		name   string
		err    error
		failed []types.BatchResultErrorEntry
		want   []int
	}{
		{"as a whole", errDown, nil, []int{2, 2, 2}},
		{"for one, by SQS's fault", nil, entry(false), []int{2, 1, 1}},
		{"for one, by our fault", nil, entry(true), []int{2}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				api := newFakeQueue(state("a", instance, "running").String(), state("b", instance, "running").String())
				api.deleteErr, api.failed = test.err, test.failed
				w, stop := startOnFakeQueue(t, api, nil)
				time.Sleep(10 * time.Second)
				stop()
				if diff := cmp.Diff(test.want, api.deletes); diff != "" {
					t.Errorf("deletes (-want +got):\n%s", diff)
				}
				if got := w.count("lifeboat_source_errors_total", "operation")["acknowledge"]; got != float64(len(test.want)) {
					t.Errorf("%v failures were counted", got)
				}
			})
		})
	}
}

func TestQueueWithoutAttributePermission(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		api := newFakeQueue(spot("a", instance).String())
		api.inspectErr = &smithy.GenericAPIError{Code: "AccessDenied", Message: "no"}
		w, stop := startOnFakeQueue(t, api, func(context.Context, notice.Notice) (intake.Outcome, error) { return intake.Recorded, nil })
		time.Sleep(time.Hour)
		stop()
		if api.inspected != 1 || w.log.with("grant sqs:GetQueueAttributes") != 1 || !slices.Equal(api.deletes, []int{1}) {
			t.Errorf("inspected %d times, deletes %v, log:\n%s", api.inspected, api.deletes, w.log)
		}
	})
}

// fakeQueue is a fake queue that returns each message once.
type fakeQueue struct {
	mu       sync.Mutex
	messages []types.Message

	receiveErr, deleteErr, inspectErr error
	failed                            []types.BatchResultErrorEntry

	deletes   []int // sizes
	deleted   chan struct{}
	hidden    []int32 // requested visibility timeouts
	inspected int
}

func newFakeQueue(bodies ...string) *fakeQueue {
	p := &fakeQueue{deleted: make(chan struct{}, 100)}
	for _, body := range bodies {
		p.messages = append(p.messages, types.Message{Body: &body, ReceiptHandle: aws.String("handle")})
	}
	return p
}

func (p *fakeQueue) ReceiveMessage(ctx context.Context, in *awssqs.ReceiveMessageInput, _ ...func(*awssqs.Options)) (*awssqs.ReceiveMessageOutput, error) {
	if p.receiveErr != nil {
		return nil, p.receiveErr
	}
	p.mu.Lock()
	out := p.messages
	p.messages = nil
	p.mu.Unlock()
	if len(out) == 0 {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Duration(in.WaitTimeSeconds) * time.Second):
		}
	}
	return &awssqs.ReceiveMessageOutput{Messages: out}, nil
}

func (p *fakeQueue) DeleteMessageBatch(_ context.Context, in *awssqs.DeleteMessageBatchInput, _ ...func(*awssqs.Options)) (*awssqs.DeleteMessageBatchOutput, error) {
	p.deletes = append(p.deletes, len(in.Entries))
	if p.deleteErr != nil {
		return nil, p.deleteErr
	}
	p.deleted <- struct{}{}
	return &awssqs.DeleteMessageBatchOutput{Failed: p.failed}, nil
}

func (p *fakeQueue) ChangeMessageVisibilityBatch(_ context.Context, in *awssqs.ChangeMessageVisibilityBatchInput, _ ...func(*awssqs.Options)) (*awssqs.ChangeMessageVisibilityBatchOutput, error) {
	for _, e := range in.Entries {
		p.hidden = append(p.hidden, e.VisibilityTimeout)
	}
	return &awssqs.ChangeMessageVisibilityBatchOutput{}, nil
}

func (p *fakeQueue) GetQueueAttributes(context.Context, *awssqs.GetQueueAttributesInput, ...func(*awssqs.Options)) (*awssqs.GetQueueAttributesOutput, error) {
	p.inspected++
	return &awssqs.GetQueueAttributesOutput{Attributes: map[string]string{
		"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:210987654321:dead","maxReceiveCount":10}`}}, p.inspectErr
}
