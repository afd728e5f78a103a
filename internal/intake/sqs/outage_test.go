package sqs_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lifeboat-dev/lifeboat/internal/intake/sqs"
)

// gate is a proxy for the emulated account that can block requests.
type gate struct {
	proxy http.Handler
	state atomic.Int32
}

// Modes of a gate.
const (
	gateOpen int32 = iota
	gateUnavailable
	gateCut
)

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch g.state.Load() {
	case gateOpen:
		g.proxy.ServeHTTP(w, r)
	case gateUnavailable:
		http.Error(w, "Service Unavailable", http.StatusServiceUnavailable)
	case gateCut:
		panic(http.ErrAbortHandler)
	}
}

func newGate(t *testing.T, w *world, state int32) (*gate, *httptest.Server) {
	t.Helper()
	target, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{proxy: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}}
	g.state.Store(state)
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	return g, server
}

func (w *world) isUp() bool { return w.count("lifeboat_source_up", "source")["sqs"] == 1 }

func TestSQSOutageAndRecovery(t *testing.T) {
	for name, away := range map[string]struct {
		state  int32
		reason string
		log    string
	}{
		"unavailable": {gateUnavailable, "unavailable", "nothing, if it passes"},
		"unreachable": {gateCut, "unreachable", "a VPC endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			g, server := newGate(t, w, away.state)
			w.start(w.client(server.URL), sqs.Options{Receivers: 2, Wait: time.Second})
			failures := func() float64 { return w.count("lifeboat_source_errors_total", "reason")[away.reason] }
			logged := func() int { return w.log.with(`"cannot reach queue, retrying"`, away.log) }
			// The failure is counted before it is logged.
			w.until("it is away from the start", func() bool { return failures() >= 3 && logged() > 0 })
			if w.isUp() || logged() != 1 {
				t.Errorf("away from the start: up %v, log:\n%s", w.isUp(), w.log)
			}
			w.send(spot("a", instance).String())
			g.state.Store(gateOpen)
			w.untilEmpty()
			w.until("it is up", w.isUp)

			g.state.Store(away.state)
			server.CloseClientConnections() // ends the long polls
			w.until("it is down", func() bool { return !w.isUp() })
			w.send(rebalance("b", instance).String())
			g.state.Store(gateOpen)
			w.untilEmpty()
			w.until("it is up again", w.isUp)
			if got := w.records()[instance]; strings.Join(got, " ") != "a b" {
				t.Errorf("on record: %v", got)
			}
			if w.log.with(`"reached the queue"`) != 2 {
				t.Errorf("want two lines that say that it is back:\n%s", w.log)
			}
		})
	}
}

func TestQueueCreatedLater(t *testing.T) {
	w := newWorld(t)
	made := w.queue
	if _, err := w.aws.DeleteQueue(t.Context(), &awssqs.DeleteQueueInput{QueueUrl: &made}); err != nil {
		t.Fatal(err)
	}
	w.queue = strings.TrimSuffix(made, "lifeboat") + "later"
	w.start(w.aws, sqs.Options{})
	w.until("it is missed", func() bool { return w.count("lifeboat_source_errors_total", "reason")["noQueue"] > 0 })
	w.until("the log says so", func() bool {
		return w.log.with(`"cannot reach queue, retrying"`, "create the queue, or correct --queue-url") == 1
	})
	w.create("later", nil)
	w.send(spot("a", instance).String())
	w.untilEmpty()
	w.until("it is up", w.isUp)
}

func TestStopEndsLongPolls(t *testing.T) {
	w := newWorld(t)
	stop := w.start(w.aws, sqs.Options{})
	w.until("it polls", func() bool { return w.isUp() && w.calls.of("receive") > 4 })
	began := time.Now()
	stop()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("stopping took %s", took)
	}
}

func TestNewRequiresQueueURL(t *testing.T) {
	for _, queue := range []string{"", "lifeboat", "arn:aws:sqs:eu-west-1:210987654321:lifeboat", "https://sqs.eu-west-1.amazonaws.com", "ftp://x/y/z", "http://%zz"} {
		if _, err := sqs.New(queue, nil, nil, sqs.Options{}); err == nil || !strings.Contains(err.Error(), "get-queue-url") {
			t.Errorf("New(%q): %v", queue, err)
		}
	}
	if _, err := sqs.New("https://sqs.eu-west-1.amazonaws.com/210987654321/lifeboat", nil, nil, sqs.Options{}); err != nil {
		t.Error(err)
	}
}

// closedEarly is a response body of the SDK after the response has been read: it is closed, and
// WriteTo returns an error that io.Copy does not expect.
type closedEarly struct{ *strings.Reader }

func (closedEarly) WriteTo(io.Writer) (int64, error) { return 0, io.EOF }
func (closedEarly) Close() error                     { return nil }

func TestImmediateResponseIsReadInFull(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(server.Close)
	client := sqs.NewClient(aws.Config{Region: region}).Options().HTTPClient
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, closedEarly{strings.NewReader("receive")})
	if err != nil {
		t.Fatal(err)
	}
	request.ContentLength = int64(len("receive"))
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || string(text) != "receive" {
		t.Errorf("answer %q, error %v", text, err)
	}
}
