package otlp_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	collectorpb "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/lifeboat-dev/lifeboat/internal/tracing/otlp"
)

// collector answers each request with the next code; the last one repeats.
type collector struct {
	codes  []int
	reject int64

	mu       sync.Mutex
	requests []*http.Request
	spans    []string
	resource map[string]string
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, r)
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		body, _ = gzip.NewReader(r.Body)
	}
	text, _ := io.ReadAll(body)
	var data collectorpb.ExportTraceServiceRequest
	if err := proto.Unmarshal(text, &data); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	code := http.StatusOK
	if len(c.codes) > 0 {
		code, c.codes = c.codes[0], c.codes[min(1, len(c.codes)-1):]
	}
	if code != http.StatusOK {
		w.WriteHeader(code)
		return
	}
	c.resource = map[string]string{}
	for _, of := range data.GetResourceSpans() {
		for _, a := range of.GetResource().GetAttributes() {
			c.resource[a.GetKey()] = a.GetValue().GetStringValue()
		}
		for _, scope := range of.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, scope.GetScope().GetVersion()+" "+s.GetName())
			}
		}
	}
	answer, _ := proto.Marshal(&collectorpb.ExportTraceServiceResponse{PartialSuccess: &collectorpb.ExportTracePartialSuccess{RejectedSpans: c.reject}})
	_, _ = w.Write(answer)
}

var spans = []*tracepb.Span{{Name: "interruption"}, {Name: "drain"}}

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestSendHonoursEnvironment(t *testing.T) {
	c := &collector{}
	server := httptest.NewServer(c)
	defer server.Close()
	client, err := otlp.New("", map[string]string{"k8s.cluster.name": "prod", "cloud.region": "r", "cloud.account.id": ""}, env(
		"OTEL_EXPORTER_OTLP_ENDPOINT", server.URL+"/base/", "OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20abc, x-tenant=a",
		"OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "gzip", "OTEL_RESOURCE_ATTRIBUTES", "team=a%2Cb,k8s.cluster.name=mine", "OTEL_SERVICE_NAME", "boats"))
	if err != nil {
		t.Fatal(err)
	}
	if rejected, err := client.Send(t.Context(), spans, "v1"); err != nil || rejected != 0 {
		t.Fatal(rejected, err)
	}
	r := c.requests[0]
	if r.URL.Path != "/base/v1/traces" || r.Header.Get("Authorization") != "Bearer abc" || r.Header.Get("X-Tenant") != "a" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		t.Errorf("%s %v", r.URL, r.Header)
	}
	if !slices.Equal(c.spans, []string{"v1 interruption", "v1 drain"}) {
		t.Errorf("spans %v", c.spans)
	}
	if diff := cmp.Diff(map[string]string{"service.name": "boats", "team": "a,b", "k8s.cluster.name": "mine", "cloud.region": "r"}, c.resource); diff != "" {
		t.Error(diff)
	}
}

func TestEndpoint(t *testing.T) {
	for _, c := range []struct{ flag, traces, all, disabled, want string }{
		{"", "", "", "", ""},
		{"http://a:4318", "http://b/x", "http://c", "", "http://a:4318/v1/traces"},
		{"http://a:4318/v1/traces", "", "", "", "http://a:4318/v1/traces"},
		{"", "http://b/x", "http://c", "", "http://b/x"},
		{"", "", "https://c", "", "https://c/v1/traces"},
		{"http://a:4318", "", "", "true", ""},
	} {
		client, err := otlp.New(c.flag, nil, env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", c.traces, "OTEL_EXPORTER_OTLP_ENDPOINT", c.all, "OTEL_SDK_DISABLED", c.disabled))
		if err != nil || (client == nil) != (c.want == "") || client != nil && client.Endpoint() != c.want {
			t.Errorf("%+v: %v, %v", c, client, err)
		}
	}
}

func TestBadSettingsAreExplained(t *testing.T) {
	for _, c := range []struct{ flag, name, value, want string }{
		{"collector:4318", "", "", "--tracing-endpoint"},
		{"grpc://a", "", "", "http://otel-collector.monitoring:4318"},
		{"", "OTEL_EXPORTER_OTLP_ENDPOINT", "a b", "OTEL_EXPORTER_OTLP_ENDPOINT"},
		{"http://a", "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "port 4318"},
		{"http://a", "OTEL_EXPORTER_OTLP_TIMEOUT", "10s", "milliseconds"},
		{"http://a", "OTEL_EXPORTER_OTLP_COMPRESSION", "zstd", "gzip or none"},
		{"http://a", "OTEL_EXPORTER_OTLP_HEADERS", "topsecret", "entry 1"},
		{"http://a", "OTEL_RESOURCE_ATTRIBUTES", "=x", "entry 1"},
		{"http://a", "OTEL_EXPORTER_OTLP_CERTIFICATE", "/does/not/exist", "/does/not/exist"},
		{"http://a", "OTEL_EXPORTER_OTLP_CLIENT_KEY", "/does/not/exist", "CLIENT_KEY"},
	} {
		_, err := otlp.New(c.flag, nil, env(c.name, c.value))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "topsecret") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestSendRetriesWhatCanPass(t *testing.T) {
	for _, c := range []struct {
		name     string
		codes    []int
		requests int
		fails    bool
	}{
		{"busy, then well", []int{503, 429, 200}, 3, false},
		{"always busy", []int{503}, 3, true},
		{"refused", []int{401}, 1, true},
		{"redirected", []int{307}, 1, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			to := &collector{codes: c.codes}
			client, err := otlp.New("http://collector", nil, env())
			if err != nil {
				t.Fatal(err)
			}
			client.UseTransport(to)
			_, err = client.Send(t.Context(), spans, "v1")
			if (err != nil) != c.fails || len(to.requests) != c.requests {
				t.Errorf("%s: %d requests, %v", c.name, len(to.requests), err)
			}
		})
	}
}

func TestRejectedSpansAreCounted(t *testing.T) {
	server := httptest.NewServer(&collector{reject: 2})
	defer server.Close()
	client, err := otlp.New(server.URL, nil, env())
	if err != nil {
		t.Fatal(err)
	}
	if rejected, err := client.Send(t.Context(), spans, "v1"); rejected != 2 || err != nil {
		t.Errorf("%d rejected, %v", rejected, err)
	}
}

func TestSendEndsIfCollectorHangs(t *testing.T) {
	hangs := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-hangs }))
	defer server.Close()
	defer close(hangs)
	client, err := otlp.New(server.URL, nil, env("OTEL_EXPORTER_OTLP_TIMEOUT", "50"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Send(t.Context(), spans, "v1"); err == nil {
		t.Error("a collector that does not answer took the spans")
	}
}
