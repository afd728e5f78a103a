package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/emulator/sqs"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

const (
	queueARN = "arn:aws:sqs:eu-west-1:210987654321:notices"
	deadARN  = "arn:aws:sqs:eu-west-1:210987654321:dead"
)

// sent is a message that reached a queue.
type sent struct {
	Queue, Body string
	From        sqs.Sender
}

// world is an EventBridge whose queues are a list, in virtual time.
type world struct {
	*State
	sent   []sent
	refuse map[string]error // by queue ARN
}

func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{refuse: map[string]error{}}
		w.State = New(wire.Scope{Account: "210987654321", Region: "eu-west-1"}, func(queue, body string, from sqs.Sender) error {
			if err := w.refuse[queue]; err != nil {
				return err
			}
			w.sent = append(w.sent, sent{queue, body, from})
			return nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		go w.Run(ctx)
		test(t, w)
		cancel()
		synctest.Wait()
	})
}

func (w *world) rule(t *testing.T, name, pattern string, targets ...Target) {
	t.Helper()
	if _, err := w.PutRule(RuleInput{Name: name, Pattern: pattern}); err != nil {
		t.Fatal(err)
	}
	if err := w.PutTargets("", name, targets); err != nil {
		t.Fatal(err)
	}
}

func (w *world) stats(t *testing.T, rule string) Stats {
	t.Helper()
	r, err := w.Rule("", rule)
	if err != nil {
		t.Fatal(err)
	}
	return r.Stats
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func wantCode(t *testing.T, what string, err error, code string) {
	t.Helper()
	var e *wire.Error
	if code == "" && err != nil || code != "" && (!errors.As(err, &e) || e.Code != code) {
		t.Errorf("%s: got error %v, want %q", what, err, code)
	}
}

func warning(id string) Event {
	return Event{
		Source: "aws.ec2", DetailType: "EC2 Spot Instance Interruption Warning",
		Resources: []string{"arn:aws:ec2:eu-west-1b:instance/" + id},
		Detail:    json.RawMessage(`{"instance-id":"` + id + `","instance-action":"terminate"}`),
	}
}

func TestQueueReceivesEventInAWSFormat(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.rule(t, "spot", `{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"]}`, Target{ID: "q", ARN: queueARN})
		w.rule(t, "other", `{"source":["aws.health"]}`, Target{ID: "q", ARN: queueARN})
		w.Emit(warning("i-0a1b2c3d4e5f60718"))
		synctest.Wait()
		event := w.Archive()[0]
		same(t, "sent", w.sent, []sent{{
			Queue: queueARN,
			Body: `{"version":"0","id":"` + event.ID + `","detail-type":"EC2 Spot Instance Interruption Warning","source":"aws.ec2",` +
				`"account":"210987654321","time":"` + event.Time.Format("2006-01-02T15:04:05Z") + `","region":"eu-west-1",` +
				`"resources":["arn:aws:ec2:eu-west-1b:instance/i-0a1b2c3d4e5f60718"],` +
				`"detail":{"instance-id":"i-0a1b2c3d4e5f60718","instance-action":"terminate"}}`,
			From: sqs.Sender{
				ServicePrincipal: "events.amazonaws.com", SourceAccount: "210987654321",
				SourceARN: "arn:aws:events:eu-west-1:210987654321:rule/spot",
			},
		}})
		same(t, "stats", w.stats(t, "spot"), Stats{MatchedEvents: 1, Invocations: 1})
		same(t, "stats of the other", w.stats(t, "other"), Stats{})
	})
}

func TestDeliveriesKeepEventOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.rule(t, "b", `{"source":["aws.ec2"]}`, Target{ID: "1", ARN: queueARN}, Target{ID: "2", ARN: deadARN})
		w.rule(t, "a", `{"source":["aws.ec2"]}`, Target{ID: "3", ARN: queueARN})
		for n := range 50 {
			w.Emit(Event{ID: fmt.Sprint(n), Source: "aws.ec2", DetailType: "x", Detail: json.RawMessage(`{}`)})
		}
		synctest.Wait()
		var got, want []string
		for _, d := range w.Deliveries() {
			got = append(got, d.EventID+d.Rule+d.Target)
		}
		for n := range 50 {
			want = append(want, fmt.Sprintf("%da3", n), fmt.Sprintf("%db1", n), fmt.Sprintf("%db2", n))
		}
		same(t, "deliveries", got, want)
	})
}

func TestRejectedDeliveryGoesToDeadLetterQueue(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.refuse[queueARN] = &sqs.DeliveryError{Reason: sqs.NoPermissions, Message: "the queue policy does not allow it"}
		w.rule(t, "bare", `{"source":["aws.ec2"]}`, Target{ID: "q", ARN: queueARN})
		w.rule(t, "safe", `{"source":["aws.ec2"]}`, Target{ID: "q", ARN: queueARN, DeadLetterARN: deadARN})
		w.Emit(warning("i-1"))
		synctest.Wait()
		same(t, "stats without dead-letter queue", w.stats(t, "bare"), Stats{
			MatchedEvents: 1, Invocations: 1, FailedInvocations: 1, LastFailure: "NO_PERMISSIONS: the queue policy does not allow it",
		})
		same(t, "stats with one", w.stats(t, "safe"), Stats{
			MatchedEvents: 1, Invocations: 1, FailedInvocations: 1, SentToDLQ: 1, LastFailure: "NO_PERMISSIONS: the queue policy does not allow it",
		})
		if len(w.sent) != 1 || w.sent[0].Queue != deadARN || !strings.Contains(w.sent[0].Body, `"i-1"`) {
			t.Fatalf("sent %v", w.sent)
		}
		same(t, "attributes", w.sent[0].From.MessageAttributes, map[string]string{
			"RULE_ARN": "arn:aws:events:eu-west-1:210987654321:rule/safe", "TARGET_ARN": queueARN,
			"ERROR_CODE": "NO_PERMISSIONS", "ERROR_MESSAGE": "the queue policy does not allow it",
		})

		w.refuse[deadARN] = &sqs.DeliveryError{Reason: sqs.NoResource, Message: "no such queue"}
		w.Emit(warning("i-2"))
		synctest.Wait()
		got := w.stats(t, "safe")
		same(t, "lost", []any{got.SentToDLQ, got.FailedToDLQ, got.LastFailure},
			[]any{1, 1, "NO_PERMISSIONS: the queue policy does not allow it; dead-letter queue: NO_RESOURCE: no such queue"})
	})
}

func TestDisabledRulesAndOtherBusesDeliverNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.rule(t, "off", `{"source":["aws.ec2"]}`, Target{ID: "q", ARN: queueARN})
		if err := w.SetEnabled("", "off", false); err != nil {
			t.Fatal(err)
		}
		if _, err := w.CreateBus("mine", ""); err != nil {
			t.Fatal(err)
		}
		arn, err := w.PutRule(RuleInput{Name: "custom", Bus: "mine", Pattern: `{"source":["aws.ec2"]}`})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "arn", arn, "arn:aws:events:eu-west-1:210987654321:rule/mine/custom")
		if err := w.PutTargets("arn:aws:events:eu-west-1:210987654321:event-bus/mine", "custom", []Target{{ID: "q", ARN: queueARN}}); err != nil {
			t.Fatal(err)
		}
		w.Emit(warning("i-1"))
		synctest.Wait()
		same(t, "sent", w.sent, []sent(nil))
		w.publish("mine", warning("i-2"))
		w.publish("none", warning("i-3"))
		synctest.Wait()
		same(t, "sent on the other bus", len(w.sent), 1)
		same(t, "archived", len(w.Archive()), 2)
	})
}

func TestPutRuleKeepsTargets(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.rule(t, "r", `{"source":["a"]}`, Target{ID: "q", ARN: queueARN})
		w.Emit(Event{Source: "a", DetailType: "x", Detail: json.RawMessage(`{}`)})
		synctest.Wait()
		if _, err := w.PutRule(RuleInput{Name: "r", Pattern: `{"source":["b"]}`}); err != nil {
			t.Fatal(err)
		}
		w.Emit(Event{Source: "a", DetailType: "x", Detail: json.RawMessage(`{}`)})
		w.Emit(Event{Source: "b", DetailType: "x", Detail: json.RawMessage(`{}`)})
		synctest.Wait()
		same(t, "stats", w.stats(t, "r"), Stats{MatchedEvents: 2, Invocations: 2})
	})
}

func TestRuleErrorsAndLimits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		put := func(input RuleInput) error { _, err := w.PutRule(input); return err }
		wantCode(t, "bad pattern", put(RuleInput{Name: "x", Pattern: `{"source":"aws.ec2"}`}), "InvalidEventPatternException")
		wantCode(t, "long pattern", put(RuleInput{Name: "x", Pattern: `{"source":["` + strings.Repeat("x", 2048) + `"]}`}), "InvalidEventPatternException")
		wantCode(t, "no bus", put(RuleInput{Name: "x", Bus: "none", Pattern: `{"source":["a"]}`}), "ResourceNotFoundException")
		wantCode(t, "no rule", w.SetEnabled("", "none", true), "ResourceNotFoundException")
		wantCode(t, "deleting no rule", w.DeleteRule("", "none"), "")
		wantCode(t, "targets of no rule", w.PutTargets("", "none", []Target{{ID: "q", ARN: queueARN}}), "ResourceNotFoundException")
		w.rule(t, "r", `{"source":["a"]}`, Target{ID: "q", ARN: queueARN})
		wantCode(t, "deleting with targets", w.DeleteRule("", "r"), "ValidationException")
		unknown, err := w.RemoveTargets("", "r", []string{"q", "z"})
		wantCode(t, "removing", err, "")
		same(t, "unknown", unknown, []string{"z"})
		wantCode(t, "deleting", w.DeleteRule("", "r"), "")
		for n := range maxRules {
			wantCode(t, "putting", put(RuleInput{Name: fmt.Sprint("rule-", n), Pattern: `{"source":["a"]}`}), "")
		}
		wantCode(t, "one too many", put(RuleInput{Name: "more", Pattern: `{"source":["a"]}`}), "LimitExceededException")
		wantCode(t, "an old one", put(RuleInput{Name: "rule-0", Pattern: `{"source":["b"]}`}), "")
	})
}

func TestInvalidTargetsAreRejected(t *testing.T) {
	n := func(v int) *int { return &v }
	for name, c := range map[string]struct {
		target Target
		code   string
	}{
		"a queue":                 {Target{ID: "q", ARN: queueARN}, ""},
		"no queue":                {Target{ID: "q", ARN: "arn:aws:lambda:eu-west-1:210987654321:function:f"}, "ValidationException"},
		"no arn":                  {Target{ID: "q", ARN: "notices"}, "ValidationException"},
		"a FIFO queue":            {Target{ID: "q", ARN: queueARN + ".fifo"}, "ValidationException"},
		"a bad id":                {Target{ID: "q q", ARN: queueARN}, "ValidationException"},
		"a bad dead-letter queue": {Target{ID: "q", ARN: queueARN, DeadLetterARN: "x"}, "ValidationException"},
		"two inputs":              {Target{ID: "q", ARN: queueARN, Input: "1", InputPath: "$"}, "ValidationException"},
		"no JSON":                 {Target{ID: "q", ARN: queueARN, Input: "{"}, "ValidationException"},
		"a bad path":              {Target{ID: "q", ARN: queueARN, InputPath: "detail"}, "ValidationException"},
		"an unknown variable":     {Target{ID: "q", ARN: queueARN, Transformer: &Transformer{Template: "<x>"}}, "ValidationException"},
		"retries":                 {Target{ID: "q", ARN: queueARN, Retry: &RetryPolicy{n(0), n(60)}}, ""},
		"too many retries":        {Target{ID: "q", ARN: queueARN, Retry: &RetryPolicy{MaximumRetryAttempts: n(186)}}, "ValidationException"},
		"too short an age":        {Target{ID: "q", ARN: queueARN, Retry: &RetryPolicy{MaximumEventAgeInSeconds: n(59)}}, "ValidationException"},
	} {
		wantCode(t, name, c.target.check(), c.code)
	}
	inWorld(t, func(t *testing.T, w *world) {
		w.rule(t, "r", `{"source":["a"]}`)
		for n := range maxTargets {
			wantCode(t, "putting", w.PutTargets("", "r", []Target{{ID: fmt.Sprint(n), ARN: queueARN}}), "")
		}
		wantCode(t, "replacing", w.PutTargets("", "r", []Target{{ID: "0", ARN: deadARN}}), "")
		wantCode(t, "one too many", w.PutTargets("", "r", []Target{{ID: "more", ARN: queueARN}}), "LimitExceededException")
		rules, err := w.RulesOf("", deadARN)
		wantCode(t, "rules", err, "")
		same(t, "rules of the target", rules, []string{"r"})
	})
}

func TestInputs(t *testing.T) {
	event := []byte(`{"source":"aws.ec2","resources":["arn:x"],"detail":{"instance-id":"i-1","n":2,"text":"a \"b\"","deep":{"k":[1,{"z":null}]}}}`)
	paths := map[string]string{
		"id": "$.detail.instance-id", "n": "$.detail.n", "deep": "$.detail.deep", "none": "$.detail.none",
		"res": "$.resources[0]", "text": "$.detail['text']",
	}
	for _, c := range []struct {
		target Target
		want   string
	}{
		{Target{}, string(event)},
		{Target{Input: `{"a":1}`}, `{"a":1}`},
		{Target{InputPath: "$.detail.deep.k[1]"}, `{"z":null}`},
		{Target{InputPath: "$"}, string(event)},
		{Target{Transformer: &Transformer{paths, `"<id> in <res>: <none>."`}}, `"i-1 in arn:x: ."`},
		{Target{Transformer: &Transformer{paths, `{"id":<id>,"n":<n>,"deep":<deep>,"none":<none>}`}}, `{"id":"i-1","n":2,"deep":{"k":[1,{"z":null}]},"none":""}`},
		{Target{Transformer: &Transformer{paths, `{"q":"\"<id>","t":<text>}`}}, `{"q":"\"i-1","t":"a \"b\""}`},
		{Target{Transformer: &Transformer{nil, `<aws.events.rule-name> <aws.events.rule-arn>`}}, `"r" "arn:r"`},
		{Target{Transformer: &Transformer{nil, `{"o":<aws.events.event.json>}`}}, `{"o":` + string(event) + `}`},
		{Target{Transformer: &Transformer{nil, `<aws.events.event>`}}, `{"resources":["arn:x"],"source":"aws.ec2"}`},
		{Target{Transformer: &Transformer{nil, `"<aws.events.event.ingestion-time>"`}}, `"2026-05-11T08:14:02Z"`},
	} {
		got, err := c.target.body(event, "arn:r", "r", time.Date(2026, 5, 11, 8, 14, 2, 0, time.UTC))
		if err != nil || got != c.want {
			t.Errorf("%+v:\n got %s (%v)\nwant %s", c.target, got, err, c.want)
		}
	}
	if _, err := (Target{InputPath: "$.detail.none"}).body(event, "", "", time.Time{}); err == nil {
		t.Error("a path that leads nowhere gave a body")
	}
}

func TestMemoryIsBounded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.rule(t, "r", `{"source":["a"]}`, Target{ID: "q", ARN: queueARN})
		for n := range remembered + 5 {
			w.Emit(Event{ID: fmt.Sprint(n), Source: "a", DetailType: "x", Detail: json.RawMessage(`{}`)})
		}
		synctest.Wait()
		archive, deliveries := w.Archive(), w.Deliveries()
		same(t, "archive", []any{len(archive), archive[0].ID}, []any{remembered, "5"})
		same(t, "deliveries", []any{len(deliveries), deliveries[0].EventID}, []any{remembered, "5"})
	})
}

func TestTags(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		arn, err := w.PutRule(RuleInput{Name: "r", Pattern: `{"source":["a"]}`, Tags: map[string]string{"a": "1", "b": "2"}})
		wantCode(t, "putting", err, "")
		wantCode(t, "tagging", w.SetTags(arn, map[string]string{"c": "3"}, []string{"a"}), "")
		tags, err := w.Tags(arn)
		wantCode(t, "reading", err, "")
		same(t, "tags", tags, map[string]string{"b": "2", "c": "3"})
		wantCode(t, "tagging nothing", w.SetTags(arn+"x", nil, nil), "ResourceNotFoundException")
	})
}

func TestPutEventsRejectsInvalidEntries(t *testing.T) {
	ok := entry{Source: "mine", DetailType: "x", Detail: `{}`}
	with := func(change func(*entry)) entry { e := ok; change(&e); return e }
	for name, c := range map[string]struct {
		entry entry
		code  string
	}{
		"a good one":         {ok, ""},
		"an AWS source":      {with(func(e *entry) { e.Source = "aws.ec2" }), "NotAuthorizedForSourceException"},
		"a source like AWS":  {with(func(e *entry) { e.Source = "awsome" }), ""},
		"no source":          {with(func(e *entry) { e.Source = "" }), "InvalidArgument"},
		"no detail type":     {with(func(e *entry) { e.DetailType = "" }), "InvalidArgument"},
		"a long detail type": {with(func(e *entry) { e.DetailType = strings.Repeat("x", 129) }), "InvalidArgument"},
		"no JSON":            {with(func(e *entry) { e.Detail = "x" }), "MalformedDetail"},
		"no object":          {with(func(e *entry) { e.Detail = "[1]" }), "MalformedDetail"},
		"null":               {with(func(e *entry) { e.Detail = "null" }), "MalformedDetail"},
	} {
		got := ""
		if refused := c.entry.refuse(); refused != nil {
			got = refused.ErrorCode
		}
		same(t, name, got, c.code)
	}
	wantCode(t, "none", checkEntries(nil), "ValidationException")
	wantCode(t, "ten", checkEntries(slices.Repeat([]entry{ok}, 10)), "")
	wantCode(t, "eleven", checkEntries(slices.Repeat([]entry{ok}, 11)), "ValidationException")
	wantCode(t, "only incomplete ones", checkEntries([]entry{{Source: "x"}}), "ValidationException")
	wantCode(t, "too large", checkEntries([]entry{with(func(e *entry) { e.Detail = strings.Repeat(" ", maxRequestSize) })}), "ValidationException")
}

// EventBridge delivers at least once, late, and in any order.
func TestRandomDeliveryIsLateAndLosesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.SetDelivery(rand.New(rand.NewPCG(1, 2)), 0.2)
		w.rule(t, "a", `{"source":["aws.ec2"]}`, Target{ID: "1", ARN: queueARN})
		const emitted = 200
		var order []string
		for n := range emitted {
			order = append(order, fmt.Sprintf("%03d", n))
			w.Emit(Event{ID: order[n], Source: "aws.ec2", DetailType: "x", Detail: json.RawMessage(`{}`)})
		}
		began := time.Now()
		time.Sleep(time.Minute)
		synctest.Wait()
		var ids []string
		late := 0
		for _, d := range w.Deliveries() {
			ids = append(ids, d.EventID)
			if d.At.Sub(began) > longestDelay/2 {
				late++
			}
		}
		if more := len(ids) - emitted; more < emitted/10 || more > emitted/2 || late < emitted/4 || slices.IsSorted(ids) {
			t.Errorf("%d duplicates, %d late; in order: %v", more, late, slices.IsSorted(ids))
		}
		slices.Sort(ids)
		same(t, "events that were delivered", slices.Compact(ids), order)
	})
}
