package wire_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

func newGate() *wire.Gate {
	return wire.NewGate(func(key string) wire.Identity { return wire.Identity{ARN: "arn:aws:iam::123456789012:user/" + key} }, nil)
}

// gated is a router with its gate.
func gated(t *testing.T) (*wire.Gate, http.Handler) {
	t.Helper()
	gate := newGate()
	router, err := wire.NewRouter(wire.Scope{Account: "123456789012", Region: "eu-west-1"}, slog.New(slog.DiscardHandler), gate, []wire.Service{
		{Name: "query", Protocol: wire.Query, TargetPrefix: "Query", ErrorNamespace: "com.query", QueryCompatible: true, Actions: actions,
			Permission: func(action string) string { return strings.TrimSuffix(action, "Batch") },
			Resource:   func(r *wire.Request) string { return "arn:" + r.Value("Name") },
			Throttled:  &wire.Error{Status: http.StatusForbidden, Code: "SlowDown", Message: "Slow down."}},
		{Name: "json", Protocol: wire.JSON11, TargetPrefix: "Json", Actions: actions},
		{Name: "ec2", Protocol: wire.EC2Query, Actions: actions},
		{Name: "fis", Protocol: wire.RESTJSON, Actions: actions, Paths: map[string]string{"DELETE /things/{id}": "DeleteThing"}},
		{Name: "plain", Protocol: wire.Query, Actions: actions},
	})
	if err != nil {
		t.Fatal(err)
	}
	return gate, router
}

// The calls of these tests: one in each protocol.
func callsByProtocol() map[string]call {
	return map[string]call{
		"query": {service: "plain", contentType: form, body: "Action=DeleteThing"},
		"owned": {service: "query", contentType: form, body: "Action=DeleteThing&Name=x"},
		"json0": {service: "query", target: "Query.DeleteThing", contentType: json10, body: `{"Name":"x"}`},
		"json1": {service: "json", target: "Json.DeleteThing", contentType: json11, body: `{}`},
		"ec2":   {service: "ec2", contentType: form, body: "Action=DeleteThing"},
		"rest":  {service: "fis", method: http.MethodDelete, path: "/things/1"},
	}
}

func TestGateRejectsCalls(t *testing.T) {
	who := "User: arn:aws:iam::123456789012:user/AKIA is not authorized to perform: "
	denied := func(service, on string) string {
		return who + service + ":DeleteThing" + on + " because no identity-based policy allows the " + service + ":DeleteThing action"
	}
	unavailable := "The request has failed due to a temporary failure of the server."
	for _, tc := range []struct {
		name   string
		fault  func(g *wire.Gate, service string)
		status map[string]int
		want   map[string]string
	}{
		{
			"denied", func(g *wire.Gate, service string) { g.Deny(service, "DeleteThing") },
			map[string]int{"query": 403, "owned": 403, "json0": 403, "json1": 400, "ec2": 403, "rest": 403},
			map[string]string{
				"query": queryError("", "Sender", "AccessDenied", denied("plain", "")),
				"owned": queryError("", "Sender", "AccessDenied", denied("query", " on resource: arn:x")),
				"json0": `{"__type":"com.amazon.coral.service#AccessDeniedException","message":"` + denied("query", " on resource: arn:x") + `"}`,
				"json1": `{"__type":"AccessDeniedException","message":"` + denied("json", "") + `"}`,
				"ec2":   ec2Error("UnauthorizedOperation", "You are not authorized to perform this operation. "+denied("ec2", "")),
				"rest":  `{"__type":"com.amazon.coral.service#AccessDeniedException","message":"` + denied("fis", "") + `"}`,
			},
		},
		{
			"throttled", func(g *wire.Gate, service string) { g.Throttle(service, wire.AnyAction, 1) },
			map[string]int{"query": 400, "owned": 403, "json0": 403, "json1": 400, "ec2": 503, "rest": 429},
			map[string]string{
				"query": queryError("", "Sender", "Throttling", "Rate exceeded"),
				"owned": queryError("", "Sender", "SlowDown", "Slow down."),
				"json0": `{"__type":"com.query#SlowDown","message":"Slow down."}`,
				"json1": `{"__type":"ThrottlingException","message":"Rate exceeded"}`,
				"ec2":   ec2Error("RequestLimitExceeded", "Request limit exceeded."),
				"rest":  `{"__type":"ThrottlingException","message":"Rate exceeded"}`,
			},
		},
		{
			"down", func(g *wire.Gate, service string) { g.Fail(service, wire.AnyAction) },
			map[string]int{"query": 503, "owned": 503, "json0": 503, "json1": 503, "ec2": 503, "rest": 503},
			map[string]string{
				"query": queryError("", "Receiver", "ServiceUnavailable", unavailable),
				"owned": queryError("", "Receiver", "ServiceUnavailable", unavailable),
				"json0": `{"__type":"com.amazon.coral.service#ServiceUnavailableException","message":"` + unavailable + `"}`,
				"json1": `{"__type":"com.amazon.coral.service#ServiceUnavailableException","message":"` + unavailable + `"}`,
				"ec2":   ec2Error("Unavailable", unavailable),
				"rest":  `{"__type":"com.amazon.coral.service#ServiceUnavailableException","message":"` + unavailable + `"}`,
			},
		},
	} {
		for protocol, c := range callsByProtocol() {
			t.Run(tc.name+" in "+protocol, func(t *testing.T) {
				gate, router := gated(t)
				tc.fault(gate, c.service)
				w := c.do(router)
				if diff := cmp.Diff(tc.want[protocol], requestID.ReplaceAllString(w.Body.String(), "ID")); diff != "" || w.Code != tc.status[protocol] {
					t.Errorf("status %d, want %d; body (-want +got):\n%s", w.Code, tc.status[protocol], diff)
				}
				gate.Lift(c.service, "DeleteThing")
				gate.Lift(c.service, wire.AnyAction)
				if w := c.do(router); w.Code != http.StatusOK {
					t.Errorf("status %d once lifted", w.Code)
				}
				if n := gate.Calls(c.service, "DeleteThing"); n != 2 {
					t.Errorf("%d calls counted", n)
				}
			})
		}
	}
}

func TestGateCountsDown(t *testing.T) {
	gate, router := gated(t)
	c := callsByProtocol()["ec2"]
	gate.Throttle("ec2", "DeleteThing", 2)
	gate.Throttle("ec2", "GetThing", -1)
	var got []int
	for range 4 {
		got = append(got, c.do(router).Code)
	}
	if diff := cmp.Diff([]int{503, 503, 200, 200}, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	c.body = "Action=GetThing"
	for range 3 {
		if code := c.do(router).Code; code != 503 {
			t.Errorf("status %d, want throttling without end", code)
		}
	}
	gate.LiftAll()
	if code := c.do(router).Code; code != 200 {
		t.Errorf("status %d once all is lifted", code)
	}
	if diff := cmp.Diff(map[string]int{"DeleteThing": 4, "GetThing": 4}, gate.AllCalls("ec2")); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestGateLimitsTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, router := gated(t)
		c := callsByProtocol()["ec2"]
		passed := func(calls int) int {
			n := 0
			for range calls {
				if c.do(router).Code == http.StatusOK {
					n++
				}
			}
			return n
		}
		gate.Limit("ec2", "DeleteThing", 2, 3)
		got := []int{passed(5)}
		time.Sleep(time.Second)
		got = append(got, passed(5))
		gate.Lift("ec2", "DeleteThing")
		got = append(got, passed(5))
		if diff := cmp.Diff([]int{3, 2, 5}, got); diff != "" {
			t.Errorf("passed at once, a second later, and once lifted (-want +got):\n%s", diff)
		}
	})
}

// A fault of a permission applies to every action that needs it.
func TestGateChecksPermissions(t *testing.T) {
	gate := newGate()
	router, err := wire.NewRouter(wire.Scope{Region: "eu-west-1"}, slog.New(slog.DiscardHandler), gate, []wire.Service{{
		Name: "q", Protocol: wire.Query, Actions: map[string]wire.Action{"GetThingBatch": actions["GetThing"]},
		Permission: func(action string) string { return strings.TrimSuffix(action, "Batch") },
	}})
	if err != nil {
		t.Fatal(err)
	}
	gate.Deny("q", "GetThing")
	w := call{service: "q", contentType: form, body: "Action=GetThingBatch"}.do(router)
	if w.Code != http.StatusForbidden || !bytes.Contains(w.Body.Bytes(), []byte("perform: q:GetThing because")) {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
}

func TestGateHangs(t *testing.T) {
	gate, router := gated(t)
	gate.Hang("ec2", wire.AnyAction)
	ctx, cancel := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader("Action=GetThing"))
	r.Header.Set("Content-Type", form)
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIA/20260511/eu-west-1/ec2/aws4_request, SignedHeaders=host, Signature=0")
	ended := make(chan struct{})
	go func() {
		router.ServeHTTP(httptest.NewRecorder(), r)
		close(ended)
	}()
	for gate.Calls("ec2", "GetThing") == 0 {
		select {
		case <-ended:
			t.Fatal("the call was answered")
		default:
		}
	}
	cancel()
	<-ended
}

// A slow call has its usual result, later; a call that its caller cancels is not performed.
func TestGateSlowsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, router := gated(t)
		c := callsByProtocol()["ec2"]
		took := func(body string) time.Duration {
			began := time.Now()
			c.body = body
			if code := c.do(router).Code; code != http.StatusOK {
				t.Errorf("%s: status %d", body, code)
			}
			return time.Since(began)
		}
		wait := time.Second
		gate.Slow("ec2", wire.AnyAction, func() time.Duration { wait *= 2; return wait })
		gate.Slow("ec2", "GetThing", func() time.Duration { return time.Minute })
		got := []time.Duration{took("Action=DeleteThing"), took("Action=DeleteThing"), took("Action=GetThing")}
		gate.Lift("ec2", "GetThing")
		got = append(got, took("Action=GetThing"))
		gate.LiftAll()
		got = append(got, took("Action=GetThing"))
		if diff := cmp.Diff([]time.Duration{2 * time.Second, 4 * time.Second, time.Minute, 8 * time.Second, 0}, got); diff != "" {
			t.Errorf("took (-want +got):\n%s", diff)
		}

		gate.Slow("ec2", "DeleteThing", func() time.Duration { return time.Hour })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader("Action=DeleteThing"))
		r.Header.Set("Content-Type", form)
		r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIA/20260511/eu-west-1/ec2/aws4_request, SignedHeaders=host, Signature=0")
		w := httptest.NewRecorder()
		router.ServeHTTP(w, r)
		if w.Code != http.StatusServiceUnavailable {
			t.Errorf("given up: status %d", w.Code)
		}
	})
}
