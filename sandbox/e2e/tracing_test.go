//go:build e2e

package e2e

import (
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/slim/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/sandbox"
)

// otlpCollector is the trace service of a collector. It does not answer before open is closed.
type otlpCollector struct {
	open  chan struct{}
	asked chan struct{} // closed with the first request
	once  sync.Once

	mu    sync.Mutex
	spans []*tracepb.Span
}

func (c *otlpCollector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request collectorpb.ExportTraceServiceRequest
	if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || err != nil || proto.Unmarshal(body, &request) != nil {
		http.Error(w, "not a request of the trace service", http.StatusBadRequest)
		return
	}
	c.once.Do(func() { close(c.asked) })
	select {
	case <-c.open:
	case <-r.Context().Done():
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range request.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			c.spans = append(c.spans, scope.GetSpans()...)
		}
	}
	answer, _ := proto.Marshal(&collectorpb.ExportTraceServiceResponse{})
	_, _ = w.Write(answer)
}

func (c *otlpCollector) received() []*tracepb.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// A collector gets the history of an interruption. While it hangs, another node is drained.
func TestTraceOfInterruption(t *testing.T) {
	t.Parallel()
	c := &otlpCollector{open: make(chan struct{}), asked: make(chan struct{})}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	open := sync.OnceFunc(func() { close(c.open) })
	t.Cleanup(open)
	r := newRigWith(t, sandbox.Options{LifeboatdArgs: []string{"--tracing-endpoint=" + server.URL}})
	nodes := r.launch(2)
	r.runOn(nodes[0], "web", 30)
	r.runOn(nodes[1], "api", 30)
	r.reclaim(nodes[0])
	r.reaches(nodes[0].ID, v1beta1.PhaseCompleted, 4*time.Minute)
	<-c.asked
	r.reclaim(nodes[1])
	r.reaches(nodes[1].ID, v1beta1.PhaseDrained, time.Minute) // nothing waits for the collector
	if n := len(c.received()); n > 0 {
		t.Fatalf("the collector has %d spans and has answered nothing", n)
	}
	open()
	r.reaches(nodes[1].ID, v1beta1.PhaseCompleted, 4*time.Minute)
	in, err := r.record(t.Context(), nodes[1].ID)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]*tracepb.Span{}
	r.until("the spans of the second node", time.Minute, func(context.Context) (bool, error) {
		for _, s := range c.received() {
			if hex.EncodeToString(s.GetTraceId()) == strings.ReplaceAll(string(in.UID), "-", "") {
				names[s.GetName()] = s
			}
		}
		return len(names) > 0, nil
	})
	r.untilMetric("lifeboat_trace_spans_total", `"sent"`, float64(len(names)))
	root, drain, pod := names["interruption"], names["drain"], names["evict pod"]
	for _, name := range []string{"interruption", "decide", "cordon", "drain", "evict pod", "complete"} {
		if names[name] == nil {
			t.Fatalf("no span %q in %v", name, names)
		}
	}
	if string(drain.GetParentSpanId()) != string(root.GetSpanId()) || string(pod.GetParentSpanId()) != string(drain.GetSpanId()) {
		t.Error("the spans are not a tree: interruption, drain, pod")
	}
	if pod.GetStartTimeUnixNano() < drain.GetStartTimeUnixNano() || pod.GetEndTimeUnixNano() > root.GetEndTimeUnixNano() || len(root.GetEvents()) != len(in.Status.Timeline) {
		t.Errorf("pod %v, drain %v, root %v", pod, drain, root)
	}
	for _, want := range []string{"k8s.namespace.name=default", "lifeboat.pod.outcome=moved"} {
		if !slices.ContainsFunc(pod.GetAttributes(), func(a *commonpb.KeyValue) bool { return a.GetKey()+"="+a.GetValue().GetStringValue() == want }) {
			t.Errorf("the span of the pod has no %s: %v", want, pod.GetAttributes())
		}
	}
}
