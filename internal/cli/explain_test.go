package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// databases is a policy for the first node that uses every field.
func databases() *v1beta1.InterruptionPolicy {
	return &v1beta1.InterruptionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "databases"},
		Spec: v1beta1.InterruptionPolicySpec{
			Nodes: v1beta1.NodeSelector{MatchLabels: map[string]string{"pool": "db"}}, Priority: 10,
			Rules: []v1beta1.Rule{
				{Name: "reclaims", Kinds: []string{notice.KindSpotInterruption}, Action: v1beta1.ActionDrain},
				{Name: "stops", Kinds: []string{notice.KindScheduledChange}, EventTypeCodes: []string{"instance-stop"}, Action: v1beta1.ActionDrain,
					Approval: v1beta1.ApprovalRequired, NotBefore: &metav1.Duration{Duration: 24 * time.Hour}, Strategy: v1beta1.StrategySurge},
				{Kinds: []string{"*"}, Action: v1beta1.ActionNotify},
			},
			Workloads: []v1beta1.Workload{
				{Name: "primaries", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}, Order: v1beta1.OrderLast},
				{Namespaces: []string{"batch"}, MatchOwnerKinds: []string{"Job"}, Strategy: v1beta1.StrategyNever},
			},
			Budget: &v1beta1.Budget{MaxConcurrent: intstr.FromString("50%")},
			Hooks: []v1beta1.Hook{
				{Name: "demote", When: v1beta1.HookBeforeDrain, Timeout: &metav1.Duration{Duration: 30 * time.Second}, Retries: 2, OnFailure: v1beta1.HookHold,
					Job: &v1beta1.HookJob{Namespace: "node-hooks", Template: runtime.RawExtension{Raw: []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}}}`)}}},
				{Name: "report", When: v1beta1.HookAfterDrain, Webhook: &v1beta1.Webhook{URL: "https://example.com"}},
			},
			Notifications: []v1beta1.Notification{{Name: "slack", Reasons: []string{"Drained", "PodLost"}, Webhook: v1beta1.Webhook{URL: "https://example.com"}}},
		},
	}
}

// database is voyage with a first node that databases selects, and two more
// policies that do not apply.
func database(more ...client.Object) []client.Object {
	all := append(mixedNode(), databases(), policyOf(v1beta1.ActionIgnore, "*"))
	all[0].SetLabels(map[string]string{"pool": "db"})
	return append(all, more...)
}

// stopNotice returns a notice that EC2 will stop the instance.
func stopNotice(in time.Duration) v1beta1.Notice {
	n := spotNotice("n1", time.Minute)
	n.Kind, n.EventTypeCode, n.InstanceAction, n.Subject = notice.KindScheduledChange, "instance-stop", notice.ActionStop, "instance-event-1"
	n.Deadline = notice.At(clock.Add(in), v1beta1.DeadlineSoft)
	return n
}

// stopping returns the record of that notice.
func stopping(in time.Duration) *v1beta1.Interruption {
	r := interruption(stopNotice(in))
	r.Status.NodeName, r.Status.Kind, r.Status.Phase = nodeName, notice.KindScheduledChange, v1beta1.PhaseAwaitingApproval
	r.Status.LastNoticeID = "n1"
	return r
}

// say returns an approval or hold that was made some time ago.
func say(by string, ago time.Duration, note string) *v1beta1.UserAction {
	return &v1beta1.UserAction{By: by, Time: metav1.NewMicroTime(clock.Add(-ago)), About: "ScheduledChange instance-event-1", Note: note}
}

func TestExplain(t *testing.T) {
	approved := stopping(26 * time.Hour)
	approved.Spec.Approval, approved.Spec.Hold = say("alice", 10*time.Second, "replica caught up"), say("bob", 5*time.Second, "")
	until := metav1.NewTime(clock.Add(time.Hour))
	approved.Spec.Hold.Until = &until
	gone := interruption(spotNotice("n1", 3*time.Minute))
	gone.Spec.InstanceID, gone.Spec.NodeName = "i-0c0c0c0c0c0c0c0c0", "ip-10-9-9-9.ec2.internal"
	replacing := interruption(spotNotice("n1", 2*time.Minute))
	replacing.Status.NodeName, record.EnsureDrain(&replacing.Status).Replacement = nodeName, &v1beta1.ReplacementStatus{
		Phase: v1beta1.ReplacementLaunched, Reason: "Launched", Name: "web-lb-1", Message: "replacement web-lb-1 has an instance, which is starting",
	}
	sick := stopping(26 * time.Hour)
	sick.Spec.Notices = append(sick.Spec.Notices, v1beta1.Notice{
		ID: "n2", Kind: notice.KindInstanceStatus, Source: notice.SourceEC2, Subject: "instance status",
		Time: metav1.NewTime(clock.Add(-5 * time.Minute)), ReceivedTime: metav1.NewMicroTime(clock.Add(-time.Minute)),
	})
	ofPool := append(mixedNode(), sick, policyOf(v1beta1.ActionTerminate, notice.KindInstanceStatus))
	ofPool[0].SetLabels(map[string]string{"karpenter.sh/nodepool": "web"})
	broken := databases()
	broken.Spec.Rules[0].Action = "Drian"
	invalid := append(mixedNode(), broken, stopping(26*time.Hour))
	invalid[0].SetLabels(map[string]string{"pool": "db"})
	balanced := database(stopping(26 * time.Hour))
	waiting := policyOf(v1beta1.ActionDrain, "*")
	waiting.Name, waiting.Spec.Priority, waiting.Spec.WaitForDeregistration = "balanced", 1000, &metav1.Duration{Duration: time.Minute}
	for _, c := range []struct {
		name    string
		objects []client.Object
		args    []string
	}{
		{"load-balancers", append(balanced, waiting), []string{nodeName}},
		{"replacing", append(mixedNode(), replacing), []string{nodeName}},
		{"defaults", mixedNode(), []string{nodeName}},
		{"awaits", database(stopping(26 * time.Hour)), []string{nodeName}},
		{"approved", database(approved), []string{instanceA}},
		{"supposed", database(), []string{nodeName, "--kind", "health", "--event-type-code", "AWS_EC2_SOMETHING"}},
		{"other-node", database(), []string{otherNode, "--kind", "rebalance"}},
		{"node-gone", append(twoNodes(), gone), []string{"ip-10-9-9-9.ec2.internal"}},
		{"passed-over", ofPool, []string{nodeName}},
		{"invalid-policy", invalid, []string{nodeName}},
		{"json", database(stopping(26 * time.Hour)), []string{nodeName, "-o", "json"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &harness{t: t, cluster: fakeCluster(t, interceptor.Funcs{}, c.objects...)}
			r := h.run(t.Context(), append([]string{"explain"}, c.args...)...)
			if r.code != ExitOK || r.err != "" {
				t.Errorf("exit code %d, standard error %q", r.code, r.err)
			}
			golden(t, "explain-"+c.name+".golden", r.out)
			for line := range strings.Lines(r.out) {
				if n := len([]rune(line)); n > 101 && c.name != "json" {
					t.Errorf("a line has %d columns: %s", n, line)
				}
			}
		})
	}
}

// Every kind can be supposed and gets its own decision.
func TestEveryKindCanBeHypothetical(t *testing.T) {
	for _, kind := range notice.Kinds() {
		t.Run(kind, func(t *testing.T) {
			h := &harness{t: t, cluster: fakeCluster(t, interceptor.Funcs{}, mixedNode()...)}
			r := h.run(t.Context(), "explain", nodeName, "--kind", kind, "-o", "json")
			var e explained
			if err := json.Unmarshal([]byte(r.out), &e); err != nil {
				t.Fatalf("exit code %d, %s%v", r.code, r.err, err)
			}
			if e.Kind != kind || !e.Supposed || e.Decision.Action == "" {
				t.Errorf("got %+v", e)
			}
		})
	}
}

// A hypothetical notice has the content of AWS's message.
func TestSuppose(t *testing.T) {
	deadline := func(in time.Duration, typ v1beta1.DeadlineType) *v1beta1.Deadline {
		return notice.At(clock.Add(in), typ)
	}
	for _, c := range []struct {
		from whatIf
		want v1beta1.Notice
	}{
		{whatIf{}, v1beta1.Notice{Kind: notice.KindSpotInterruption, InstanceAction: "terminate", Deadline: deadline(2*time.Minute, v1beta1.DeadlineHard)}},
		{whatIf{kind: "spot", in: "90s"}, v1beta1.Notice{Kind: notice.KindSpotInterruption, InstanceAction: "terminate", Deadline: deadline(90*time.Second, v1beta1.DeadlineHard)}},
		{whatIf{kind: "scheduled"}, v1beta1.Notice{Kind: notice.KindScheduledChange, InstanceAction: "stop", EventTypeCode: "AWS_EC2_INSTANCE_STOP_SCHEDULED", Deadline: deadline(14*24*time.Hour, v1beta1.DeadlineSoft)}},
		{whatIf{kind: "scheduled", code: "AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED", in: "2d"}, v1beta1.Notice{
			Kind: notice.KindScheduledChange, InstanceAction: "reboot", EventTypeCode: "AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED", Deadline: deadline(48*time.Hour, v1beta1.DeadlineSoft)}},
		{whatIf{kind: "ScheduledChange", code: "system-maintenance", in: "1h"}, v1beta1.Notice{
			Kind: notice.KindScheduledChange, InstanceAction: "maintain", EventTypeCode: "system-maintenance", Deadline: deadline(time.Hour, v1beta1.DeadlineSoft)}},
		{whatIf{kind: "state"}, v1beta1.Notice{Kind: notice.KindInstanceStateChange, InstanceState: "stopping", Deadline: deadline(2*time.Minute, v1beta1.DeadlineEstimated)}},
		{whatIf{kind: "capacity-block"}, v1beta1.Notice{Kind: notice.KindCapacityBlockExpiration, InstanceAction: "terminate", Deadline: deadline(10*time.Minute, v1beta1.DeadlineHard)}},
		{whatIf{kind: "autoscaling"}, v1beta1.Notice{Kind: notice.KindAutoScalingTermination, InstanceAction: "terminate"}},
		{whatIf{kind: "status"}, v1beta1.Notice{Kind: notice.KindInstanceStatus, EventTypeCode: "instance"}},
		{whatIf{kind: "status", code: "system"}, v1beta1.Notice{Kind: notice.KindInstanceStatus, EventTypeCode: "system"}},
		{whatIf{kind: "lifecycle-failure"}, v1beta1.Notice{Kind: notice.KindLifecycleActionFailure, EventTypeCode: "ValidationException"}},
	} {
		for _, n := range []client.Object{node(nodeName, "aws:///us-east-1a/"+instanceA), node(onPremNode, "")} {
			got, err := c.from.notice(node(n.GetName(), ""), clock)
			if err != nil {
				t.Errorf("%+v: %v", c.from, err)
			}
			want := c.want
			want.ID, want.Source, want.Time, want.ReceivedTime = supposedID, "plan", metav1.NewTime(clock), metav1.NewMicroTime(clock)
			got.Description, got.Subject, got.EndTime, got.LifecycleHook = "", "", nil, nil
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%+v (-want +got):\n%s", c.from, diff)
			}
		}
	}
}

func TestSuppositionErrors(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--kind volcano", `unknown kind "volcano": write one of spot, rebalance, scheduled, health, state, capacity-reservation, capacity-block, autoscaling, lifecycle-failure, status, or one of AutoScalingTermination`},
		{"--kind rebalance --in 5m", "--in does not apply to kind RebalanceRecommendation, because its notices have no deadline"},
		{"--kind scheduled --in soon", `invalid --in "soon": write the time until the deadline, such as 12d, 2h or 2m`},
		{"--in -5s", `invalid --in "-5s": write the time until the deadline`},
		{"--event-type-code instance-stop", "--event-type-code needs --kind: add it, for example --kind scheduled"},
	} {
		for _, command := range []string{"plan", "explain"} {
			h := &harness{t: t, cluster: fakeCluster(t, interceptor.Funcs{}, mixedNode()...)}
			r := h.run(t.Context(), append([]string{command, nodeName}, strings.Fields(c.args)...)...)
			if r.code != ExitUsage || !strings.Contains(r.err, c.want) {
				t.Errorf("%s %s: exit code %d, %s", command, c.args, r.code, r.err)
			}
		}
	}
}
