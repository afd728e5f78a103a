package cli

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/record/recordtest"
)

// withUser returns a cluster that reports this user name.
func withUser(name string) interceptor.Funcs {
	return interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		review, ok := o.(*authenticationv1.SelfSubjectReview)
		if !ok {
			return c.Create(ctx, o, opts...)
		}
		review.Status.UserInfo.Username = name
		return nil
	}}
}

// recorded returns a record's spec after a run.
func recorded(t *testing.T, c client.Client) v1beta1.InterruptionSpec {
	t.Helper()
	var in v1beta1.Interruption
	if err := c.Get(t.Context(), client.ObjectKey{Name: instanceA}, &in); err != nil {
		t.Fatal(err)
	}
	return in.Spec
}

func TestSay(t *testing.T) {
	until := metav1.NewTime(clock.Add(2 * time.Hour).Local())
	held := stopping(26 * time.Hour)
	held.Spec.Hold = say("bob", time.Minute, "")
	failed := draining("databases")
	failed.Name, failed.UID, failed.Spec.InstanceID, failed.Spec.NodeName, failed.Status.NodeName = instanceA, "uid-a", instanceA, nodeName, nodeName
	failed.Spec.Approval = say("bob", time.Hour, "")
	ended := metav1.NewMicroTime(clock.Add(-time.Minute))
	record.EnsureDrain(&failed.Status).Hooks = []v1beta1.HookStatus{{Name: "demote", State: v1beta1.HookFailed, Try: 3, CompletionTime: &ended, Message: "exit code 1"}}
	soon := stopping(23 * time.Hour)
	mine := func(note string) *v1beta1.UserAction {
		return &v1beta1.UserAction{By: "carol", Time: metav1.NewMicroTime(clock.Local()), About: "ScheduledChange instance-event-1", Note: note}
	}
	forTwoHours := mine("backup")
	forTwoHours.Until = &until
	for _, c := range []struct {
		name    string
		objects []client.Object
		args    []string
		want    func(*v1beta1.InterruptionSpec)
		says    string // in the text
	}{
		{"approve", database(stopping(26 * time.Hour)), []string{"approve", nodeName, "--note", "go"},
			func(s *v1beta1.InterruptionSpec) { s.Approval = mine("go") },
			"approved by carol: ip-10-0-0-10.ec2.internal (i-0a1b2c3d4e5f60718)\nabout     ScheduledChange instance-event-1\nnext      Drain in 2h, at 2026-05-11 10:14 UTC; until then its phase is Scheduled\n"},
		{"approve, for scripts", database(stopping(26 * time.Hour)), []string{"approve", nodeName, "-o", "name"},
			func(s *v1beta1.InterruptionSpec) { s.Approval = mine("") }, "interruption.lifeboat.dev/i-0a1b2c3d4e5f60718\n"},
		{"approve by instance, late", database(soon), []string{"approve", instanceA},
			func(s *v1beta1.InterruptionSpec) { s.Approval = mine("") }, "next      Drain now: its node is cordoned and its pods leave"},
		{"approve, and the budget is used up", database(soon, draining("databases")), []string{"approve", nodeName},
			func(s *v1beta1.InterruptionSpec) { s.Approval = mine("") }, "its phase is Queued: policy databases allows 50%, which is 1 of 1 node at a time, and 1 now"},
		{"pre-approve", append(mixedNode(), stopping(26*time.Hour)), []string{"approve", nodeName, "--pre-approve"},
			func(s *v1beta1.InterruptionSpec) { s.Approval = mine("") }, "next      Drain in 1d1h"},
		{"approve after a hook has failed", database(failed), []string{"approve", nodeName},
			func(s *v1beta1.InterruptionSpec) { s.Approval = mine("") }, "the drain continues at once"},
		{"hold", append(mixedNode(), stopping(30*time.Minute)), []string{"hold", nodeName, "--for", "2h", "--note", "backup"},
			func(s *v1beta1.InterruptionSpec) { s.Hold = forTwoHours }, "no more pods are evicted until 2026-05-11 10:14 UTC, except each pod at its last call, because the deadline at 08:44:02 UTC is hard"},
		{"hold without end", database(stopping(26 * time.Hour)), []string{"hold", nodeName},
			func(s *v1beta1.InterruptionSpec) { s.Hold = mine("") }, "next      no more pods are evicted until the hold is released\n"},
		{"hold what moves no pod", append(mixedNode(), policyOf(v1beta1.ActionNotify, "*"), stopping(26*time.Hour)), []string{"hold", nodeName},
			func(s *v1beta1.InterruptionSpec) { s.Hold = mine("") }, "the action is Notify, which moves no pods"},
		{"release", database(held), []string{"release", nodeName, "--note", "done"},
			func(s *v1beta1.InterruptionSpec) { s.Hold, s.Released = nil, mine("done") }, "released by carol"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster := fakeCluster(t, withUser("carol"), c.objects...)
			want := recorded(t, cluster)
			c.want(&want)
			r := (&harness{t: t, cluster: cluster}).run(t.Context(), c.args...)
			if r.code != ExitOK || r.err != "" || !strings.Contains(strings.ReplaceAll(r.out, "\n          ", " "), c.says) {
				t.Errorf("exit code %d, %s%s", r.code, r.err, r.out)
			}
			if diff := cmp.Diff(want, recorded(t, cluster)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The controller ignores statements from before status.since, and approvals
// from before a hook failed. Its clock can be ahead of the laptop's.
func TestStatementsWithSlowClock(t *testing.T) {
	ahead := func(d time.Duration) *metav1.MicroTime { m := metav1.NewMicroTime(clock.Add(d)); return &m }
	for name, tc := range map[string]struct {
		change func(*v1beta1.InterruptionStatus)
		want   time.Time
	}{
		"the record was reopened": {func(s *v1beta1.InterruptionStatus) { s.History = recordtest.CompletedBefore(clock.Add(time.Minute)) }, clock.Add(time.Minute + time.Microsecond)},
		"a hook has failed": {func(s *v1beta1.InterruptionStatus) {
			record.EnsureDrain(s).Hooks = []v1beta1.HookStatus{{Name: "demote", State: v1beta1.HookFailed, Try: 3, CompletionTime: ahead(time.Hour)}}
		}, clock.Add(time.Hour + time.Microsecond)},
		"both were before": {func(s *v1beta1.InterruptionStatus) {
			s.History = recordtest.CompletedBefore(clock.Add(-time.Minute))
			record.EnsureDrain(s).Hooks = []v1beta1.HookStatus{{Name: "demote", State: v1beta1.HookFailed, Try: 3, CompletionTime: ahead(-time.Second)}}
		}, clock},
	} {
		t.Run(name, func(t *testing.T) {
			in := stopping(26 * time.Hour)
			tc.change(&in.Status)
			for i := range in.Spec.Notices {
				in.Spec.Notices[i].ReceivedTime = *ahead(2 * time.Hour)
			}
			cluster := fakeCluster(t, withUser("carol"), append(mixedNode(), in)...)
			for _, args := range [][]string{{"approve", nodeName, "--pre-approve"}, {"hold", nodeName, "--for", "2h"}, {"release", nodeName}} {
				if r := (&harness{t: t, cluster: cluster}).run(t.Context(), args...); r.code != ExitOK {
					t.Fatalf("%s: exit code %d, %s", args, r.code, r.err)
				}
				spec := recorded(t, cluster)
				got := map[string]*v1beta1.UserAction{"approve": spec.Approval, "hold": spec.Hold, "release": spec.Released}[args[0]]
				if !got.Time.Time.Equal(tc.want) {
					t.Errorf("%s at %s, want %s", args[0], got.Time, tc.want)
				}
				if got.Until != nil && !got.Until.Time.Equal(tc.want.Add(2*time.Hour).Truncate(time.Second)) {
					t.Errorf("held until %s", got.Until)
				}
			}
		})
	}
}

func TestStatementErrors(t *testing.T) {
	drained, approved := stopping(26*time.Hour), stopping(26*time.Hour)
	drained.Status.Phase = v1beta1.PhaseDrained
	approved.Spec.Approval = say("bob", time.Minute, "")
	over := stopping(26 * time.Hour)
	complete(over, time.Second, 1, 0)
	withdrawn := stopping(26 * time.Hour)
	withdrawn.Spec.Notices[0].Withdrawn = true
	for _, c := range []struct {
		name    string
		objects []client.Object
		args    []string
		code    int
		says    string
	}{
		{"nothing waits", append(mixedNode(), stopping(26*time.Hour)), []string{"approve", nodeName}, ExitFailed,
			"nothing about ip-10-0-0-10.ec2.internal waits for approval (Drain: built-in default for ScheduledChange"},
		{"approved already", database(approved), []string{"approve", nodeName}, ExitFailed, "is already approved by bob 1m ago"},
		{"no interruption", mixedNode(), []string{"approve", nodeName}, ExitFailed, "ip-10-0-0-10.ec2.internal has no interruption in progress, so there is nothing to approve"},
		{"it is over", append(mixedNode(), over), []string{"hold", nodeName}, ExitFailed, "has no interruption in progress, so there is nothing to hold"},
		{"taken back", append(mixedNode(), withdrawn), []string{"hold", nodeName}, ExitFailed, "there is nothing left to do for ip-10-0-0-10.ec2.internal"},
		{"no such node", mixedNode(), []string{"hold", "ip-10-0-0-12.ec2.internal"}, ExitFailed, `node "ip-10-0-0-12.ec2.internal" not found; similar names:`},
		{"empty already", append(mixedNode(), drained), []string{"hold", nodeName}, ExitFailed, "the pods of ip-10-0-0-10.ec2.internal have left already, so there is nothing to hold"},
		{"not held", append(mixedNode(), stopping(26*time.Hour)), []string{"release", nodeName}, ExitFailed, "ip-10-0-0-10.ec2.internal is not held, so there is nothing to release"},
		{"no time", mixedNode(), []string{"hold", nodeName, "--for", "0s"}, ExitUsage, "invalid --for 0s: write a duration such as 2h"},
		{"a long note", mixedNode(), []string{"hold", nodeName, "--note", strings.Repeat("x", 513)}, ExitUsage, "--note has 513 characters: the limit is 512"},
		{"no one", mixedNode(), []string{"approve"}, ExitUsage, "lifeboat approve takes at least one node or instance, or -l SELECTOR"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster := fakeCluster(t, withUser("carol"), c.objects...)
			r := (&harness{t: t, cluster: cluster}).run(t.Context(), c.args...)
			if r.code != c.code || !strings.Contains(r.err, c.says) || r.out != "" {
				t.Errorf("exit code %d, %s%s", r.code, r.err, r.out)
			}
		})
	}
}

// A failure for one node does not affect the others.
func TestStatementsForSeveralNodes(t *testing.T) {
	cluster := fakeCluster(t, withUser("carol"), database(stopping(26*time.Hour))...)
	r := (&harness{t: t, cluster: cluster}).run(t.Context(), "approve", otherNode, nodeName, onPremNode, "-o", "json")
	var all []statementResult
	if err := json.Unmarshal([]byte(r.out), &all); err != nil {
		t.Fatalf("%v in %s", err, r.out)
	}
	if r.code != ExitFailed || len(all) != 1 || all[0].Node != nodeName || all[0].By != "carol" || all[0].Said != "approved" {
		t.Errorf("exit code %d, %+v", r.code, all)
	}
	for _, want := range []string{otherNode + " has no interruption", onPremNode + " has no interruption"} {
		if !strings.Contains(r.err, want) {
			t.Errorf("standard error has no %q: %s", want, r.err)
		}
	}
}

// After a conflicting write, the statement is about the current state.
func TestStatementConflict(t *testing.T) {
	funcs := withUser("carol")
	patches := 0
	funcs.Patch = func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		if patches++; patches == 1 {
			var in v1beta1.Interruption
			if err := c.Get(ctx, client.ObjectKeyFromObject(o), &in); err != nil {
				return err
			}
			in.Spec.Notices = append(in.Spec.Notices, spotNotice("n2", 0))
			if err := c.Update(ctx, &in); err != nil {
				return err
			}
		}
		return c.Patch(ctx, o, p, opts...)
	}
	cluster := fakeCluster(t, funcs, database(stopping(26*time.Hour))...)
	r := (&harness{t: t, cluster: cluster}).run(t.Context(), "hold", nodeName)
	got := recorded(t, cluster)
	if r.code != ExitOK || patches != 2 || len(got.Notices) != 2 || got.Hold == nil || got.Hold.About != "SpotInterruption" {
		t.Errorf("exit code %d after %d patches: %s%+v", r.code, patches, r.err, got)
	}
}

func TestStatementPermissions(t *testing.T) {
	forbidden := func(o client.Object) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: "lifeboat.dev", Resource: "interruptions"}, o.GetName(), errors.New("no"))
	}
	funcs := withUser("carol")
	funcs.Patch = func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
		return forbidden(o)
	}
	h := &harness{t: t, cluster: fakeCluster(t, funcs, database(stopping(26*time.Hour))...)}
	if r := h.run(t.Context(), "approve", nodeName); r.code != ExitFailed || !strings.Contains(r.err, "which the ClusterRole lifeboat-operator has") {
		t.Errorf("exit code %d, %s", r.code, r.err)
	}
	h = &harness{t: t, cluster: fakeCluster(t, withUser(""), database(stopping(26*time.Hour))...)}
	if r := h.run(t.Context(), "approve", nodeName); r.code != ExitFailed || !strings.Contains(r.err, "reading your user name from the cluster: the answer has no name") {
		t.Errorf("exit code %d, %s", r.code, r.err)
	}
}
