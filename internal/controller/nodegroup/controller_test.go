package nodegroup

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
)

func TestGroupIsCreatedThenItsPool(t *testing.T) {
	t.Parallel()
	w := newWorld(t, declared(func(g *v1beta1.NodeGroup) { g.Spec.WarmPool = &v1beta1.WarmPool{MinSize: 2} }))
	g := w.rest()
	if diff := cmp.Diff([]string{"create group", "put warm pool"}, w.steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	wants(t, g, v1beta1.ConditionReady, isTrue, reasonLookedAt, "")
	wants(t, g, v1beta1.ConditionSynced, isTrue, reasonInSync, "matches the spec")
	if w.hints == 0 {
		t.Error("the watch did not get the changed hooks")
	}
	emitted := w.newEvents()
	if len(emitted) != 2 || !strings.HasPrefix(emitted[0], "Normal CreateGroup create group: ") || !strings.HasPrefix(emitted[1], "Normal PutWarmPool ") {
		t.Errorf("events: %q", emitted)
	}
}

func TestObservedGroupIsNotTouched(t *testing.T) {
	t.Parallel()
	w := newWorld(t, declared(manage(v1beta1.ManageNothing)))
	w.at = healthy()
	w.at.Hooks = nil
	g := w.rest()
	wants(t, g, v1beta1.ConditionFound, isTrue, reasonThere, "")
	wants(t, g, v1beta1.ConditionSynced, isTrue, reasonObserved, "Lifeboat does not change the group")
	wants(t, g, v1beta1.ConditionHooksReady, isFalse, reasonWrong, "To fix: set management: Hooks so that Lifeboat sets it; or by hand: `aws autoscaling put-lifecycle-hook")
	wants(t, g, v1beta1.ConditionReady, isFalse, reasonWrong, "no launch hook")
	if len(w.steps) != 0 || len(g.Finalizers) != 0 {
		t.Errorf("did %v; finalizers %v", w.steps, g.Finalizers)
	}
	if g.Status.Desired != 1 || g.Status.Instances.InService != 1 || g.Status.ARN != "arn:workers" || len(g.Status.Findings) < 2 || g.Status.Findings[0].Fix == "" {
		t.Errorf("%+v", g.Status)
	}
}

func TestMissingGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, declared(manage(v1beta1.ManageHooks)))
	g := w.rest()
	wants(t, g, v1beta1.ConditionFound, isFalse, reasonMissing, "To fix: correct spec.autoScalingGroup")
	wants(t, g, v1beta1.ConditionReady, isFalse, reasonMissing, "")
	if len(w.steps) != 0 {
		t.Errorf("did %v", w.steps)
	}
	// A new group is observed soon.
	w.at = healthy()
	w.now = w.now.Add(patience)
	wants(t, w.rest(), v1beta1.ConditionReady, isTrue, reasonLookedAt, "")
}

func TestStatusIsWrittenOnChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t, declared())
	w.at = healthy()
	w.rest()
	w.writes.Store(0)
	for range 20 {
		w.now = w.now.Add(30 * time.Second)
		w.watch()
		w.pass()
	}
	if w.writes.Load() != 0 {
		t.Errorf("%d writes, and nothing changed", w.writes.Load())
	}
	w.at.Instances, w.now = append(w.at.Instances, member("i-2", "Pending:Wait")), w.now.Add(time.Second)
	since := metav1.NewTime(w.now)
	w.actions = []v1beta1.LifecycleAction{{InstanceID: "i-2", State: "Pending:Wait", Hook: "lifeboat-launch", Since: since}}
	w.watch()
	w.pass()
	if g := w.object(); w.writes.Load() != 1 || g.Status.PendingActions != 1 || g.Status.Instances.Joining != 1 || len(g.Status.Actions) != 1 {
		t.Errorf("%d writes, %+v", w.writes.Load(), g.Status)
	}
	// A heartbeat every ten seconds, for ten minutes.
	w.writes.Store(0)
	for range 60 {
		w.now = w.now.Add(10 * time.Second)
		beat := metav1.NewTime(w.now)
		w.actions[0].LastHeartbeat, w.actions[0].Expires = &beat, &beat
		w.watch()
		w.pass()
	}
	if w.writes.Load() > 10 || w.writes.Load() < 9 {
		t.Errorf("%d writes for heartbeats of ten minutes", w.writes.Load())
	}
	if !w.object().Status.Actions[0].LastHeartbeat.Time.After(w.now.Add(-2 * time.Minute)) {
		t.Errorf("the heartbeat that stands there is of %s, now it is %s", w.object().Status.Actions[0].LastHeartbeat, w.now)
	}
}

func TestAWSIsCalledRarely(t *testing.T) {
	t.Parallel()
	w := newWorld(t, declared())
	w.at = healthy()
	w.rest()
	w.looks = 0
	for n := range 40 { // twenty minutes, with an instance that comes and goes
		w.now = w.now.Add(30 * time.Second)
		w.at.Instances = []nodegroup.Instance{member("i-1", "InService"), member("i-2", []string{"Pending", "Terminating"}[n%2])}
		w.watch()
		w.pass()
	}
	if w.looks > 5 {
		t.Errorf("%d looks in twenty minutes", w.looks)
	}
	// A difference in the watch triggers a direct read.
	w.looks = 0
	w.at.Hooks = w.at.Hooks[1:]
	w.now = w.now.Add(30 * time.Second)
	w.watch()
	w.rest()
	if !slices.Contains(w.steps, "put hook lifeboat-launch") {
		t.Errorf("the deleted hook was not created again: %v", w.steps)
	}
}

func TestAWSErrorsAreReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t, declared())
	w.at = healthy()
	w.at.Hooks = nil
	w.actErr = &cloud.DeniedError{Err: errors.New("AccessDenied: no"), Fix: "allow autoscaling:PutLifecycleHook"}
	if again := w.pass(); again.RequeueAfter != patience {
		t.Errorf("asked again after %s", again.RequeueAfter)
	}
	wants(t, w.object(), v1beta1.ConditionSynced, isFalse, reasonDenied, "allow autoscaling:PutLifecycleHook")
	w.actErr = cloud.ErrBusy
	w.pass()
	wants(t, w.object(), v1beta1.ConditionSynced, isFalse, reasonBusy, "retrying soon: ")
	w.actErr = nil
	wants(t, w.rest(), v1beta1.ConditionReady, isTrue, reasonLookedAt, "")

	// Known data stay in status while AWS does not respond.
	w.lookErr, w.now = errors.New("no route to host"), w.now.Add(readEvery)
	w.pass()
	wants(t, w.object(), v1beta1.ConditionFound, isTrue, reasonThere, "no route to host")
	w.start()
	w.pass()
	wants(t, w.object(), v1beta1.ConditionFound, isUnknown, reasonUnread, "no route to host")
	if w.object().Status.Desired != 1 {
		t.Error("what was known was forgotten")
	}
}

// A plan from old sizes could have AWS terminate instances that serve.
func TestFailedReadChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, declared())
	w.at = healthy()
	w.rest()
	w.steps = nil
	changed, smaller := w.object(), int32(3)
	changed.Spec.MaxSize = &smaller
	changed.Generation++
	if err := w.client.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	w.lookErr, w.now = cloud.ErrBusy, w.now.Add(patience)
	w.pass()
	if len(w.steps) > 0 {
		t.Errorf("after a failed read: %v", w.steps)
	}
	w.lookErr, w.now = nil, w.now.Add(patience)
	if w.rest(); len(w.steps) == 0 {
		t.Error("no steps after a read")
	}
}

// A tool that reverts Lifeboat's changes must not cause a storm of calls.
func TestRevertedChangesAreRetriedRarely(t *testing.T) {
	t.Parallel()
	w := newWorld(t, declared())
	w.at, w.idle = healthy(), true
	w.at.Hooks = nil
	for end := w.now.Add(20 * time.Minute); w.now.Before(end); {
		w.now = w.now.Add(max(w.pass().RequeueAfter, time.Second))
	}
	if len(w.steps) > 30 { // two hooks each time
		t.Errorf("%d steps in twenty minutes", len(w.steps))
	}
	wants(t, w.object(), v1beta1.ConditionSynced, isFalse, reasonChanging, "check whether another tool")
}

func TestTwoObjectsForOneGroup(t *testing.T) {
	t.Parallel()
	other := declared(func(g *v1beta1.NodeGroup) {
		g.Name, g.Spec.AutoScalingGroup, g.CreationTimestamp = "elder", "workers", metav1.NewTime(start.Add(-2*time.Hour))
	})
	w := newWorld(t, declared(), other)
	w.at = healthy()
	w.at.Hooks = nil
	g := w.rest()
	wants(t, g, v1beta1.ConditionReady, isFalse, reasonShared, "NodeGroup elder already manages Auto Scaling group workers: delete one of the two")
	if len(w.steps) != 0 {
		t.Errorf("did %v", w.steps)
	}
}

func TestNodesAreLabelled(t *testing.T) {
	t.Parallel()
	node := func(name, id, label string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: "aws:///eu-west-1a/" + id}}
		if label != "" {
			n.Labels = map[string]string{v1beta1.LabelNodeGroup: label}
		}
		return n
	}
	w := newWorld(t, declared(), node("a", "i-1", ""), node("b", "i-2", "by-hand"), node("c", "i-3", ""), node("d", "i-4", ""))
	w.at = healthy()
	w.at.Instances = []nodegroup.Instance{member("i-1", "InService"), member("i-2", "InService"), member("i-3", "Warmed:Stopped"), member("i-4", "Pending:Wait")}
	w.rest()
	for name, want := range map[string]string{"a": "workers", "b": "by-hand", "c": "", "d": "workers"} {
		var n corev1.Node
		if err := w.client.Get(t.Context(), client.ObjectKey{Name: name}, &n); err != nil {
			t.Fatal(err)
		}
		if got := n.Labels[v1beta1.LabelNodeGroup]; got != want {
			t.Errorf("node %s: label %q, want %q", name, got, want)
		}
	}
	w.watch()
	if got := w.loop.ofNode(t.Context(), node("e", "i-1", "")); len(got) != 1 || got[0].Name != "workers" {
		t.Errorf("a new node of the group wakes %v", got)
	}
}

func TestCountsAreUnknownBeforeFirstRead(t *testing.T) {
	t.Parallel()
	g := declared()
	g.Status.Actions = []v1beta1.LifecycleAction{{InstanceID: "i-2", State: "Pending:Wait", Since: metav1.NewTime(start)}}
	g.Status.ConsecutiveFailures = 2
	w := newWorld(t, g)
	w.at, w.seeded = healthy(), false
	if s := w.rest().Status; len(s.Actions) != 1 || s.ConsecutiveFailures != 2 {
		t.Errorf("what the last leader wrote down is gone: %+v", s)
	}
	w.seeded, w.failed, w.boots = true, 3, &v1beta1.BootTimes{Count: 1, LastSeconds: 60, LongestSeconds: 700}
	w.pass()
	s := w.object().Status
	if len(s.Actions) != 0 || s.ConsecutiveFailures != 3 || s.Boots.LongestSeconds != 700 || len(s.Failures) != 1 {
		t.Errorf("%+v", s)
	}
	wants(t, w.object(), v1beta1.ConditionReady, isFalse, reasonBroken, "the last 3 launches failed")
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	w := newWorld(t, declared())
	w.at = healthy()
	w.at.Instances = append(w.at.Instances, member("i-2", "Pending:Wait"))
	w.actions = []v1beta1.LifecycleAction{{InstanceID: "i-2", State: "Pending:Wait", Since: metav1.NewTime(start)}}
	w.rest()
	w.now = start.Add(90 * time.Second)
	want := `
# HELP lifeboat_nodegroup_oldest_pending_action_seconds For how long the oldest pending action of a node group has held its instance; 0 where there is none.
# TYPE lifeboat_nodegroup_oldest_pending_action_seconds gauge
lifeboat_nodegroup_oldest_pending_action_seconds{nodegroup="workers"} 90
# HELP lifeboat_nodegroup_pending_actions Instances of a node group that a lifecycle hook holds.
# TYPE lifeboat_nodegroup_pending_actions gauge
lifeboat_nodegroup_pending_actions{nodegroup="workers"} 1
`
	if err := testutil.CollectAndCompare(w.loop, strings.NewReader(want), "lifeboat_nodegroup_oldest_pending_action_seconds", "lifeboat_nodegroup_pending_actions"); err != nil {
		t.Error(err)
	}
	// The instance is in service, and the tracker has read the group before that.
	w.at.Instances[len(w.at.Instances)-1] = member("i-2", "InService")
	for _, seeded := range []bool{false, true} {
		w.seeded, w.now = seeded, w.now.Add(time.Second)
		w.watch()
		w.rest()
		if err := testutil.CollectAndCompare(w.loop, strings.NewReader(strings.NewReplacer("} 90", "} 0", "} 1", "} 0").Replace(want)),
			"lifeboat_nodegroup_oldest_pending_action_seconds", "lifeboat_nodegroup_pending_actions"); err != nil {
			t.Errorf("tracker seeded %v: %v", seeded, err)
		}
	}
	if n := testutil.CollectAndCount(w.loop, "lifeboat_nodegroup_instances"); n != 7 {
		t.Errorf("%d series of instances", n)
	}
	if err := w.client.Delete(t.Context(), w.object()); err != nil {
		t.Fatal(err)
	}
	w.pass()
	if n := testutil.CollectAndCount(w.loop); n != 0 {
		t.Errorf("%d series of a group that no one looks after any more", n)
	}
}
