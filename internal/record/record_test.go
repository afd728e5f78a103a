package record_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/record/recordtest"
)

var clock = time.Date(2026, 5, 11, 8, 14, 0, 0, time.UTC)

func TestNodeUsesBudgetSlot(t *testing.T) {
	begun := metav1.NewMicroTime(clock)
	drained := []metav1.Condition{{Type: v1beta1.ConditionDrained, Status: metav1.ConditionTrue}}
	policy := []v1beta1.Hook{
		{Name: "before", When: v1beta1.HookBeforeDrain}, {Name: "a", When: v1beta1.HookAfterDrain}, {Name: "b", When: v1beta1.HookAfterDrain},
	}
	with := func(hooks ...v1beta1.HookStatus) v1beta1.InterruptionStatus {
		return v1beta1.InterruptionStatus{Drain: &v1beta1.DrainStatus{StartTime: &begun, Hooks: hooks}, Conditions: drained}
	}
	did := func(name string) v1beta1.HookStatus {
		return v1beta1.HookStatus{Name: name, State: v1beta1.HookSucceeded, CompletionTime: &begun}
	}
	for name, tc := range map[string]struct {
		status v1beta1.InterruptionStatus
		hooks  []v1beta1.Hook
		want   bool
	}{
		"not begun":                             {v1beta1.InterruptionStatus{}, policy, false},
		"being drained":                         {v1beta1.InterruptionStatus{Drain: &v1beta1.DrainStatus{StartTime: &begun}}, nil, true},
		"drained":                               {with(), nil, false},
		"drained, a hook before it still runs":  {with(v1beta1.HookStatus{Name: "before", State: v1beta1.HookRunning}), policy[:1], false},
		"drained, no hook has begun":            {with(), policy, true},
		"drained, a hook runs":                  {with(v1beta1.HookStatus{Name: "a", State: v1beta1.HookRunning}), policy, true},
		"drained, a hook is between two tries":  {with(v1beta1.HookStatus{Name: "a", State: v1beta1.HookFailed}, did("b")), policy, true},
		"drained, the second hook has not run":  {with(did("a")), policy, true},
		"drained, the hooks ran":                {with(did("a"), did("b")), policy, false},
		"drained, one failed":                   {with(v1beta1.HookStatus{Name: "a", State: v1beta1.HookFailed, CompletionTime: &begun}, did("b")), policy, false},
		"drained, the policy has no such hooks": {with(v1beta1.HookStatus{Name: "old", State: v1beta1.HookRunning}), policy[:1], false},
	} {
		if got := record.Draining(&tc.status, tc.hooks); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestBudgetSlotIsReleased(t *testing.T) {
	begun := metav1.NewMicroTime(clock)
	is := func(isDrained bool, hooks ...v1beta1.HookStatus) *v1beta1.InterruptionStatus {
		s := &v1beta1.InterruptionStatus{Drain: &v1beta1.DrainStatus{StartTime: &begun, Hooks: hooks}}
		if isDrained {
			s.Conditions = []metav1.Condition{{Type: v1beta1.ConditionDrained, Status: metav1.ConditionTrue}}
		}
		return s
	}
	running, succeeded := v1beta1.HookStatus{Name: "a", State: v1beta1.HookRunning}, v1beta1.HookStatus{Name: "a", State: v1beta1.HookSucceeded, CompletionTime: &begun}
	for name, tc := range map[string]struct {
		was, is *v1beta1.InterruptionStatus
		want    bool
	}{
		"it begins":             {&v1beta1.InterruptionStatus{}, is(false), false},
		"a hook before it ends": {is(false, running), is(false, succeeded), false},
		"its pods have left":    {is(false), is(true), true},
		"it is put back":        {is(false), &v1beta1.InterruptionStatus{}, true},
		"a hook after it ends":  {is(true, running), is(true, succeeded), true},
		"nothing of it changes": {is(true, succeeded), is(true, succeeded), false},
	} {
		if got := record.Frees(tc.was, tc.is); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestHoldEnds(t *testing.T) {
	until := metav1.NewTime(clock.Add(time.Hour))
	in := &v1beta1.Interruption{Spec: v1beta1.InterruptionSpec{Hold: &v1beta1.UserAction{By: "alice", Time: metav1.NewMicroTime(clock), Until: &until}}}
	if record.Hold(in, clock.Add(59*time.Minute)) == nil || record.Hold(in, clock.Add(time.Hour)) != nil {
		t.Error("a hold of an hour does not end after one")
	}
	in.Status.History = recordtest.CompletedBefore(clock.Add(time.Minute))
	if record.Hold(in, clock.Add(2*time.Minute)) != nil {
		t.Error("a hold of an interruption that is over holds the next")
	}
}

func TestHookGates(t *testing.T) {
	ended := metav1.NewMicroTime(clock)
	failed := &v1beta1.HookStatus{State: v1beta1.HookFailed, CompletionTime: &ended}
	hold, goOn := &v1beta1.Hook{Name: "h", OnFailure: v1beta1.HookHold, Retries: 2}, &v1beta1.Hook{Name: "h"}
	for name, tc := range map[string]struct {
		hook    *v1beta1.Hook
		status  *v1beta1.HookStatus
		goAhead time.Time
		want    string
	}{
		"not begun":                {hook: hold, want: "hook h runs first"},
		"running":                  {hook: hold, status: &v1beta1.HookStatus{State: v1beta1.HookRunning, Try: 2, StartTime: ended}, want: "hook h runs (try 2 of 3, at most until 08:15:00 UTC)"},
		"succeeded":                {hook: hold, status: &v1beta1.HookStatus{State: v1beta1.HookSucceeded, CompletionTime: &ended}},
		"between two tries":        {hook: goOn, status: &v1beta1.HookStatus{State: v1beta1.HookFailed, Try: 1, StartTime: ended}, want: "hook h is tried again at 08:14:02 UTC (try 2 of 1)"},
		"failed, and that is fine": {hook: goOn, status: failed},
		"failed, and holds":        {hook: hold, status: failed, want: "hook h failed and the policy holds the drain; `lifeboat approve a` continues it"},
		"failed, approved before":  {hook: hold, status: failed, goAhead: clock, want: "hook h failed and the policy holds the drain; `lifeboat approve a` continues it"},
		"failed, approved since":   {hook: hold, status: failed, goAhead: clock.Add(time.Second)},
	} {
		gate, waits := record.HookGate(tc.hook, tc.status, tc.goAhead, "a")
		if gate.Why != tc.want || waits != (tc.want != "") {
			t.Errorf("%s: %q, %t", name, gate.Why, waits)
		}
	}
}

// A node may be marked for a notice long before it is drained for it, and its drain may pass to another.
func TestDrainBeginsForItsSubject(t *testing.T) {
	before, after := metav1.NewMicroTime(clock.Add(-time.Hour)), metav1.NewMicroTime(clock.Add(time.Hour))
	begun := metav1.NewMicroTime(clock)
	for name, c := range map[string]struct {
		drain v1beta1.DrainStatus
		want  time.Time
	}{
		"marked only":                {v1beta1.DrainStatus{SubjectTime: &before}, time.Time{}},
		"marked before":              {v1beta1.DrainStatus{StartTime: &begun, SubjectTime: &before}, clock},
		"of the notice that began":   {v1beta1.DrainStatus{StartTime: &begun}, clock},
		"passed to the next subject": {v1beta1.DrainStatus{StartTime: &begun, SubjectTime: &after}, after.Time},
	} {
		in := &v1beta1.Interruption{Status: v1beta1.InterruptionStatus{Drain: &c.drain}}
		if got := record.Facts(in, nil, nil, clock).Begun; !got.Equal(c.want) {
			t.Errorf("%s: begun %s, want %s", name, got, c.want)
		}
	}
}

// One heartbeat that fails moves no end: the next may succeed.
func TestFailedHeartbeatsEndTheExtension(t *testing.T) {
	since, expiry, end := metav1.NewMicroTime(clock), metav1.NewMicroTime(clock.Add(5*time.Minute)), metav1.NewMicroTime(clock.Add(time.Hour))
	for name, c := range map[string]struct {
		failed int32
		end    *metav1.MicroTime
		want   time.Time
	}{
		"none failed":                           {0, &end, end.Time},
		"two failed":                            {2, &end, end.Time},
		"three failed":                          {3, &end, expiry.Add(-10 * time.Second)},
		"three failed, no end was known":        {3, nil, expiry.Add(-10 * time.Second)},
		"three failed, and the end was earlier": {3, &since, since.Time},
	} {
		in := &v1beta1.Interruption{Status: v1beta1.InterruptionStatus{LifecycleHooks: &v1beta1.LifecycleHooksStatus{
			Hooks: []v1beta1.LifecycleHookStatus{{Name: "lifeboat-terminate"}}, WaitingSince: &since,
			FailedHeartbeats: c.failed, ExpiryTime: &expiry, EndTime: c.end,
		}}}
		if got := record.Facts(in, nil, nil, clock).ExtendedUntil; !got.Equal(c.want) {
			t.Errorf("%s: extended until %s, want %s", name, got, c.want)
		}
	}
}
