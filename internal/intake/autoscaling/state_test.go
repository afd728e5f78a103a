package autoscaling

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

const instance = "i-0a1b2c3d4e5f60718"

var now = time.Date(2026, 5, 11, 8, 14, 5, 0, time.UTC)

// fates are what is known of all the states that there are.
var fates = map[types.LifecycleState]fate{
	types.LifecycleStatePending: lives, types.LifecycleStatePendingWait: lives, types.LifecycleStatePendingProceed: lives,
	types.LifecycleStateQuarantined: lives, types.LifecycleStateInService: serves,
	types.LifecycleStateTerminating: doomed, types.LifecycleStateTerminatingWait: waits, types.LifecycleStateTerminatingProceed: departs,
	types.LifecycleStateTerminatingRetained: doomed, types.LifecycleStateTerminated: departs,
	types.LifecycleStateDetaching: lives, types.LifecycleStateDetached: lives, types.LifecycleStateEnteringStandby: lives, types.LifecycleStateStandby: lives,
	types.LifecycleStateReplacingRootVolume: lives, types.LifecycleStateReplacingRootVolumeWait: lives,
	types.LifecycleStateReplacingRootVolumeProceed: lives, types.LifecycleStateRootVolumeReplaced: lives,
	types.LifecycleStateWarmedPending: lives, types.LifecycleStateWarmedPendingWait: lives, types.LifecycleStateWarmedPendingProceed: lives,
	types.LifecycleStateWarmedPendingRetained: lives, types.LifecycleStateWarmedTerminating: lives, types.LifecycleStateWarmedTerminatingWait: lives,
	types.LifecycleStateWarmedTerminatingProceed: lives, types.LifecycleStateWarmedTerminatingRetained: lives, types.LifecycleStateWarmedTerminated: lives,
	types.LifecycleStateWarmedStopped: lives, types.LifecycleStateWarmedRunning: lives, types.LifecycleStateWarmedHibernated: lives,
}

func TestEveryStateHasAFate(t *testing.T) {
	for _, state := range types.LifecycleState("").Values() {
		want, known := fates[state]
		if !known {
			t.Errorf("the SDK knows a state that this table does not: %s", state)
		}
		if got := fateOf(string(state)); got != want {
			t.Errorf("%s: got %d, want %d", state, got, want)
		}
	}
	for state, want := range map[string]fate{"": lives, "Teleporting": lives, "terminating": lives, "Terminating:Somehow": doomed, " InService ": serves, "TerminatingX": lives} {
		if got := fateOf(state); got != want {
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
		{"Terminating:Proceed", time.Minute, "autoscaling/AutoScalingTermination/workers/Terminating:Proceed/timed Hard 08:14:05 terminate"},
		{"Terminating:Retained", 0, "autoscaling/AutoScalingTermination/workers/Terminating:Retained/untimed none terminate"},
		{"InService", 0, "autoscaling/AutoScalingTermination/workers/InService/untimed none  withdrawn"},
		{"Warmed:Terminating:Wait", time.Minute, ""},
		{"Standby", 0, ""},
		{"Teleporting", 0, ""},
	}
	for _, test := range tests {
		n, ok := member{"workers", instance, test.state}.read(now, test.wait)
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
	for _, m := range []member{{"", instance, "Terminating"}, {"workers", "", "Terminating"}, {"workers", "i-x", "Terminating"}} {
		if n, ok := m.read(now, 0); ok {
			t.Errorf("%+v made %+v", m, n)
		}
	}
}

func TestPatience(t *testing.T) {
	hook := func(transition string, timeout int32) types.LifecycleHook {
		return types.LifecycleHook{LifecycleTransition: aws.String("autoscaling:EC2_INSTANCE_" + transition), HeartbeatTimeout: aws.Int32(timeout)}
	}
	for _, test := range []struct {
		hooks []types.LifecycleHook
		want  time.Duration
	}{
		{nil, 0},
		{[]types.LifecycleHook{hook("LAUNCHING", 30)}, 0},
		{[]types.LifecycleHook{hook("LAUNCHING", 30), hook("TERMINATING", 600), hook("TERMINATING", 300)}, 5 * time.Minute},
		{[]types.LifecycleHook{{}, hook("TERMINATING", 0), hook("TERMINATING", -1)}, 0},
	} {
		if got := patience(test.hooks); got != test.want {
			t.Errorf("%d hooks: got %s, want %s", len(test.hooks), got, test.want)
		}
	}
}

func TestCandidates(t *testing.T) {
	node := func(providerID string, labels map[string]string) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.NodeSpec{ProviderID: providerID}}
	}
	got := candidates([]corev1.Node{
		node("aws:///eu-west-1a/i-0000000000000000c", nil), node("aws:///eu-west-1a/i-0000000000000000a", nil),
		node("aws:///eu-west-1a/i-0000000000000000b", map[string]string{nodePoolLabel: "default"}),
		node("", nil), node("gce://project/zone/name", nil), node("aws:///eu-west-1a/i-0000000000000000a", nil),
	})
	if diff := cmp.Diff([]string{"i-0000000000000000a", "i-0000000000000000c"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("workers", instance, "Terminating:Wait", int64(60))
	f.Add(strings.Repeat("é", 255), instance, "Terminating:\xff", int64(7200))
	f.Fuzz(func(t *testing.T, group, id, state string, seconds int64) {
		n, ok := member{group, id, state}.read(now, time.Duration(seconds%7200)*time.Second)
		if !ok {
			return
		}
		if n.ID == "" || len(n.ID) > 128 || utf8.RuneCountInString(n.Subject) > 512 || utf8.RuneCountInString(n.EventTypeCode) > 128 {
			t.Errorf("the CRD would refuse %+v", n)
		}
		if n.Withdrawn != (fateOf(state) == serves) || (n.Deadline != nil && n.Deadline.Type == v1alpha1.DeadlineHard) != (fateOf(state) == departs) {
			t.Errorf("%q made %+v", state, n)
		}
	})
}
