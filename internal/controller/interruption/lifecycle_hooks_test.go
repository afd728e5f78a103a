package interruption

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/groupcache"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// stopsIn simulates a kubelet whose pods stop d after the request.
func (g *scaledGroup) stopsIn(d time.Duration) func() {
	return func() {
		for name, at := range g.asked {
			if g.now.Sub(at) >= d {
				g.gone(name)
			}
		}
	}
}

// The node is drained at once. The hook gets heartbeats during the drain and is completed after
// it. The record completes when the node is gone.
func TestTerminationLifecycle(t *testing.T) {
	t.Parallel()
	for _, source := range []string{notice.SourceAutoScaling, notice.SourceQueue} {
		g := withGroup(t, recordOf(terminating(source)), pod("web-1"), pod("web-2"), budget(1))
		g.hold("Terminating:Wait")
		g.run(15*time.Minute, func() {
			g.stopsIn(20 * time.Second)()
			if g.now.Sub(start) >= 12*time.Minute && g.allowed() == 0 {
				g.setBudget(1)
			}
		})
		s := g.answerStatus()
		if len(g.completed) != 1 || s.CompletedTime == nil || g.states[instance] != "Terminating:Proceed" {
			t.Fatalf("%s: answered %v, %+v", source, g.completed, s)
		}
		if n := len(g.beats); n < 6 || n > 9 {
			t.Errorf("%s: %d heartbeats in 13 minutes, of a hook of 5: %v", source, n, g.beats)
		}
		if first := g.beats[0].Sub(start); first > hookTimeout/3 {
			t.Errorf("%s: the first heartbeat came after %s", source, first)
		}
		if want := source == notice.SourceQueue; (s.Hooks[0].Token == token) != want {
			t.Errorf("%s: answered with token %q", source, s.Hooks[0].Token)
		}
		g.remove(g.node())
		g.run(time.Minute, nil)
		in := g.record()
		if in.Status.Phase != v1beta1.PhaseCompleted || record.Drain(&in.Status).PodCounts.Moved != 2 || record.Drain(&in.Status).PodCounts.Lost != 0 {
			t.Errorf("%s: phase %s, pods %+v", source, in.Status.Phase, record.Drain(&in.Status).PodCounts)
		}
		if d := in.Status.Deadline; d == nil || !d.Time.Equal(&metav1.Time{Time: start.Add(time.Hour)}) {
			t.Errorf("%s: deadline %+v", source, d)
		}
	}
}

// An answer with a token belongs to that firing. An answer without one is given only if the
// state is fresh. A firing is not answered once the instance is InService again.
func TestRace05LateCompleteHitsTheNextFiring(t *testing.T) {
	t.Parallel()
	t.Run("another firing of the same hook", func(t *testing.T) {
		g := withGroup(t, recordOf(terminating(notice.SourceQueue)))
		g.hold("Terminating:Wait")
		g.token = "another"
		g.look()
		g.settle(0)
		if len(g.completed) != 0 {
			t.Fatal("another firing was answered")
		}
		next := terminating(notice.SourceQueue)
		next.ID, next.Subject, next.LifecycleHook.Token = "another", "another", "another"
		next.ReceivedTime = metav1.NewMicroTime(g.now.Add(time.Second))
		g.addNotices(next)
		g.run(time.Minute, nil)
		if s := g.answerStatus(); len(g.completed) != 1 || s.Hooks[0].Token != "another" {
			t.Errorf("answered %v: %+v", g.completed, s)
		}
	})
	t.Run("it serves again", func(t *testing.T) {
		g := withGroup(t, recordOf(terminating(notice.SourceQueue)), pod("web-1"), budget(0))
		g.hold("Terminating:Wait")
		g.run(2*time.Minute, nil)
		g.states[instance] = "InService"
		beats := len(g.beats)
		g.look()
		g.setBudget(1)
		g.run(2*time.Minute, g.stopsIn(time.Second))
		if len(g.completed) != 0 || len(g.beats) != beats || g.answerStatus().CompletedTime == nil {
			t.Errorf("answered %v, %d heartbeats: %+v", g.completed, len(g.beats)-beats, g.answerStatus())
		}
	})
	t.Run("the state is stale", func(t *testing.T) {
		g := withGroup(t, recordOf(terminating(notice.SourceAutoScaling)), pod("web-1"), budget(0))
		g.hold("Terminating:Wait")
		g.look()
		g.behind = true
		g.run(150*time.Second, nil)
		g.setBudget(1)
		g.run(30*time.Second, g.stopsIn(time.Second))
		if len(g.completed) != 0 || g.hints == 0 || !strings.Contains(message(g.record()), "could be looked at again") {
			t.Errorf("answered %v with a stale state: %+v", g.completed, g.answerStatus())
		}
		g.behind = false
		g.run(30*time.Second, g.stopsIn(time.Second))
		if len(g.completed) != 1 {
			t.Errorf("answered %v", g.completed)
		}
	})
}

// An instance that is terminated before it was in service, but has a node, is drained like any
// other.
func TestRace16TakenBackWhileJoining(t *testing.T) {
	t.Parallel()
	g := withGroup(t, recordOf(terminating(notice.SourceAutoScaling)), pod("web-1"))
	g.states[instance] = "Pending:Wait"
	g.look()
	g.settle(0)
	if len(g.beats)+len(g.completed) > 0 {
		t.Fatal("a launch hook was taken for one of a termination")
	}
	g.hold("Terminating:Wait")
	g.run(2*time.Minute, g.stopsIn(5*time.Second))
	if len(g.completed) != 1 || g.answerStatus().CompletedTime == nil {
		t.Errorf("answered %v: %+v", g.completed, g.answerStatus())
	}
}

// The node is drained and deleted, then the terminate hook is completed. The record completes,
// and nothing is restored.
func TestRace17BackIntoThePool(t *testing.T) {
	t.Parallel()
	for _, source := range []string{notice.SourceAutoScaling, notice.SourceQueue} {
		n := terminating(source)
		n.InstanceAction = notice.ActionReturn
		g := withGroup(t, recordOf(n), pod("web-1"))
		g.group.Reuse = true
		g.hold("Warmed:Pending:Wait")
		deleted := time.Time{}
		g.run(2*time.Minute, func() {
			g.stopsIn(20 * time.Second)()
			if g.node() == nil && deleted.IsZero() {
				deleted = g.now
			}
			if len(g.completed) > 0 && g.node() != nil {
				t.Fatal("the hook is answered while the node is there")
			}
		})
		in := g.record()
		if deleted.IsZero() || deleted.Sub(start) < 20*time.Second || len(g.completed) != 1 {
			t.Fatalf("%s: deleted after %s, answered %v: %+v", source, deleted.Sub(start), g.completed, in.Status.LifecycleHooks)
		}
		if in.Status.Phase != v1beta1.PhaseCompleted || !happened(in, "went back to the warm pool") || happened(in, "as it was before") {
			t.Errorf("%s: phase %s, %+v", source, in.Status.Phase, in.Status.Timeline)
		}
	}
}

// The instance has come back and registered a new node, while the controller still sees the old state of
// its group. The kubelet registers its node only once, so the new one must stay.
func TestNewNodeOfReturnedInstanceIsNotDeleted(t *testing.T) {
	t.Parallel()
	n := terminating(notice.SourceQueue)
	n.InstanceAction = notice.ActionReturn
	g := withGroup(t, recordOf(n), pod("web-1"))
	g.group.Reuse = true
	g.hold("Warmed:Pending:Wait")
	g.run(2*time.Minute, func() {
		g.stopsIn(20 * time.Second)()
		if len(g.completed) > 0 && !g.behind {
			g.behind = true
			g.launch(instance, "Pending")
			g.boot("a2", instance)
		}
	})
	back := func() *corev1.Node {
		var node corev1.Node
		if err := g.client.Get(t.Context(), client.ObjectKey{Name: "a2"}, &node); err != nil {
			t.Fatalf("the new node: %v; %+v", err, g.record().Status.Timeline)
		}
		return &node
	}
	back()
	g.behind = false
	g.launch(instance, "InService")
	serves := terminating(notice.SourceAutoScaling)
	serves.ID, serves.Withdrawn = "in-service", true
	g.addNotices(serves)
	g.run(2*time.Minute, nil)
	if node := back(); node.Spec.Unschedulable || len(node.Spec.Taints) > 0 {
		t.Errorf("the new node is cordoned: %+v", node.Spec)
	}
	if phase := g.record().Status.Phase; phase != v1beta1.PhaseCancelled {
		t.Errorf("the phase is %s", phase)
	}
}

// A late event must not delete the node of an instance that is InService.
func TestNodeOfServingInstanceIsNotDeleted(t *testing.T) {
	t.Parallel()
	n := terminating(notice.SourceQueue)
	n.InstanceAction = notice.ActionReturn
	g := withGroup(t, recordOf(n))
	g.now = g.now.Add(time.Minute)
	g.look()
	g.run(time.Minute, nil)
	if g.node() == nil || len(g.completed) > 0 {
		t.Errorf("node %v, answered %v", g.node(), g.completed)
	}
}

// Heartbeats stop after the policy's time. Pods have their last call before its end, and the
// hook is completed then.
func TestRace21DrainOutlivesTheHook(t *testing.T) {
	t.Parallel()
	p := &v1beta1.InterruptionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "slow"}, Spec: v1beta1.InterruptionPolicySpec{Rules: []v1beta1.Rule{{
		Kinds: []string{notice.KindAutoScalingTermination}, Action: v1beta1.ActionDrain, DrainTimeout: &metav1.Duration{Duration: 20 * time.Minute},
	}}}}
	for name, test := range map[string]struct {
		objects []client.Object
		stops   time.Duration
		global  time.Duration
		want    time.Duration // when it is answered, at the latest
	}{
		"a budget that never lets go":          {objects: []client.Object{budget(0), p}, stops: 29 * time.Second, want: 20 * time.Minute},
		"pods that never stop":                 {objects: []client.Object{p}, stops: time.Hour, want: 20*time.Minute + 2*time.Second},
		"by default an hour":                   {objects: []client.Object{budget(0)}, stops: 29 * time.Second, want: time.Hour},
		"a hook that cannot be extended":       {objects: []client.Object{budget(0)}, stops: 29 * time.Second, global: 8 * time.Minute, want: 8 * time.Minute},
		"a hook with a changed global timeout": {objects: []client.Object{budget(0), p}, stops: 29 * time.Second, global: 100 * time.Hour, want: 20 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			g := withGroup(t, append(test.objects, recordOf(terminating(notice.SourceQueue)), pod("web-1"))...)
			if test.global > 0 {
				g.group.Hooks[0].Global = test.global
			}
			g.hold("Terminating:Wait")
			at := time.Time{}
			g.run(test.want+5*time.Second, func() {
				g.stopsIn(test.stops)()
				if len(g.completed) > 0 && at.IsZero() {
					at = g.now
				}
			})
			if at.IsZero() || at.Sub(start) > test.want+4*time.Second || at.Sub(start) < test.want-2*time.Minute {
				t.Errorf("answered after %s, want %s: %+v", at.Sub(start), test.want, g.answerStatus())
			}
			if grace := at.Sub(g.asked["web-1"]); grace < 30*time.Second {
				t.Errorf("its pod was asked to stop %s before", grace)
			}
			if most := int(test.want/(hookTimeout/3)) + 1; len(g.beats) > most {
				t.Errorf("%d heartbeats in %s", len(g.beats), test.want)
			}
		})
	}
}

// The drain starts at Terminating, while load balancers deregister the instance. The answer
// waits for Terminating:Wait.
func TestRace22DeregisteringBeforeTheWait(t *testing.T) {
	t.Parallel()
	g := withGroup(t, recordOf(terminating(notice.SourceAutoScaling)), pod("web-1"))
	g.states[instance] = "Terminating"
	g.look()
	g.run(4*time.Minute, g.stopsIn(20*time.Second))
	if asked := g.asked["web-1"].Sub(start); asked > 10*time.Second {
		t.Errorf("the pod was asked to stop after %s", asked)
	}
	in := g.record()
	if len(g.completed) != 0 || in.Status.Phase != v1beta1.PhaseDrained || !strings.Contains(message(in), "has not reached its lifecycle hooks") {
		t.Fatalf("answered %v; %s: %s", g.completed, in.Status.Phase, message(in))
	}
	g.hold("Terminating:Wait")
	g.run(40*time.Second, nil)
	if len(g.completed) != 1 {
		t.Errorf("answered %v: %+v", g.completed, g.answerStatus())
	}
}

// The reclaim sets the deadline. Nothing is answered without Terminating:Wait, and a hook that
// fires meanwhile is answered.
func TestRace23ReclaimPassesTheHookBy(t *testing.T) {
	t.Parallel()
	t.Run("no wait", func(t *testing.T) {
		g := withGroup(t, recordOf(spot(), terminating(notice.SourceAutoScaling)), pod("web-1"))
		g.states[instance] = "Terminating:Proceed"
		g.look()
		g.run(90*time.Second, g.stopsIn(20*time.Second))
		if len(g.completed)+len(g.beats) > 0 || !g.record().Status.Deadline.Time.Equal(&metav1.Time{Time: start.Add(2 * time.Minute)}) {
			t.Errorf("answered %v, %d heartbeats, deadline %v", g.completed, len(g.beats), g.record().Status.Deadline)
		}
	})
	t.Run("the hook fires", func(t *testing.T) {
		g := withGroup(t, recordOf(spot()), pod("web-1"), budget(0))
		g.states[instance] = "Terminating"
		g.look()
		g.run(10*time.Second, nil)
		g.hold("Terminating:Wait")
		g.run(111*time.Second, g.stopsIn(25*time.Second))
		if len(g.completed) != 1 || g.now.Sub(start) > 125*time.Second || !slices.Contains(g.evictions, "web-1") && g.deletions["web-1"] == 0 {
			t.Errorf("answered %v: %+v", g.completed, g.record().Status)
		}
	})
}

// Another controller answers first. A refused answer only causes another read of the state.
func TestRace26TwoAnswerAtOnce(t *testing.T) {
	t.Parallel()
	g := withGroup(t, recordOf(terminating(notice.SourceAutoScaling)), pod("web-1"))
	g.hold("Terminating:Wait")
	g.look()
	g.run(30*time.Second, func() {
		if g.now.Sub(start) == 5*time.Second {
			g.waits = map[string]bool{} // another controller answers; the state is stale
		}
		g.stopsIn(10 * time.Second)()
		if len(g.waits) == 0 && g.now.Sub(start) == 20*time.Second {
			g.proceed()
		}
	})
	if s := g.answerStatus(); len(g.completed) != 0 || s.CompletedTime == nil || s.Tries < 2 {
		t.Errorf("answered %v: %+v", g.completed, s)
	}
}

// Lifeboat answers only its own hooks, and the status names the other hooks that hold the
// instance.
func TestRace27SeveralHooksOnOneTransition(t *testing.T) {
	t.Parallel()
	g := withGroup(t, recordOf(terminating(notice.SourceAutoScaling)), &v1beta1.NodeGroup{
		ObjectMeta: metav1.ObjectMeta{Name: "w"},
		Spec:       v1beta1.NodeGroupSpec{AutoScalingGroup: "workers", Hooks: v1beta1.LifecycleHooks{Terminate: &v1beta1.LifecycleHook{Name: "ours"}}},
	})
	g.group.Hooks = append(g.group.Hooks,
		groupcache.Hook{Name: "ours", Terminating: true, Timeout: hookTimeout, Global: time.Hour},
		groupcache.Hook{Name: "nth", Terminating: true, Timeout: hookTimeout, Global: time.Hour},
		groupcache.Hook{Name: "lifeboat-launch", Timeout: hookTimeout})
	g.hold("Terminating:Wait")
	g.look()
	g.run(time.Minute, nil)
	if !slices.Equal(g.completed, []string{"lifeboat-terminate", "ours"}) || !strings.Contains(g.answerStatus().Message, "hook nth of group workers still holds the instance") {
		t.Fatalf("answered %v: %+v", g.completed, g.answerStatus())
	}
	delete(g.waits, "nth")
	g.proceed()
	g.run(time.Minute, nil)
	if g.answerStatus().CompletedTime == nil || len(g.completed) != 2 {
		t.Errorf("answered %v: %+v", g.completed, g.answerStatus())
	}

	t.Run("none of them", func(t *testing.T) {
		g := withGroup(t, recordOf(terminating(notice.SourceAutoScaling)))
		g.group.Hooks[0].Name = "nth"
		g.hold("Terminating:Wait")
		g.look()
		g.run(time.Minute, nil)
		if len(g.completed)+len(g.beats) > 0 || !strings.Contains(g.answerStatus().Message, "hook nth of group workers is not Lifeboat's to answer") {
			t.Errorf("answered %v: %+v", g.completed, g.answerStatus())
		}
	})
}

// An instance that returns from the warm pool registers a new node, which must not be deleted.
func TestRace30TheSameInstanceAgain(t *testing.T) {
	t.Parallel()
	n := terminating(notice.SourceQueue)
	n.InstanceAction = notice.ActionReturn
	g := withGroup(t, recordOf(n))
	g.hold("Warmed:Pending:Wait")
	g.look()
	g.run(time.Minute, nil)
	if g.node() != nil || len(g.completed) != 1 {
		t.Fatalf("answered %v", g.completed)
	}
	g.states[instance] = "InService"
	g.boot("a2", instance)
	g.look()
	g.run(5*time.Minute, nil)
	if n := g.node(); n == nil || n.Spec.Unschedulable || len(n.Spec.Taints) > 0 {
		t.Errorf("the new node is %+v", n)
	}
}

// The controller is down for some minutes, and is killed at every write. After each start it
// first sends a heartbeat, and it completes the hook once.
func TestRace32ControllerIsAway(t *testing.T) {
	t.Parallel()
	for life := range 14 {
		for _, away := range []time.Duration{0, 4 * time.Minute} {
			g := withGroup(t, recordOf(terminating(notice.SourceQueue)), pod("web-1"))
			g.hold("Terminating:Wait")
			g.look()
			n := life
			g.lives = &n
			for range 120 {
				g.stopsIn(20 * time.Second)()
				if g.pass(2*time.Second) != nil && g.lives != nil {
					g.now = g.now.Add(away)
					g.restart()
				}
				if g.now.Sub(start).Truncate(time.Second)%(10*time.Second) == 0 {
					g.look()
				}
			}
			s := g.answerStatus()
			if g.lives != nil && *g.lives < 0 {
				t.Fatalf("life %d: it is still dead", life)
			}
			if len(g.completed) != 1 || s.CompletedTime == nil || len(g.beats) > 4 {
				t.Errorf("life %d, away %s: answered %v, %d heartbeats: %+v", life, away, g.completed, len(g.beats), s)
			}
		}
	}
}

// A group may retain instances whose hook was abandoned. If the time is over there, Lifeboat
// does not answer a hook whose default is ABANDON, and overrides no budget. If the drain ends in
// time, it continues.
func TestRace35AbandonChosenByTimeout(t *testing.T) {
	t.Parallel()
	retain := true
	ng := &v1beta1.NodeGroup{ObjectMeta: metav1.ObjectMeta{Name: "workers"}, Spec: v1beta1.NodeGroupSpec{RetainUndrained: &retain}}
	for name, test := range map[string]struct {
		abandons, drains bool
		want             int
	}{
		"left to ABANDON":             {abandons: true},
		"drained in time":             {abandons: true, drains: true, want: 1},
		"its default is CONTINUE":     {want: 1},
		"drained, default of the API": {drains: true, want: 1},
	} {
		g := withGroup(t, recordOf(terminating(notice.SourceQueue)), pod("web-1"), budget(0), ng.DeepCopy())
		g.group.Hooks[0].Abandons = test.abandons
		g.hold("Terminating:Wait")
		g.look()
		g.run(time.Hour+time.Minute, func() {
			g.stopsIn(29 * time.Second)()
			if test.drains && g.now.Sub(start) >= 30*time.Minute && g.allowed() == 0 {
				g.setBudget(1)
			}
		})
		if len(g.completed) != test.want {
			t.Errorf("%s: answered %v: %+v", name, g.completed, g.answerStatus())
		}
		if test.want > 0 {
			continue
		}
		if len(g.deletions) > 0 || !strings.Contains(g.answerStatus().Message, "left to its default result ABANDON") || g.now.After(g.expires) {
			t.Errorf("%s: deleted %v, %+v", name, g.deletions, g.answerStatus())
		}
		g.states[instance] = "Terminating:Retained"
		g.setBudget(1)
		g.run(5*time.Minute, g.stopsIn(time.Second))
		if len(g.completed) != 0 || len(g.ended) == 0 {
			t.Errorf("%s: answered %v, terminated %v: %+v", name, g.completed, g.ended, g.record().Status.LifecycleHooks)
		}
	}
}

func TestHooksThatAreNotCompleted(t *testing.T) {
	t.Parallel()
	drill := terminating(notice.SourceQueue)
	drill.Drill = true
	rule := func(a v1beta1.Action) *v1beta1.InterruptionPolicy {
		return &v1beta1.InterruptionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1beta1.InterruptionPolicySpec{Rules: []v1beta1.Rule{{Kinds: []string{"*"}, Action: a}}}}
	}
	withdrawn := terminating(notice.SourceAutoScaling)
	withdrawn.Withdrawn = true
	for name, test := range map[string]struct {
		notice  v1beta1.Notice
		objects []client.Object
		state   string
		says    string
	}{
		"in a drill":                {notice: drill, state: "InService"},
		"where policy says Ignore":  {notice: terminating(notice.SourceQueue), objects: []client.Object{rule(v1beta1.ActionIgnore)}, state: "Terminating:Wait", says: "times out without an answer, because the policy says Ignore"},
		"where policy says Notify":  {notice: terminating(notice.SourceQueue), objects: []client.Object{rule(v1beta1.ActionNotify)}, state: "Terminating:Wait", says: "times out without an answer, because the policy says Notify"},
		"where policy says Cordon":  {notice: terminating(notice.SourceQueue), objects: []client.Object{rule(v1beta1.ActionCordon)}, state: "Terminating:Wait", says: "times out without an answer, because the policy says Cordon"},
		"once it serves again":      {notice: withdrawn, state: "InService"},
		"for an instance that left": {notice: terminating(notice.SourceAutoScaling), state: ""},
	} {
		g := withGroup(t, append(test.objects, recordOf(test.notice))...)
		if g.states[instance] = test.state; test.state == "" {
			delete(g.states, instance)
		} else if test.state == "Terminating:Wait" {
			g.hold(test.state)
		}
		g.now = g.now.Add(time.Second)
		g.look()
		g.run(4*time.Minute, nil)
		if len(g.completed)+len(g.beats) > 0 || !strings.Contains(g.answerStatus().Message, test.says) {
			t.Errorf("%s: answered %v, %d heartbeats, %+v", name, g.completed, len(g.beats), g.answerStatus())
		}
	}
}

// A missing permission to send heartbeats is reported, and the pods have their last call before
// the hook times out.
func TestHookCompletionErrors(t *testing.T) {
	t.Parallel()
	g := withGroup(t, recordOf(terminating(notice.SourceQueue)), pod("web-1"), budget(0))
	g.hold("Terminating:Wait")
	g.look()
	g.refuse = &cloud.DeniedError{Err: fmt.Errorf("AccessDenied"), Fix: "allow autoscaling:RecordLifecycleActionHeartbeat"}
	g.run(hookTimeout-time.Second, g.stopsIn(29*time.Second))
	if _, asked := g.asked["web-1"]; !asked || g.deletions["web-1"] == 0 {
		t.Errorf("the pod was not asked to stop before the hook's time is out: %+v", g.record().Status)
	}
	if s := g.answerStatus(); !strings.Contains(s.Message, "allow autoscaling:RecordLifecycleActionHeartbeat") || s.EndTime == nil {
		t.Errorf("%+v", s)
	}
}

// A person grants the permission while the hook holds the instance: the wait goes on.
func TestHookIsExtendedOncePermissionIsGranted(t *testing.T) {
	t.Parallel()
	g := withGroup(t, recordOf(terminating(notice.SourceQueue)), pod("web-1"), budget(0))
	g.hold("Terminating:Wait")
	g.look()
	g.refuse = &cloud.DeniedError{Err: fmt.Errorf("AccessDenied"), Fix: "allow autoscaling:RecordLifecycleActionHeartbeat"}
	g.run(hookTimeout/2, nil)
	if g.refusedCalls == 0 || len(g.beats) > 0 {
		t.Fatalf("%d calls were refused, %d heartbeats", g.refusedCalls, len(g.beats))
	}
	g.refuse = nil
	g.run(30*time.Minute, nil)
	if _, asked := g.asked["web-1"]; asked || len(g.beats) < 5 || len(g.completed) > 0 {
		t.Errorf("the pod was asked %t, %d heartbeats, answered %v: %+v", asked, len(g.beats), g.completed, g.answerStatus())
	}
	if d := g.record().Status.Deadline; d == nil || !d.Time.Time.Equal(start.Add(time.Hour)) {
		t.Errorf("deadline %+v", d)
	}
}

func happened(in *v1beta1.Interruption, text string) bool {
	return slices.ContainsFunc(in.Status.Timeline, func(e v1beta1.TimelineEntry) bool { return strings.Contains(e.Message, text) })
}

func message(in *v1beta1.Interruption) string {
	for _, c := range in.Status.Conditions {
		if c.Type == v1beta1.ConditionReady {
			return c.Message
		}
	}
	return ""
}
