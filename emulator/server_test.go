package emulator_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/emulator/sqs"
)

func TestListenRejectsNonLoopbackAddresses(t *testing.T) {
	server, err := emulator.New(emulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0", "nonsense"} {
		if ln, err := server.Listen(addr); err == nil {
			t.Errorf("listened on %s for %q", ln.Addr(), addr)
			ln.Close()
		}
	}
	for _, addr := range []string{"127.0.0.1:0", "localhost:0"} {
		ln, err := server.Listen(addr)
		if err != nil {
			t.Errorf("listening on %s: %v", addr, err)
			continue
		}
		ln.Close()
	}
}

func TestServeRejectsNonLoopbackAddresses(t *testing.T) {
	server, err := emulator.New(emulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	open := openListener{}
	if err := server.Serve(t.Context(), open); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("error = %v, want a refusal", err)
	}
}

// openListener reports that it listens on every address.
type openListener struct{ net.Listener }

func (openListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4zero, Port: 1} }
func (openListener) Close() error   { return nil }

func TestNewRejectsInvalidScopes(t *testing.T) {
	for _, o := range []emulator.Options{{Account: "12345"}, {Account: "12345678901x"}, {Region: "Frankfurt"}, {Region: "eu-central"}} {
		if _, err := emulator.New(o); err == nil {
			t.Errorf("accepted %+v", o)
		}
	}
}

// A server that stops does not wait for the timeout of its long polls.
func TestServeStopsWithALongPollOpen(t *testing.T) {
	server, err := emulator.New(emulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.States.SQS.Create("q", nil, nil); err != nil {
		t.Fatal(err)
	}
	ln, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, ln) }()

	// The server requests the body once a handler reads it: then the poll is open.
	open := make(chan struct{})
	trace := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { close(open) }})
	poll := newPost(trace, t, "http://"+ln.Addr().String()+"/123456789012/q", "Action=ReceiveMessage&WaitTimeSeconds=20")
	poll.Header.Set("Expect", "100-continue")
	polled := make(chan string, 1)
	go func() {
		resp, err := http.DefaultClient.Do(poll)
		if err != nil {
			polled <- err.Error()
			return
		}
		resp.Body.Close()
		polled <- resp.Status
	}()
	<-open
	began := time.Now()
	cancel()
	if err := <-served; err != nil {
		t.Errorf("serving: %v", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("stopping took %v", took)
	}
	if outcome := <-polled; outcome != "200 OK" {
		t.Errorf("the open poll ended with %s, want 200 and no messages", outcome)
	}
}

func TestAccountsAreIsolated(t *testing.T) {
	one, _ := emulatortest.Serve(t, emulator.Options{})
	two, url := emulatortest.Serve(t, emulator.Options{Account: "210987654321", Region: "eu-west-1"})
	if err := one.States.SQS.Create("q", nil, nil); err != nil {
		t.Fatal(err)
	}
	if names, _ := two.States.SQS.List("", "", 10); len(names) != 0 || two.Account() != "210987654321" || two.Region() != "eu-west-1" {
		t.Errorf("account %s in %s has queues %v of another", two.Account(), two.Region(), names)
	}
	resp, err := http.DefaultClient.Do(newPost(t.Context(), t, url, "Action=ListQueues")) // signed for us-east-1
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("status %d for a credential of another region, want 403", resp.StatusCode)
	}
}

// A poll of a disconnected caller takes no later message.
func TestAbandonedPollsReceiveNoMessage(t *testing.T) {
	answered := make(answers, 10)
	server, url := emulatortest.Serve(t, emulator.Options{
		Logger: slog.New(slog.NewTextHandler(answered, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err := server.States.SQS.Create("q", nil, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	resp, err := http.DefaultClient.Do(newPost(ctx, t, url+"/123456789012/q", "Action=ReceiveMessage&WaitTimeSeconds=20"))
	if err == nil {
		resp.Body.Close()
		t.Fatalf("the poll ended with %s, want it abandoned", resp.Status)
	}
	if line := <-answered; !strings.Contains(line, "ReceiveMessage") {
		t.Fatalf("the server answered: %s", line)
	}
	if _, err := server.States.SQS.Send("q", sqs.Outgoing{Body: "m"}, "me"); err != nil {
		t.Fatal(err)
	}
	got, err := server.States.SQS.Receive(t.Context(), "q", sqs.ReceiveOptions{Max: 1})
	if err != nil || len(got) != 1 || got[0].System["ApproximateReceiveCount"] != "1" {
		t.Errorf("received %+v (%v), want the message for the first time", got, err)
	}
}

// answers receives log lines.
type answers chan string

// Write implements io.Writer.
func (a answers) Write(line []byte) (int, error) {
	a <- string(line)
	return len(line), nil
}

// newPost makes a request with a form, signed for SQS in us-east-1.
func newPost(ctx context.Context, t *testing.T, url, form string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIA/20260511/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=0")
	return req
}

// A form of a web page can carry an access key in its fields, but not without an Origin.
func TestBrowserRequestsAreRejected(t *testing.T) {
	server, err := emulator.New(emulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for origin, want := range map[string]bool{"": false, "https://evil.example.com": true, "null": true} {
		r := newPost(t.Context(), t, "http://127.0.0.1/", "Action=GetCallerIdentity&Version=2011-06-15&AWSAccessKeyId=AKIATEST")
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		w := httptest.NewRecorder()
		server.Handler().ServeHTTP(w, r)
		if refused := w.Code == http.StatusForbidden && strings.Contains(w.Body.String(), "web pages"); refused != want {
			t.Errorf("origin %q: %d %s", origin, w.Code, w.Body)
		}
	}
}
