package sqs

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

var scope = wire.Scope{Account: "123456789012", Region: "us-east-1"}

// newState returns a state with a queue q of those attributes, and its
// dead-letter queue dead.
func newState(t testing.TB, attributes map[string]string) *State {
	t.Helper()
	s := New(scope)
	for _, err := range []error{s.Create("dead", nil, nil), s.Create("q", attributes, nil)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func mustSend(t testing.TB, s *State, body string) string {
	t.Helper()
	sent, err := s.Send("q", Outgoing{Body: body}, "me")
	if err != nil {
		t.Fatal(err)
	}
	return sent.MessageID
}

// mustReceive receives up to ten messages without visibility of their own.
func mustReceive(t testing.TB, s *State, queue string, wait int) []Received {
	t.Helper()
	got, err := s.Receive(t.Context(), queue, ReceiveOptions{Max: 10, Wait: &wait})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func bodies(received []Received) string {
	var all []string
	for _, m := range received {
		all = append(all, m.Body)
	}
	return strings.Join(all, " ")
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	var e *wire.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("error = %v, want %s", err, code)
	}
}

func TestLongPollEnds(t *testing.T) {
	second := func(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
	for _, tc := range []struct {
		name  string
		attrs map[string]string
		do    func(t *testing.T, s *State, cancel context.CancelFunc) // 3 s into the poll
		after time.Duration
		want  string
		code  string
	}{
		{name: "with nothing when its time is up", after: second(20)},
		{name: "when a message arrives", after: second(3), want: "m",
			do: func(t *testing.T, s *State, _ context.CancelFunc) { mustSend(t, s, "m") }},
		{name: "when a delayed message is due", attrs: map[string]string{"DelaySeconds": "7"}, after: second(10), want: "m",
			do: func(t *testing.T, s *State, _ context.CancelFunc) { mustSend(t, s, "m") }},
		{name: "with nothing when the caller goes away", after: second(3),
			do: func(_ *testing.T, _ *State, cancel context.CancelFunc) { cancel() }},
		{name: "with an error when the queue is deleted", after: second(3), code: "QueueDoesNotExist",
			do: func(t *testing.T, s *State, _ context.CancelFunc) {
				if err := s.Delete("q"); err != nil {
					t.Error(err)
				}
			}},
		{name: "when a message in flight is given back", after: second(3), want: "held",
			do: func(t *testing.T, s *State, _ context.CancelFunc) {
				if err := s.ChangeVisibility("q", held(s), new(int)); err != nil {
					t.Error(err)
				}
			}},
		{name: "when a message in flight is hidden for less long", after: second(5), want: "held",
			do: func(t *testing.T, s *State, _ context.CancelFunc) {
				two := 2
				if err := s.ChangeVisibility("q", held(s), &two); err != nil {
					t.Error(err)
				}
			}},
		{name: "when a delivery comes in", after: second(3), want: "m",
			attrs: map[string]string{"Policy": `{"Statement":{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},"Action":"sqs:SendMessage","Resource":"*"}}`},
			do: func(t *testing.T, s *State, _ context.CancelFunc) {
				if err := s.Deliver(scope.ARN("sqs", "q"), "m", Sender{ServicePrincipal: "events.amazonaws.com"}); err != nil {
					t.Error(err)
				}
			}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newState(t, tc.attrs)
				hold(t, s)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tc.do != nil {
					go func() {
						time.Sleep(3 * time.Second)
						tc.do(t, s, cancel)
					}()
				}
				began, wait := time.Now(), 20
				got, err := s.Receive(ctx, "q", ReceiveOptions{Max: 10, Wait: &wait})
				if tc.code != "" {
					wantCode(t, err, tc.code)
				} else if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); bodies(got) != tc.want || took != tc.after {
					t.Errorf("received %q after %v, want %q after %v", bodies(got), took, tc.want, tc.after)
				}
			})
		})
	}
}

// hold adds a message to q that is in flight for a minute.
func hold(t *testing.T, s *State) {
	t.Helper()
	zero, minute := 0, 60
	if _, err := s.Send("q", Outgoing{Body: "held", Delay: &zero}, "me"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Receive(t.Context(), "q", ReceiveOptions{Max: 1, Visibility: &minute}); err != nil {
		t.Fatal(err)
	}
}

// held is the receipt handle of the message on hold.
func held(s *State) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues["q"]
	for _, m := range q.messages {
		if m.body == "held" {
			return base64.StdEncoding.EncodeToString([]byte(q.id + " " + m.id + " " + m.receipt))
		}
	}
	return ""
}

func TestDisconnectedCallerReceivesNoMessage(t *testing.T) {
	s := newState(t, nil)
	mustSend(t, s, "m")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := s.Receive(gone, "q", ReceiveOptions{Max: 1}); err != nil || len(got) != 0 {
		t.Errorf("a caller who is gone received %q (%v)", bodies(got), err)
	}
	if got := mustReceive(t, s, "q", 0); bodies(got) != "m" {
		t.Errorf("received %q afterwards, want m", bodies(got))
	}
}

func TestHiddenMessagesBecomeVisibleAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newState(t, map[string]string{"VisibilityTimeout": "30"})
		mustSend(t, s, "m")
		first := mustReceive(t, s, "q", 0)[0]
		began := time.Now()
		second := mustReceive(t, s, "q", 20)
		if len(second) != 0 || time.Since(began) != 20*time.Second {
			t.Fatalf("received %q after %v, want nothing after 20 s", bodies(second), time.Since(began))
		}
		second = mustReceive(t, s, "q", 20)
		if bodies(second) != "m" || time.Since(began) != 30*time.Second {
			t.Fatalf("received %q after %v, want it back after 30 s", bodies(second), time.Since(began))
		}
		system := second[0].System
		want := map[string]string{
			"ApproximateReceiveCount": "2", "SenderId": "me",
			"SentTimestamp":                    strconv.FormatInt(began.UnixMilli(), 10),
			"ApproximateFirstReceiveTimestamp": strconv.FormatInt(began.UnixMilli(), 10),
		}
		if diff := cmp.Diff(want, system); diff != "" {
			t.Errorf("system attributes (-want +got):\n%s", diff)
		}

		// The first handle is outdated: it deletes nothing.
		if err := s.DeleteMessage("q", first.Handle); err != nil {
			t.Fatal(err)
		}
		zero := 0
		wantCode(t, s.ChangeVisibility("q", first.Handle, &zero), "InvalidParameterValueException")
		if err := s.ChangeVisibility("q", second[0].Handle, &zero); err != nil {
			t.Fatal(err)
		}
		third := mustReceive(t, s, "q", 0)
		if bodies(third) != "m" {
			t.Fatalf("received %q, want the message given back", bodies(third))
		}
		// A handle is valid beyond the visibility timeout, until the next receive.
		time.Sleep(time.Minute)
		if err := s.DeleteMessage("q", third[0].Handle); err != nil {
			t.Fatal(err)
		}
		if got := mustReceive(t, s, "q", 0); len(got) != 0 {
			t.Errorf("received %q after delete", bodies(got))
		}
	})
}

func TestVisibilityTimeoutIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newState(t, map[string]string{"VisibilityTimeout": "43200"})
		mustSend(t, s, "m")
		handle := mustReceive(t, s, "q", 0)[0].Handle
		time.Sleep(time.Hour)
		over, rest := 43200-3600+1, 43200-3600
		wantCode(t, s.ChangeVisibility("q", handle, &over), "InvalidParameterValueException")
		if err := s.ChangeVisibility("q", handle, &rest); err != nil {
			t.Error(err)
		}
		time.Sleep(11 * time.Hour)
		wantCode(t, s.ChangeVisibility("q", handle, &rest), "MessageNotInflight")
	})
}

func TestMessagesExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newState(t, map[string]string{"MessageRetentionPeriod": "120", "VisibilityTimeout": "0"})
		mustSend(t, s, "old")
		time.Sleep(time.Minute)
		mustSend(t, s, "new")
		mustReceive(t, s, "q", 0)
		time.Sleep(time.Minute)
		if got := bodies(mustReceive(t, s, "q", 0)); got != "new" {
			t.Errorf("after 120 s received %q, want new", got)
		}
		if err := s.SetAttributes("q", map[string]string{"MessageRetentionPeriod": "60"}); err != nil {
			t.Fatal(err)
		}
		if got := bodies(mustReceive(t, s, "q", 0)); got != "" {
			t.Errorf("after shortening the retention received %q, want nothing", got)
		}
	})
}

func TestDeadLettersKeepSentTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newState(t, map[string]string{
			"VisibilityTimeout": "10",
			"RedrivePolicy":     fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":1}`, scope.ARN("sqs", "dead")),
		})
		if err := s.SetAttributes("dead", map[string]string{"MessageRetentionPeriod": "60"}); err != nil {
			t.Fatal(err)
		}
		id, began := mustSend(t, s, "poison"), time.Now()
		mustReceive(t, s, "q", 0)
		waiting := make(chan []Received)
		go func() { waiting <- mustReceive(t, s, "dead", 20) }()
		if got := mustReceive(t, s, "q", 15); len(got) != 0 {
			t.Errorf("received %q beyond maxReceiveCount", bodies(got))
		}
		got := <-waiting
		if len(got) != 1 || got[0].ID != id || time.Since(began) != 15*time.Second {
			t.Fatalf("dead-letter queue gave %q after %v", bodies(got), time.Since(began))
		}
		sent := strconv.FormatInt(began.UnixMilli(), 10)
		if got[0].System["SentTimestamp"] != sent || got[0].System["DeadLetterQueueSourceArn"] != scope.ARN("sqs", "q") {
			t.Errorf("system attributes of the dead letter: %v", got[0].System)
		}
		time.Sleep(45 * time.Second) // 60 s after the first sending, 50 s after the move
		attributes, err := s.Attributes("dead")
		if err != nil || attributes["ApproximateNumberOfMessages"] != "0" {
			t.Errorf("dead-letter queue holds %s (%v), want 0: retention counts from the first sending",
				attributes["ApproximateNumberOfMessages"], err)
		}
	})
}

func TestCountsSeparateDelayedAndInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newState(t, nil)
		five := 5
		for _, o := range []Outgoing{{Body: "a"}, {Body: "b"}, {Body: "late", Delay: &five}} {
			if _, err := s.Send("q", o, "me"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Receive(t.Context(), "q", ReceiveOptions{Max: 1}); err != nil {
			t.Fatal(err)
		}
		check := func(visible, hidden, delayed string) {
			t.Helper()
			got, err := s.Attributes("q")
			if err != nil {
				t.Fatal(err)
			}
			if got["ApproximateNumberOfMessages"] != visible || got["ApproximateNumberOfMessagesNotVisible"] != hidden ||
				got["ApproximateNumberOfMessagesDelayed"] != delayed {
				t.Errorf("counts %v, want %s visible, %s in flight, %s delayed", got, visible, hidden, delayed)
			}
		}
		check("1", "1", "1")
		time.Sleep(5 * time.Second)
		check("2", "1", "0")
		time.Sleep(25 * time.Second)
		check("3", "0", "0")
	})
}

func TestInFlightLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newState(t, nil)
		s.maxInFlight = 15
		for i := range 16 {
			mustSend(t, s, strconv.Itoa(i))
		}
		for _, want := range []int{10, 5} {
			if got := mustReceive(t, s, "q", 0); len(got) != want {
				t.Errorf("received %d messages, want %d", len(got), want)
			}
		}
		_, err := s.Receive(t.Context(), "q", ReceiveOptions{Max: 1})
		wantCode(t, err, "OverLimit")
		if got := mustReceive(t, s, "q", 1); len(got) != 0 {
			t.Errorf("a long poll over the limit received %q, want nothing", bodies(got))
		}
	})
}

func TestDeletedQueueNameIsFreeAfterOneMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newState(t, nil)
		for _, err := range []error{s.Delete("q"), s.Purge("dead")} {
			if err != nil {
				t.Fatal(err)
			}
		}
		wantCode(t, s.Create("q", nil, nil), "QueueDeletedRecently")
		wantCode(t, s.Purge("dead"), "PurgeQueueInProgress")
		time.Sleep(time.Minute)
		for _, err := range []error{s.Create("q", nil, nil), s.Purge("dead")} {
			if err != nil {
				t.Error(err)
			}
		}
	})
}

func TestDeliverEnforcesQueuePolicy(t *testing.T) {
	rule := "arn:aws:events:us-east-1:123456789012:rule/spot"
	allow := func(condition string) string {
		return `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},` +
			`"Action":"sqs:SendMessage","Resource":"arn:aws:sqs:us-east-1:123456789012:q"` + condition + `}]}`
	}
	for _, tc := range []struct {
		name, policy, key, queue, body, want string
	}{
		{name: "no policy", want: NoPermissions},
		{name: "policy lets the rule in", policy: allow(`,"Condition":{"ArnEquals":{"aws:SourceArn":"` + rule + `"}}`), want: "delivered"},
		{name: "policy lets another rule in", policy: allow(`,"Condition":{"ArnEquals":{"aws:SourceArn":"` + rule + `x"}}`), want: NoPermissions},
		{name: "no such queue", queue: "none", want: NoResource},
		{name: "queue of another account", queue: ":210987654321:q", want: NoResource},
		{name: "AWS managed key", policy: allow(""), key: "alias/aws/sqs", want: NoPermissions},
		{name: "customer key", policy: allow(""), key: "alias/mine", want: "delivered"},
		{name: "body with a control character", policy: allow(""), body: "\x01", want: ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newState(t, map[string]string{"Policy": tc.policy, "KmsMasterKeyId": tc.key})
			queue, body := "q", "{}"
			if tc.queue != "" {
				queue = tc.queue
			}
			if tc.body != "" {
				body = tc.body
			}
			got := "delivered"
			err := s.Deliver(scope.ARN("sqs", queue), body, Sender{
				ServicePrincipal: "events.amazonaws.com", SourceARN: rule, SourceAccount: scope.Account,
				MessageAttributes: map[string]string{"RULE_ARN": rule},
			})
			var refused *DeliveryError
			if errors.As(err, &refused) {
				got = refused.Reason
			} else if err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("outcome %q (%v), want %q", got, err, tc.want)
			}
			received := mustReceive(t, s, "q", 0)
			if delivered := len(received) == 1; delivered != (tc.want == "delivered") {
				t.Errorf("received %q", bodies(received))
			}
			if len(received) == 1 && received[0].Attributes["RULE_ARN"].StringValue != rule {
				t.Errorf("attributes = %v", received[0].Attributes)
			}
		})
	}
}

// The digest was computed by hand from the SQS Developer Guide's description.
func TestAttributesDigest(t *testing.T) {
	got := attributesDigest(map[string]MessageAttribute{"a": {DataType: "String", StringValue: "b"}})
	if want := digest("\x00\x00\x00\x01a\x00\x00\x00\x06String\x01\x00\x00\x00\x01b"); got != want {
		t.Errorf("digest = %s, want %s", got, want)
	}
}
