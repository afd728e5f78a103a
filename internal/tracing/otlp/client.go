// Package otlp sends spans to a collector by OTLP over HTTP with protobuf. It is a client of its
// own, because the SDK's exporter links gRPC (docs/adr/0027-spans-from-the-record.md).
package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	collectorpb "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/slim/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/slim/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

const (
	// maxTries is how often a request is sent that the collector cannot answer now.
	maxTries = 3
	// maxPause bounds the time between two tries, also if the collector asks for more.
	maxPause = 10 * time.Second
	// maxAnswer bounds what is read of an answer, in bytes.
	maxAnswer = 64 << 10
)

// Client sends spans to one collector.
type Client struct {
	settings
	http  *http.Client
	pause time.Duration
}

// New returns a client, or nil if neither endpoint nor the environment names a collector. attributes
// are those of the resource; the environment overrides them.
func New(endpoint string, attributes map[string]string, getenv func(string) string) (*Client, error) {
	s, err := readSettings(endpoint, getenv)
	if err != nil || s.endpoint == "" {
		return nil, err
	}
	for key, value := range attributes {
		if _, set := s.resource[key]; !set && value != "" {
			s.resource[key] = value
		}
	}
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("the default transport is not that of net/http")
	}
	transport = transport.Clone()
	transport.TLSClientConfig = s.tls
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // headers can be secret
	return &Client{settings: s, http: &http.Client{Transport: transport, Timeout: s.timeout, CheckRedirect: refuse}, pause: time.Second}, nil
}

// Endpoint is where the spans go.
func (c *Client) Endpoint() string { return c.endpoint }

// Send sends spans in one request, and returns how many of them the collector rejected.
func (c *Client) Send(ctx context.Context, spans []*tracepb.Span, version string) (rejected int64, err error) {
	body, err := proto.Marshal(&collectorpb.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource:   &resourcepb.Resource{Attributes: c.resourceAttributes()},
		ScopeSpans: []*tracepb.ScopeSpans{{Scope: &commonpb.InstrumentationScope{Name: "lifeboat.dev/interruption", Version: version}, Spans: spans}},
	}}})
	if err != nil {
		return 0, fmt.Errorf("encoding spans: %w", err)
	}
	if c.gzip {
		body = compress(body)
	}
	for try := 1; ; try++ {
		answer, after, err := c.post(ctx, body)
		if err == nil {
			return rejectedSpans(answer), nil
		}
		if after < 0 || try == maxTries {
			return 0, err
		}
		if !sleep.For(ctx, min(max(after, c.pause<<(try-1)), maxPause)) {
			return 0, ctx.Err()
		}
	}
}

func (c *Client) resourceAttributes() []*commonpb.KeyValue {
	var all []*commonpb.KeyValue
	for _, key := range slices.Sorted(maps.Keys(c.resource)) {
		all = append(all, &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: c.resource[key]}}})
	}
	return all
}

// post sends one request. With an error, after is when to send it again; negative: never.
func (c *Client) post(ctx context.Context, body []byte) (answer []byte, after time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, -1, fmt.Errorf("sending spans to %s: %w", c.endpoint, err)
	}
	for key, value := range c.headers {
		request.Header.Set(key, value)
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	if c.gzip {
		request.Header.Set("Content-Encoding", "gzip")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, 0, fmt.Errorf("sending spans: %w", err)
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	switch response.StatusCode {
	case http.StatusOK:
		return answer, 0, err
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout: // OTLP specification, "Retryable Response Codes"
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		after = time.Duration(min(max(seconds, 0), 60)) * time.Second
	default:
		after = -1
	}
	return nil, after, fmt.Errorf("sending spans to %s: the collector answered %s", c.endpoint, response.Status)
}

func compress(body []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(body) // a bytes.Buffer takes everything
	_ = w.Close()
	return out.Bytes()
}

// rejectedSpans reads an answer. One that cannot be read rejects nothing: the spans are accepted.
func rejectedSpans(answer []byte) int64 {
	var response collectorpb.ExportTraceServiceResponse
	if err := proto.Unmarshal(answer, &response); err != nil {
		return 0
	}
	return response.GetPartialSuccess().GetRejectedSpans()
}
