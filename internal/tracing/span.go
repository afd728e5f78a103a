package tracing

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	commonpb "go.opentelemetry.io/proto/slim/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// history collects the spans of one interruption.
type history struct {
	// seed makes the ids: the UID, and for a later interruption of the same instance also when the
	// earlier one ended.
	seed  string
	trace []byte
	// begin and end bound the root span.
	begin, end time.Time
	spans      []*tracepb.Span
}

func newHistory(in *v1beta1.Interruption, begin, end time.Time) *history {
	return &history{seed: seedOf(in), trace: TraceID(in), begin: begin, end: end}
}

func seedOf(in *v1beta1.Interruption) string {
	since := record.Since(&in.Status)
	if since.IsZero() {
		return string(in.UID)
	}
	return string(in.UID) + "/" + since.UTC().Format(time.RFC3339Nano)
}

// TraceID is the id of an Interruption's trace: its UID without hyphens. A later interruption that
// the same object records has a hash.
func TraceID(in *v1beta1.Interruption) []byte {
	seed := seedOf(in)
	if id, err := hex.DecodeString(strings.ReplaceAll(seed, "-", "")); err == nil && len(id) == 16 {
		return id
	}
	hash := sha256.Sum256([]byte(seed))
	return hash[:16]
}

// add adds a span, unless its begin is not known. No span begins before its parent, or ends before
// it begins. key identifies the span within the trace.
func (s *history) add(parent *tracepb.Span, name, key string, begin, end time.Time, attributes ...*commonpb.KeyValue) *tracepb.Span {
	if begin.IsZero() {
		return nil
	}
	if parent != nil { // a pass notes what it did with the time of its begin, and some times have whole seconds
		begin = later(begin, time.Unix(0, int64(parent.GetStartTimeUnixNano()))) //nolint:gosec // G115: it was an int64
	}
	end = later(end, begin)
	id := sha256.Sum256([]byte(s.seed + "/" + key))
	span := &tracepb.Span{
		TraceId: s.trace, SpanId: id[:8], Name: name, Kind: tracepb.Span_SPAN_KIND_INTERNAL,
		StartTimeUnixNano: nanoseconds(begin), EndTimeUnixNano: nanoseconds(end), Attributes: known(attributes),
		Flags: uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK) | sampled,
	}
	if parent != nil {
		span.ParentSpanId = parent.GetSpanId()
	}
	s.spans = append(s.spans, span)
	return span
}

// sampled is the flag of a sampled span (W3C Trace Context, "Trace flags").
const sampled = 1

func nanoseconds(t time.Time) uint64 {
	return uint64(max(t.UnixNano(), 0))
}

// failed marks a span as failed.
func failed(span *tracepb.Span, message string) {
	if span != nil {
		span.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: message}
	}
}

// known removes attributes without a value.
func known(all []*commonpb.KeyValue) []*commonpb.KeyValue {
	var kept []*commonpb.KeyValue
	for _, a := range all {
		if a != nil {
			kept = append(kept, a)
		}
	}
	return kept
}

// text is an attribute; without a value it is left out.
func text[T ~string](key attribute, value T) *commonpb.KeyValue {
	if value == "" {
		return nil
	}
	return &commonpb.KeyValue{Key: string(key), Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: string(value)}}}
}

// instant is an attribute with a time.
func instant(key attribute, at time.Time) *commonpb.KeyValue {
	if at.IsZero() {
		return nil
	}
	return text(key, at.UTC().Format(time.RFC3339))
}

func number[T ~int | ~int32 | ~int64](key attribute, value T) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: string(key), Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: int64(value)}}}
}

// truth is an attribute that is left out if it is false.
func truth(key attribute, value bool) *commonpb.KeyValue {
	if !value {
		return nil
	}
	return &commonpb.KeyValue{Key: string(key), Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: true}}}
}
