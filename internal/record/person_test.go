package record_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

func TestFutureActionsAreIgnored(t *testing.T) {
	for name, tc := range map[string]struct {
		ahead  time.Duration
		counts bool
	}{
		"earlier":                 {-time.Minute, true},
		"a clock that is ahead":   {5 * time.Minute, true},
		"beyond any clock's skew": {5*time.Minute + time.Second, false},
		"another century":         {200 * 365 * 24 * time.Hour, false},
	} {
		a := &v1beta1.UserAction{By: "ada", Time: metav1.NewMicroTime(clock.Add(tc.ahead))}
		in := &v1beta1.Interruption{Spec: v1beta1.InterruptionSpec{Approval: a, Hold: a}}
		if got := record.Hold(in, clock) != nil; got != tc.counts {
			t.Errorf("%s: the hold counts: %v", name, got)
		}
		if got := record.Facts(in, nil, nil, clock).Approval != nil; got != tc.counts {
			t.Errorf("%s: the approval counts: %v", name, got)
		}
		if got := !record.GoAhead(in, clock).IsZero(); got != tc.counts {
			t.Errorf("%s: hooks go ahead: %v", name, got)
		}
		in.Spec.Hold, in.Spec.Released = nil, a
		if got := !record.Released(in, clock).IsZero(); got != tc.counts {
			t.Errorf("%s: the release counts: %v", name, got)
		}
	}
}
