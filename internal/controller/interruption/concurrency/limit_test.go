package concurrency

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

// A termination uses its slot from the request until the Interruption is finished,
// whatever decides by then.
func TestUsedTerminations(t *testing.T) {
	at := metav1.NewMicroTime(time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC))
	in := func(name string, action v1beta1.Action, terminated, finished bool) v1beta1.Interruption {
		i := v1beta1.Interruption{ObjectMeta: metav1.ObjectMeta{Name: name}}
		i.Status.Decision = &v1beta1.Decision{Action: action}
		i.Status.Drain = &v1beta1.DrainStatus{StartTime: &at}
		if terminated {
			i.Status.Drain.TerminationTime = &at
		}
		if finished {
			i.Status.CompletionTime = &at
		}
		return i
	}
	node := &corev1.Node{}
	l := Terminations(&policy.Decision{Decision: v1beta1.Decision{Action: v1beta1.ActionTerminate}}, node,
		func(*v1beta1.Interruption) *corev1.Node { return node })
	for name, tc := range map[string]struct {
		in   v1beta1.Interruption
		want int
	}{
		"being terminated":            {in("b", v1beta1.ActionTerminate, false, false), 1},
		"requested, now only drained": {in("b", v1beta1.ActionDrain, true, false), 1},
		"drained":                     {in("b", v1beta1.ActionDrain, false, false), 0},
		"finished":                    {in("b", v1beta1.ActionTerminate, true, true), 0},
		"the same":                    {in("a", v1beta1.ActionTerminate, true, false), 0},
	} {
		if got := l.Used([]v1beta1.Interruption{tc.in}, "a"); got != tc.want {
			t.Errorf("%s: %d slots used, want %d", name, got, tc.want)
		}
	}
}

// A record whose instance several nodes state takes no slot, so no other record waits for it.
func TestConflictingRecordIsNotWaitedFor(t *testing.T) {
	waits := func(reason string) int {
		in := v1beta1.Interruption{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
		in.Status.Decision, in.Status.Phase = &v1beta1.Decision{EffectivePolicy: "db"}, v1beta1.PhaseQueued
		if reason != "" {
			in.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionCorroborated, Status: metav1.ConditionFalse, Reason: reason}}
		}
		one := intstr.FromInt32(1)
		l := Budget(&policy.Decision{Decision: v1beta1.Decision{EffectivePolicy: "db"}, Budget: &v1beta1.Budget{MaxConcurrent: one}}, nil)
		_, waiting := l.count([]v1beta1.Interruption{in}, "a", func(*v1beta1.Interruption) bool { return false })
		return len(waiting)
	}
	if plain, doubted, conflict := waits(""), waits(v1beta1.ReasonContradicted), waits(v1beta1.ReasonNodeConflict); plain != 1 || doubted != 1 || conflict != 0 {
		t.Errorf("waiting: %d, with a doubt %d, with a conflict %d", plain, doubted, conflict)
	}
}
