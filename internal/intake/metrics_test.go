package intake_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/internal/intake"
)

func TestMetrics(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	metrics, err := intake.NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := intake.NewMetrics(registry); err == nil {
		t.Error("registering twice is not an error")
	}
	o := options()
	o.Metrics = metrics
	recorder := intake.NewRecorder(cluster(interceptor.Funcs{}), oneNode(), o)
	for _, id := range []string{"a", "b", "b"} {
		if _, err := recorder.Record(t.Context(), spot(id)); err != nil {
			t.Fatal(err)
		}
	}
	ahead := spot("c", issued(now.Add(time.Second))) // the cloud's clock is ahead
	if _, err := recorder.Record(t.Context(), ahead); err != nil {
		t.Fatal(err)
	}
	metrics.Received("test", "joined")
	metrics.Unreadable("test", "detail")
	metrics.Up("test", true)
	metrics.Failed("test", "receive", "throttled")
	metrics.Probed(intake.Probe{Sent: now.Add(-300 * time.Millisecond)}, now)
	metrics.Probed(intake.Probe{}, now) // its duration is unknown
	want := `
# HELP lifeboat_notice_delay_seconds Time from the moment that a notice says it was issued until it was recorded.
# TYPE lifeboat_notice_delay_seconds histogram
lifeboat_notice_delay_seconds_bucket{le="0.5"} 1
lifeboat_notice_delay_seconds_bucket{le="1"} 1
lifeboat_notice_delay_seconds_bucket{le="2"} 1
lifeboat_notice_delay_seconds_bucket{le="3"} 3
lifeboat_notice_delay_seconds_bucket{le="5"} 3
lifeboat_notice_delay_seconds_bucket{le="10"} 3
lifeboat_notice_delay_seconds_bucket{le="20"} 3
lifeboat_notice_delay_seconds_bucket{le="30"} 3
lifeboat_notice_delay_seconds_bucket{le="60"} 3
lifeboat_notice_delay_seconds_bucket{le="90"} 3
lifeboat_notice_delay_seconds_bucket{le="120"} 3
lifeboat_notice_delay_seconds_bucket{le="300"} 3
lifeboat_notice_delay_seconds_bucket{le="600"} 3
lifeboat_notice_delay_seconds_bucket{le="+Inf"} 3
lifeboat_notice_delay_seconds_sum 6
lifeboat_notice_delay_seconds_count 3
# HELP lifeboat_probe_seconds Time that a probe took through EventBridge, a rule and the queue to a replica.
# TYPE lifeboat_probe_seconds histogram
lifeboat_probe_seconds_bucket{le="0.05"} 0
lifeboat_probe_seconds_bucket{le="0.1"} 0
lifeboat_probe_seconds_bucket{le="0.25"} 0
lifeboat_probe_seconds_bucket{le="0.5"} 1
lifeboat_probe_seconds_bucket{le="1"} 1
lifeboat_probe_seconds_bucket{le="2"} 1
lifeboat_probe_seconds_bucket{le="5"} 1
lifeboat_probe_seconds_bucket{le="10"} 1
lifeboat_probe_seconds_bucket{le="30"} 1
lifeboat_probe_seconds_bucket{le="60"} 1
lifeboat_probe_seconds_bucket{le="+Inf"} 1
lifeboat_probe_seconds_sum 0.3
lifeboat_probe_seconds_count 1
# HELP lifeboat_received_messages_total Messages received, by source and outcome. A repeated message counts again.
# TYPE lifeboat_received_messages_total counter
lifeboat_received_messages_total{outcome="joined",source="test"} 1
# HELP lifeboat_recorded_notices_total Notices that were added to an Interruption, by source and kind.
# TYPE lifeboat_recorded_notices_total counter
lifeboat_recorded_notices_total{kind="SpotInterruption",source="test"} 3
# HELP lifeboat_source_errors_total Calls to a source that failed, by operation (such as receive or acknowledge) and reason.
# TYPE lifeboat_source_errors_total counter
lifeboat_source_errors_total{operation="receive",reason="throttled",source="test"} 1
# HELP lifeboat_source_up 1 while the source can be reached, else 0.
# TYPE lifeboat_source_up gauge
lifeboat_source_up{source="test"} 1
# HELP lifeboat_unreadable_messages_total Messages that could not be read and were left where they are, by source and reason.
# TYPE lifeboat_unreadable_messages_total counter
lifeboat_unreadable_messages_total{reason="detail",source="test"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestThrottle(t *testing.T) {
	at := now
	throttle := intake.NewThrottle(func() time.Time { return at })
	for i, step := range []struct {
		after time.Duration
		key   string
		held  int
		ok    bool
	}{
		{0, "a", 0, true},
		{0, "b", 0, true},
		{time.Second, "a", 0, false},
		{58 * time.Second, "a", 0, false},
		{time.Second, "a", 2, true},
		{0, "a", 0, false},
	} {
		at = at.Add(step.after)
		if held, ok := throttle.Allow(step.key); held != step.held || ok != step.ok {
			t.Errorf("step %d: got %d, %v, want %d, %v", i, held, ok, step.held, step.ok)
		}
	}
}

func TestThrottleKeysAreBounded(t *testing.T) {
	at := now
	throttle := intake.NewThrottle(func() time.Time { return at })
	passed := func() int {
		count := 0
		for i := range 5000 {
			if _, ok := throttle.Allow(fmt.Sprint(at.Unix(), i)); ok {
				count++
			}
		}
		return count
	}
	if got := passed(); got != 257 {
		t.Errorf("%d keys passed in the first minute, want 256 and one for all others", got)
	}
	at = at.Add(time.Minute)
	if got := passed(); got != 257 {
		t.Errorf("%d keys passed in the second minute, want as many as in the first", got)
	}
}
