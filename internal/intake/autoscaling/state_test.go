package autoscaling

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/lifeboat-dev/lifeboat/internal/asg/groupcache"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

const instance = "i-0a1b2c3d4e5f60718"

var now = time.Date(2026, 5, 11, 8, 14, 5, 0, time.UTC)

// fates are what is known of all the states that there are.
var fates = map[types.LifecycleState]stateMeaning{
	types.LifecycleStatePending: unaffected, types.LifecycleStatePendingWait: unaffected, types.LifecycleStatePendingProceed: unaffected,
	types.LifecycleStateQuarantined: unaffected, types.LifecycleStateInService: inService,
	types.LifecycleStateTerminating: terminating, types.LifecycleStateTerminatingWait: waitsForHooks, types.LifecycleStateTerminatingProceed: terminatingNow,
	types.LifecycleStateTerminatingRetained: terminating, types.LifecycleStateTerminated: terminatingNow,
	types.LifecycleStateDetaching: unaffected, types.LifecycleStateDetached: unaffected, types.LifecycleStateEnteringStandby: unaffected, types.LifecycleStateStandby: unaffected,
	types.LifecycleStateReplacingRootVolume: unaffected, types.LifecycleStateReplacingRootVolumeWait: unaffected,
	types.LifecycleStateReplacingRootVolumeProceed: unaffected, types.LifecycleStateRootVolumeReplaced: unaffected,
	types.LifecycleStateWarmedPending: enteringPool, types.LifecycleStateWarmedPendingWait: enteringPool, types.LifecycleStateWarmedPendingProceed: enteringPool,
	types.LifecycleStateWarmedPendingRetained: unaffected, types.LifecycleStateWarmedTerminating: unaffected, types.LifecycleStateWarmedTerminatingWait: unaffected,
	types.LifecycleStateWarmedTerminatingProceed: unaffected, types.LifecycleStateWarmedTerminatingRetained: unaffected, types.LifecycleStateWarmedTerminated: unaffected,
	types.LifecycleStateWarmedStopped: unaffected, types.LifecycleStateWarmedRunning: unaffected, types.LifecycleStateWarmedHibernated: unaffected,
}

func TestEveryStateHasDisposition(t *testing.T) {
	for _, state := range types.LifecycleState("").Values() {
		want, known := fates[state]
		if !known {
			t.Errorf("the SDK knows a state that this table does not: %s", state)
		}
		if got := meaningOf(string(state)); got != want {
			t.Errorf("%s: got %d, want %d", state, got, want)
		}
	}
	for state, want := range map[string]stateMeaning{"": unaffected, "Teleporting": unaffected, "terminating": unaffected, "Terminating:Somehow": terminating, " InService ": inService, "TerminatingX": unaffected} {
		if got := meaningOf(state); got != want {
			t.Errorf("%q: got %d, want %d", state, got, want)
		}
	}
}

func TestRead(t *testing.T) {
	tests := []struct {
		state string
		wait  time.Duration
		want  string
	}{
		{"Terminating", time.Minute, "autoscaling/AutoScalingTermination/workers/Terminating/untimed none terminate"},
		{"Terminating:Wait", 0, "autoscaling/AutoScalingTermination/workers/Terminating:Wait/untimed none terminate"},
		{"Terminating:Wait", time.Minute, "autoscaling/AutoScalingTermination/workers/Terminating:Wait/timed Soft 08:15:05 terminate"},
		{"Terminating:Proceed", time.Minute, "autoscaling/AutoScalingTermination/workers/Terminating:Proceed/timed Estimated 08:16:05 terminate"},
		{"Terminated", time.Minute, "autoscaling/AutoScalingTermination/workers/Terminated/timed Hard 08:14:05 terminate"},
		{"Terminating:Retained", 0, "autoscaling/AutoScalingTermination/workers/Terminating:Retained/untimed none terminate"},
		{"InService", 0, "autoscaling/AutoScalingTermination/workers/InService/untimed none  withdrawn"},
		{"Warmed:Terminating:Wait", time.Minute, ""},
		{"Warmed:Pending:Wait", time.Minute, "autoscaling/AutoScalingTermination/workers/Warmed:Pending:Wait/untimed none return"},
		{"Warmed:Stopped", time.Minute, ""},
		{"Standby", 0, ""},
		{"Teleporting", 0, ""},
	}
	for _, test := range tests {
		n, ok := member{"workers", instance, test.state, true, ""}.read(now, test.wait)
		got := ""
		if ok {
			deadline := "none"
			if n.Deadline != nil {
				deadline = string(n.Deadline.Type) + " " + n.Deadline.Time.UTC().Format(time.TimeOnly)
			}
			got = fmt.Sprintf("%s %s %s", n.ID, deadline, n.InstanceAction)
			if n.Withdrawn {
				got += " withdrawn"
			}
			if n.Subject != "workers/"+instance || !n.Time.IsZero() {
				t.Errorf("%s: %+v", test.state, n)
			}
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", test.state, got, test.want)
		}
	}
	for _, m := range []member{{"", instance, "Terminating", false, ""}, {"workers", "", "Terminating", false, ""}, {"workers", "i-x", "Terminating", false, ""}, {"workers", instance, "Warmed:Pending:Wait", false, ""}} {
		if n, ok := m.read(now, 0); ok {
			t.Errorf("%+v made %+v", m, n)
		}
	}
}

// TestRace17BackIntoThePool checks from where an instance enters the warm pool. It comes from service
// if it was observed there. After a restart, it comes from service if its node is old.
func TestRace17BackIntoThePool(t *testing.T) {
	for _, test := range []struct {
		states string
		age    time.Duration
		want   bool
	}{
		{"Warmed:Pending Warmed:Pending:Wait", time.Minute, false},
		{"Warmed:Pending:Wait", time.Hour, true},
		{"InService Warmed:Pending:Wait", time.Minute, true},
		{"InService Terminating Warmed:Pending:Wait", time.Minute, true},
		{"InService Warmed:Pending:Wait Warmed:Stopped Warmed:Pending", time.Hour, false},
		{"Warmed:Stopped Pending InService Warmed:Pending", time.Minute, true},
		{"Warmed:Stopped", time.Hour, false},
	} {
		var s serviceHistory
		got := false
		for state := range strings.FieldsSeq(test.states) {
			got = s.note(instance, state, test.age)
		}
		if got != test.want {
			t.Errorf("%s, with a node of %s: %t", test.states, test.age, got)
		}
		s.forget(func(string) bool { return false })
		if len(s.seen) > 0 {
			t.Error("an instance is remembered that is gone")
		}
	}
}

func TestPatience(t *testing.T) {
	hook := func(terminating bool, timeout time.Duration) groupcache.Hook {
		return groupcache.Hook{Terminating: terminating, Timeout: timeout}
	}
	for _, test := range []struct {
		hooks []groupcache.Hook
		want  time.Duration
	}{
		{nil, 0},
		{[]groupcache.Hook{hook(false, 30*time.Second)}, 0},
		{[]groupcache.Hook{hook(false, 30*time.Second), hook(true, 10*time.Minute), hook(true, 5*time.Minute)}, 5 * time.Minute},
		{[]groupcache.Hook{{}, hook(true, 0), hook(true, -1)}, 0},
	} {
		if got := patience(test.hooks); got != test.want {
			t.Errorf("%d hooks: got %s, want %s", len(test.hooks), got, test.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("workers", instance, "Terminating:Wait", int64(60))
	f.Add(strings.Repeat("é", 255), instance, "Terminating:\xff", int64(7200))
	f.Fuzz(func(t *testing.T, group, id, state string, seconds int64) {
		n, ok := member{group, id, state, true, ""}.read(now, time.Duration(seconds%7200)*time.Second)
		if !ok {
			return
		}
		if n.ID == "" || len(n.ID) > 128 || utf8.RuneCountInString(n.Subject) > 512 || utf8.RuneCountInString(n.EventTypeCode) > 128 {
			t.Errorf("the CRD would refuse %+v", n)
		}
		if n.Withdrawn != (meaningOf(state) == inService) || notice.IsFirm(n.Deadline) != (meaningOf(state) == terminatingNow) {
			t.Errorf("%q made %+v", state, n)
		}
	})
}
