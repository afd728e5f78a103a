package record_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

func TestDeregistrationGate(t *testing.T) {
	t.Parallel()
	begun := time.Date(2026, 5, 11, 8, 14, 2, 0, time.UTC)
	cordoned := func(ended string) *v1beta1.InterruptionStatus {
		at := metav1.NewMicroTime(begun)
		return &v1beta1.InterruptionStatus{Drain: &v1beta1.DrainStatus{StartTime: &at, Deregistration: ended}}
	}
	opted := policy.Decision{Deregistering: time.Minute}
	for name, c := range map[string]struct {
		decision policy.Decision
		status   *v1beta1.InterruptionStatus
		after    time.Duration
		waits    bool
		until    time.Duration
	}{
		"without opt-in":              {status: cordoned("")},
		"before the cordon":           {decision: opted, status: &v1beta1.InterruptionStatus{}, after: time.Second, waits: true, until: time.Minute + time.Second},
		"after the cordon":            {decision: opted, status: cordoned(""), after: 59 * time.Second, waits: true, until: time.Minute},
		"the time is over":            {decision: opted, status: cordoned(""), after: time.Minute, until: time.Minute},
		"it is deregistered":          {decision: opted, status: cordoned(v1beta1.ReasonDeregistered), after: 2 * time.Second},
		"AWS did not answer":          {decision: opted, status: cordoned(v1beta1.ReasonDeregistrationUnknown), after: 2 * time.Second},
		"nothing runs on it any more": {decision: policy.Decision{Deregistering: time.Minute, InstanceGone: true}, status: cordoned(""), after: time.Second},
	} {
		gate, waits := record.DeregistrationGate(c.decision, c.status, begun.Add(c.after))
		var until time.Time
		if c.until > 0 {
			until = begun.Add(c.until)
		}
		if waits != c.waits || !gate.Until.Equal(until) {
			t.Errorf("%s: waits %t until %s, want %t, %s after the cordon", name, waits, gate.Until, c.waits, c.until)
		}
	}
}
