package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/internal/intake/sqs"
)

func TestMessagesOverHTTP(t *testing.T) {
	foreignAccount, foreignRegion := spot("a", instance), spot("b", instance)
	foreignAccount.account, foreignRegion.region = "999999999999", "us-east-1"
	late, lateState := spot("a", instance), state("b", instance, "stopping")
	late.age, lateState.age = 13*time.Minute, 13*time.Minute
	tests := []struct {
		name    string
		sent    []message
		want    map[string]float64
		records map[string][]string
		log     []string
	}{
		{"a spot warning", []message{spot("a", instance)},
			map[string]float64{"recorded": 1}, map[string][]string{instance: {"a"}}, []string{`"recorded interruption"`}},
		{"duplicates", []message{spot("a", instance), spot("a", instance), spot("a", instance)},
			map[string]float64{"recorded": 1, "repeated": 2}, map[string][]string{instance: {"a"}}, nil},
		{"in the wrong order", []message{state("c", instance, "terminated"), state("b", instance, "shutting-down"), spot("a", instance)},
			map[string]float64{"recorded": 1, "joined": 2}, map[string][]string{instance: {"a", "b", "c"}}, nil},
		{"a rebalance and then a warning", []message{rebalance("r", instance), spot("a", instance)},
			map[string]float64{"recorded": 1, "joined": 1}, map[string][]string{instance: {"a", "r"}}, nil},
		{"stale", []message{late, lateState}, map[string]float64{"stale": 2}, map[string][]string{}, []string{`"dropped stale notice"`, `"kind"="SpotInterruption"`, `"advice"`}},
		{"another account", []message{foreignAccount, foreignAccount}, map[string]float64{"foreign": 2}, map[string][]string{},
			[]string{`"refused notice of another account"`, `"account"="999999999999"`, `aws:SourceAccount`}},
		{"another region", []message{foreignRegion}, map[string]float64{"foreign": 1}, map[string][]string{},
			[]string{`"refused notice of another region"`, `"region"="us-east-1"`}},
		{"a terminated instance without a node", []message{state("a", other, "terminated")}, map[string]float64{"foreign": 1}, map[string][]string{},
			[]string{`"dropped notice of an instance that is not of this cluster"`, other}},
		{"of no concern", []message{state("a", instance, "running"), {id: "m", detailType: "EC2 Spot Interruption Warning", instance: instance}},
			map[string]float64{"ofNoConcern": 2}, map[string][]string{}, []string{`"ignored message"`, "EC2 Spot Interruption Warning"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			for _, m := range test.sent {
				w.send(m.String())
			}
			w.start(w.aws, sqs.Options{})
			w.untilOutcomes(test.want)
			w.untilEmpty()
			if diff := cmp.Diff(test.records, w.records()); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
			if test.log != nil && w.log.with(test.log...) != 1 {
				t.Errorf("want one line with %q in the log:\n%s", test.log, w.log)
			}
		})
	}
}

func TestUnreadableMessageGoesToDeadLetterQueue(t *testing.T) {
	w := newWorld(t)
	dead := w.create("dead", nil)
	w.queue = w.create("with-dead", map[string]string{"RedrivePolicy": fmt.Sprintf(
		`{"deadLetterTargetArn":"arn:aws:sqs:%s:%s:dead","maxReceiveCount":"2"}`, region, account)})
	w.send(`{"instance":"i-1"}`, "not JSON", spot("a", instance).String())
	w.start(w.aws, sqs.Options{Visibility: time.Second, Wait: time.Second})
	w.until("the dead-letter queue has both", func() bool { return w.waiting(dead) == 2 })
	w.untilEmpty()
	w.untilOutcomes(map[string]float64{"unreadable": 4, "recorded": 1})
	if diff := cmp.Diff(map[string]float64{"body": 2, "detail-type": 2}, w.count("lifeboat_unreadable_messages_total", "reason")); diff != "" {
		t.Errorf("unreadable (-want +got):\n%s", diff)
	}
	for _, says := range []string{"remove it", "expected a JSON object"} {
		if w.log.with(`"left unreadable message in the queue"`, says) != 1 {
			t.Errorf("want one line that says %q in the log:\n%s", says, w.log)
		}
	}
	if w.log.with(`"queue moves messages to its dead-letter queue early`, `"maxReceiveCount"=2`) != 1 {
		t.Errorf("the log does not say that maxReceiveCount is low:\n%s", w.log)
	}
}

func TestUnreadableMessageIsNotDeleted(t *testing.T) {
	w := newWorld(t)
	api := &visibilityRecorder{API: w.aws}
	w.start(api, sqs.Options{Receivers: 1, Wait: time.Second})
	w.until("the queue is inspected", func() bool { return w.log.with("queue has no dead-letter queue", "set-queue-attributes") == 1 })
	w.send("not JSON")
	w.until("it was received seven times", func() bool { return len(api.seen()) >= 7 })
	want := []int32{30, 60, 120, 240, 480, 900, 900}
	if diff := cmp.Diff(want, api.seen()[:7]); diff != "" {
		t.Errorf("rests in seconds (-want +got):\n%s", diff)
	}
	if got := w.waiting(w.queue); got != 1 || w.calls.of("delete") != 0 {
		t.Errorf("%d messages in the queue after %d deletes", got, w.calls.of("delete"))
	}
	if got := w.log.with("left unreadable message"); got != 1 {
		t.Errorf("%d lines about one message that was received seven times", got)
	}
}

// A dead-letter queue takes a message after 30 receives, so thousands of unreadable messages that
// return each second would delay real notices.
func TestUnreadableMessageReturnsLessAndLessOften(t *testing.T) {
	w := newWorld(t)
	w.create("dead", nil)
	w.queue = w.create("with-dead", map[string]string{"RedrivePolicy": fmt.Sprintf(
		`{"deadLetterTargetArn":"arn:aws:sqs:%s:%s:dead","maxReceiveCount":"30"}`, region, account)})
	api := &visibilityRecorder{API: w.aws}
	w.send("not JSON")
	w.start(api, sqs.Options{Receivers: 1, Wait: time.Second, Visibility: time.Second})
	w.until("it was received seven times", func() bool { return len(api.seen()) >= 7 })
	// The message may arrive before the source knows the redrive policy; the first rest is then
	// the queue's own.
	got, want := api.seen()[:7], []int32{1, 2, 4, 8, 10, 10, 10, 10}
	if got[0] == 2 {
		want = want[1:]
	}
	if diff := cmp.Diff(want[:7], got); diff != "" {
		t.Errorf("rests in seconds (-want +got):\n%s", diff)
	}
}

func TestInstanceKnownLater(t *testing.T) {
	w := newWorld(t)
	api := &visibilityRecorder{API: w.aws}
	api.onCall = func(times int) {
		if times == 2 {
			w.nodes.add(other)
		}
	}
	w.send(spot("a", other).String())
	w.start(api, sqs.Options{Wait: time.Second})
	w.untilEmpty()
	w.untilOutcomes(map[string]float64{"notYetKnown": 2, "recorded": 1})
	if diff := cmp.Diff(map[string][]string{other: {"a"}}, w.records()); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

func TestInstanceNeverKnown(t *testing.T) {
	w := newWorld(t)
	api := &visibilityRecorder{API: w.aws}
	past := state("b", other, "stopping") // it should be off by now
	past.age = 3 * time.Minute
	w.send(spot("a", other).String(), past.String())
	w.start(api, sqs.Options{Receivers: 1, Wait: time.Second})
	// Before its deadline it is received 5 times, after it twice.
	w.untilOutcomes(map[string]float64{"notYetKnown": 4 + 1, "foreign": 2})
	w.untilEmpty()
	if len(w.records()) != 0 {
		t.Errorf("records: %v", w.records())
	}
	if w.log.with(`"dropped notice of an instance that is not of this cluster"`, `"receives"=5`, "spec.providerID") != 1 {
		t.Errorf("the log does not say that it gave up:\n%s", w.log)
	}
}

func TestPausesBetweenReceivesGrow(t *testing.T) {
	w := newWorld(t)
	api := &visibilityRecorder{API: w.aws}
	w.send(rebalance("a", other).String())
	w.start(api, sqs.Options{Receivers: 1, Wait: time.Second})
	w.untilEmpty()
	if diff := cmp.Diff([]int32{30, 60, 60, 60}, api.seen()); diff != "" {
		t.Errorf("pauses in seconds (-want +got):\n%s", diff)
	}
}

func TestPartlyFailedDeletes(t *testing.T) {
	w := newWorld(t)
	for i := range 10 {
		w.send(spot(fmt.Sprint("n", i), instance).String())
	}
	api := &partialDeletes{API: w.aws}
	w.start(api, sqs.Options{Receivers: 1})
	w.untilEmpty()
	if got := w.calls.of("delete"); got != 2 {
		t.Errorf("%d deletes, want one and one for the rest", got)
	}
	if diff := cmp.Diff([]int{10, 4}, api.sizes); diff != "" {
		t.Errorf("sizes of the deletes (-want +got):\n%s", diff)
	}
	if got := w.count("lifeboat_source_errors_total", "operation")["acknowledge"]; got != 4 {
		t.Errorf("%v failed deletes were counted, want 4", got)
	}
}

func TestReplicasShareQueue(t *testing.T) {
	w := newWorld(t)
	want := map[string][]string{}
	for i := range 5 {
		id := fmt.Sprintf("i-0000000000000000%d", i)
		w.nodes.add(id)
		want[id] = []string{"n-" + id, "s-" + id}
		for range 4 {
			w.send(spot("n-"+id, id).String(), state("s-"+id, id, "stopping").String())
		}
	}
	w.start(w.client(w.url), sqs.Options{})
	w.start(w.client(w.url), sqs.Options{})
	w.untilOutcomes(map[string]float64{"recorded": 5, "joined": 5, "repeated": 30})
	w.untilEmpty()
	if diff := cmp.Diff(want, w.records()); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

func TestCrashBetweenRecordAndDelete(t *testing.T) {
	w := newWorld(t)
	w.send(spot("a", instance).String())
	crashed := make(chan struct{})
	stop := w.start(&failingDeletes{API: w.aws, deleting: sync.OnceFunc(func() { close(crashed) })},
		sqs.Options{Visibility: time.Second, Receivers: 1})
	<-crashed
	stop()
	if w.waiting(w.queue) != 1 {
		t.Fatal("the message is gone although its delete failed")
	}
	w.start(w.aws, sqs.Options{})
	w.untilEmpty()
	w.untilOutcomes(map[string]float64{"recorded": 1, "repeated": 1})
	if diff := cmp.Diff(map[string][]string{instance: {"a"}}, w.records()); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// visibilityRecorder records the requested visibility timeouts, and makes messages visible immediately.
type visibilityRecorder struct {
	sqs.API
	onCall  func(times int) // may be nil
	mu      sync.Mutex
	seconds []int32
}

func (h *visibilityRecorder) ChangeMessageVisibilityBatch(ctx context.Context, in *awssqs.ChangeMessageVisibilityBatchInput, o ...func(*awssqs.Options)) (*awssqs.ChangeMessageVisibilityBatchOutput, error) {
	h.mu.Lock()
	for i := range in.Entries {
		h.seconds = append(h.seconds, in.Entries[i].VisibilityTimeout)
		in.Entries[i].VisibilityTimeout = 0
	}
	if h.onCall != nil {
		h.onCall(len(h.seconds))
	}
	h.mu.Unlock()
	return h.API.ChangeMessageVisibilityBatch(ctx, in, o...)
}

func (h *visibilityRecorder) seen() []int32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]int32(nil), h.seconds...)
}

// partialDeletes does not delete some of the messages of its first batch.
type partialDeletes struct {
	sqs.API
	sizes []int // from one receiver only
}

func (s *partialDeletes) DeleteMessageBatch(ctx context.Context, in *awssqs.DeleteMessageBatchInput, o ...func(*awssqs.Options)) (*awssqs.DeleteMessageBatchOutput, error) {
	s.sizes = append(s.sizes, len(in.Entries))
	if len(s.sizes) > 1 {
		return s.API.DeleteMessageBatch(ctx, in, o...)
	}
	rest := *in
	rest.Entries = in.Entries[4:]
	out, err := s.API.DeleteMessageBatch(ctx, &rest, o...)
	if err != nil {
		return nil, err
	}
	for _, e := range in.Entries[:4] {
		out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: e.Id, Code: aws.String("InternalError")})
	}
	return out, nil
}

// failingDeletes fails every delete.
type failingDeletes struct {
	sqs.API
	deleting func()
}

func (d *failingDeletes) DeleteMessageBatch(context.Context, *awssqs.DeleteMessageBatchInput, ...func(*awssqs.Options)) (*awssqs.DeleteMessageBatchOutput, error) {
	d.deleting()
	return nil, errors.New("connection reset")
}
