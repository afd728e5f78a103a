package interruption

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/membership"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

const newInstance = "i-0aaaaaaaaaaaaaaaa"

func notInService() corev1.Taint {
	return corev1.Taint{Key: v1beta1.TaintNotInService, Effect: corev1.TaintEffectNoSchedule}
}

func (g *scaledGroup) replaces() v1beta1.ReplacementStatus {
	g.t.Helper()
	if s := record.Drain(&g.record().Status).Replacement; s != nil {
		return *s
	}
	return v1beta1.ReplacementStatus{}
}

// untaint removes the taints of a node.
func (g *scaledGroup) untaint(name string) {
	g.t.Helper()
	var n corev1.Node
	if err := g.client.Get(g.t.Context(), types.NamespacedName{Name: name}, &n); err != nil {
		g.t.Fatal(err)
	}
	n.Spec.Taints = nil
	if err := g.client.Update(g.t.Context(), &n); err != nil {
		g.t.Fatal(err)
	}
}

// The instance is detached from its group. Its pods wait until another instance is in service,
// its node is Ready and its startup taint is gone. Lifeboat terminates the instance once they
// have left.
func TestGroupLaunchesReplacement(t *testing.T) {
	t.Parallel()
	g := withGroup(t, recordOf(spot()), pod("web-1"))
	g.launch("i-0bbbbbbbbbbbbbbbb", "Pending") // for a reason of its own
	g.look()
	g.run(5*time.Second, nil)
	if s := g.replaces(); len(g.detached) != 1 || s.Phase != v1beta1.ReplacementOrdered || s.DetachTime == nil || len(s.PreexistingInstanceIDs) != 1 {
		t.Fatalf("taken out at %v: %+v", g.detached, s)
	}
	g.launch(newInstance, "Pending")
	g.states["i-0bbbbbbbbbbbbbbbb"] = "InService"
	g.boot("apart", "i-0bbbbbbbbbbbbbbbb")
	g.run(10*time.Second, nil)
	if s := g.replaces(); s.Phase != v1beta1.ReplacementLaunched || s.InstanceID != newInstance {
		t.Fatalf("%+v", s)
	}
	g.boot("new", newInstance, notInService())
	g.run(10*time.Second, nil)
	g.states[newInstance] = "InService"
	g.run(10*time.Second, nil)
	if s := g.replaces(); s.Phase != v1beta1.ReplacementLaunched || len(g.asked) > 0 {
		t.Fatalf("pods %v were asked to stop while the replacement has its startup taint: %+v", g.asked, s)
	}
	g.untaint("new")
	g.run(40*time.Second, g.stopsIn(20*time.Second))
	in := g.record()
	if s := g.replaces(); s.Phase != v1beta1.ReplacementReady || s.NodeName != "new" || record.Drain(&in.Status).PodCounts.Moved != 1 {
		t.Fatalf("%+v, pods %+v", s, record.Drain(&in.Status).PodCounts)
	}
	if len(g.ended) != 1 || len(g.detached) != 1 {
		t.Errorf("terminated %v, taken out at %v", g.ended, g.detached)
	}
	for _, reason := range []string{v1beta1.ReasonReplacementOrdered, v1beta1.ReasonDetached, v1beta1.ReasonReplacementReady, v1beta1.ReasonTerminated} {
		found := false
		for _, e := range in.Status.Timeline {
			found = found || e.Reason == reason
		}
		if !found {
			t.Errorf("the timeline has no %s: %+v", reason, in.Status.Timeline)
		}
	}
}

// An instance that Lifeboat terminates before its planned change registers no node again.
func TestTerminatedInstanceAwaitsNoPlannedChange(t *testing.T) {
	t.Parallel()
	n := planned("h1", notice.ActionStop, start.Add(3*time.Hour))
	n.Source = notice.SourceEC2
	g := withGroup(t, recordOf(n), pod("web-1"))
	g.run(2*time.Hour, nil)
	g.launch(newInstance, "InService")
	g.boot("new", newInstance)
	g.run(time.Minute, g.stopsIn(20*time.Second))
	if len(g.ended) != 1 || len(g.detached) != 1 {
		t.Fatalf("terminated %v, taken out at %v", g.ended, g.detached)
	}
	g.ec2 = map[string]cloud.Instance{instance: {State: "terminated"}}
	g.remove(g.node())
	g.run(3*time.Minute, nil)
	if got := g.record().Status; got.Phase != v1beta1.PhaseCompleted || len(g.ended) != 1 {
		t.Errorf("phase %s, terminated %v", got.Phase, g.ended)
	}
}

// The group launches no replacement.
func TestPodsLeaveByLastCall(t *testing.T) {
	t.Parallel()
	g := withGroup(t, recordOf(spot()), pod("web-1"))
	g.run(2*time.Minute, g.stopsIn(29*time.Second))
	if at := g.asked["web-1"].Sub(start); at < 75*time.Second || at > 80*time.Second || len(g.ended) == 0 {
		t.Errorf("asked after %s, terminated %v", at, g.ended)
	}
}

// The reason is reported, and no pod waits.
func TestDetachPreconditions(t *testing.T) {
	t.Parallel()
	reboot := spot()
	reboot.Kind, reboot.InstanceAction, reboot.Deadline = notice.KindScheduledChange, notice.ActionReboot, notice.At(start.Add(30*time.Minute), v1beta1.DeadlineSoft)
	drill := spot()
	drill.Drill = true
	before := &v1beta1.InterruptionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1beta1.InterruptionPolicySpec{Rules: []v1beta1.Rule{{
		Kinds: []string{"*"}, Action: v1beta1.ActionDrain, Replacement: v1beta1.ReplacementBefore,
	}}}}
	for want, test := range map[string]struct {
		notice v1beta1.Notice
		is     func(*scaledGroup)
	}{
		replacement.ReasonLaunchSuspended: {spot(), func(g *scaledGroup) { g.group.Suspended = []string{"AZRebalance", "Launch"} }},
		replacement.ReasonOperator:        {spot(), func(g *scaledGroup) { g.group.Operator = "EKS" }},
		replacement.ReasonNotInService:    {spot(), func(g *scaledGroup) { g.states[instance] = "Standby" }},
		replacement.ReasonGroupReplaces:   {terminating(notice.SourceAutoScaling), func(g *scaledGroup) { g.hold("Terminating:Wait") }},
		replacement.ReasonSurvives:        {reboot, func(*scaledGroup) {}},
		replacement.ReasonDrill:           {drill, func(*scaledGroup) {}},
		replacement.ReasonNoCloud:         {spot(), func(g *scaledGroup) { g.loop.Cloud = nil }},
		replacement.ReasonNoGroup:         {spot(), func(g *scaledGroup) { delete(g.states, instance); g.loop.Claims = nil }},
		replacement.ReasonRefused: {spot(), func(g *scaledGroup) {
			g.refuse = &cloud.DeniedError{Err: errors.New("AccessDenied"), Fix: "allow autoscaling:DetachInstances"}
		}},
	} {
		g := withGroup(t, recordOf(test.notice), pod("web-1"), before.DeepCopy())
		test.is(g)
		g.look()
		g.run(65*time.Second, nil)
		s := g.replaces()
		if s.Reason != want || s.Phase != v1beta1.NoReplacement || len(g.detached) > 0 {
			t.Errorf("%s: taken out at %v: %+v", want, g.detached, s)
		}
		if _, asked := g.asked["web-1"]; !asked {
			t.Errorf("%s: the pod waits: %+v", want, record.Pending(record.Drain(&g.record().Status)))
		}
		if want == replacement.ReasonRefused && !strings.Contains(s.Message, "allow autoscaling:DetachInstances") {
			t.Error(s.Message)
		}
	}
}

// A detached instance that Lifeboat may not terminate would run on without a group. EC2 ends an
// interrupted one within two minutes, so the permission is not checked for it.
func TestNoDetachWithoutPermissionToTerminate(t *testing.T) {
	t.Parallel()
	retired := spot()
	retired.Kind, retired.Source, retired.Deadline = notice.KindScheduledChange, notice.SourceEC2, notice.At(start.Add(30*time.Minute), v1beta1.DeadlineSoft)
	before := &v1beta1.InterruptionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1beta1.InterruptionPolicySpec{Rules: []v1beta1.Rule{{
		Kinds: []string{"*"}, Action: v1beta1.ActionDrain, Replacement: v1beta1.ReplacementBefore,
	}}}}
	denied := &cloud.DeniedError{Err: errors.New("UnauthorizedOperation"), Fix: "allow ec2:TerminateInstances"}
	for name, tc := range map[string]struct {
		notice          v1beta1.Notice
		says            error
		detached, tried int
	}{
		"it may":                 {retired, nil, 1, 1},
		"it may not":             {retired, denied, 0, 1},
		"the check is throttled": {retired, fmt.Errorf("RequestLimitExceeded: %w", cloud.ErrBusy), 1, 1},
		"EC2 ends it itself":     {spot(), denied, 1, 0},
	} {
		g := withGroup(t, recordOf(tc.notice), pod("web-1"), before.DeepCopy())
		g.mayNot = tc.says
		g.run(12*time.Second, nil)
		s := g.replaces()
		if len(g.detached) != tc.detached || len(g.tried) != tc.tried {
			t.Errorf("%s: taken out %d times, asked of %v: %+v", name, len(g.detached), g.tried, s)
		}
		if refused := s.Reason == replacement.ReasonRefused && strings.Contains(s.Message, "allow ec2:TerminateInstances"); refused != (tc.detached == 0) {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestThrottledDetachIsRetried(t *testing.T) {
	t.Parallel()
	g := withGroup(t, recordOf(spot()), pod("web-1"))
	g.refuse = fmt.Errorf("Throttling: %w", cloud.ErrBusy)
	g.run(12*time.Second, nil)
	if s := g.replaces(); len(g.detached) != 0 || s.Phase != v1beta1.ReplacementOrdered || s.DetachTime != nil {
		t.Fatalf("%+v", s)
	}
	g.refuse = nil
	g.run(20*time.Second, nil)
	if s := g.replaces(); len(g.detached) != 1 || s.DetachTime == nil {
		t.Errorf("%+v", s)
	}
}

func TestReplacementIsClaimedOnce(t *testing.T) {
	t.Parallel()
	other := recordOf(spot())
	other.Name, other.Spec.InstanceID, other.Spec.NodeName = "i-0ffffffffffffffff", "i-0ffffffffffffffff", "z"
	record.EnsureDrain(&other.Status).Replacement = &v1beta1.ReplacementStatus{Phase: v1beta1.ReplacementLaunched, Group: "workers", InstanceID: newInstance}
	g := withGroup(t, recordOf(spot()), other, pod("web-1"))
	g.run(3*time.Second, nil)
	g.launch(newInstance, "Pending")
	g.run(10*time.Second, nil)
	if s := g.replaces(); s.Phase != v1beta1.ReplacementOrdered || s.InstanceID != "" {
		t.Fatalf("it uses another's replacement: %+v", s)
	}
	g.launch("i-0cccccccccccccccc", "Pending")
	g.run(10*time.Second, nil)
	if s := g.replaces(); s.InstanceID != "i-0cccccccccccccccc" {
		t.Fatalf("%+v", s)
	}
	delete(g.states, "i-0cccccccccccccccc") // its launch hook is abandoned
	g.run(10*time.Second, nil)
	g.launch("i-0dddddddddddddddd", "Pending")
	g.run(10*time.Second, nil)
	if s := g.replaces(); s.InstanceID != "i-0dddddddddddddddd" || len(g.detached) != 1 {
		t.Fatalf("%+v", s)
	}
}

// After the detach the instance is drained and terminated even if the reason is withdrawn, but
// without overrides. The group has already launched another.
func TestNoticeWithdrawnAfterDetach(t *testing.T) {
	t.Parallel()
	planned := spot()
	planned.Kind, planned.Subject, planned.InstanceAction, planned.Source = notice.KindScheduledChange, "arn", notice.ActionStop, notice.SourceEC2
	planned.Deadline = notice.At(start.Add(30*time.Minute), v1beta1.DeadlineSoft)
	for name, change := range map[string]func(*scaledGroup){
		"the change is cancelled": func(g *scaledGroup) {
			n := *planned.DeepCopy()
			n.ID, n.Withdrawn, n.Time = "over", true, metav1.NewTime(g.now)
			n.ReceivedTime = metav1.NewMicroTime(g.now)
			g.addNotices(n)
		},
		"the change is moved by days": func(g *scaledGroup) {
			n := *planned.DeepCopy()
			n.ID, n.Time, n.Deadline = "later", metav1.NewTime(g.now), notice.At(g.now.AddDate(0, 0, 5), v1beta1.DeadlineSoft)
			n.ReceivedTime = metav1.NewMicroTime(g.now)
			g.addNotices(n)
		},
		"policy says Ignore now": func(g *scaledGroup) {
			p := &v1beta1.InterruptionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1beta1.InterruptionPolicySpec{Rules: []v1beta1.Rule{{Kinds: []string{"*"}, Action: v1beta1.ActionIgnore}}}}
			if err := g.client.Create(g.t.Context(), p); err != nil {
				g.t.Fatal(err)
			}
		},
	} {
		g := withGroup(t, recordOf(planned), pod("web-1"), budget(0))
		g.run(20*time.Second, nil)
		if len(g.detached) != 1 {
			t.Fatalf("%s: %+v", name, g.replaces())
		}
		change(g)
		_ = g.pass(0)
		g.run(10*time.Minute, g.stopsIn(20*time.Second))
		if n := g.node(); !n.Spec.Unschedulable || len(g.deletions)+len(g.ended) > 0 || !strings.Contains(g.record().Status.Decision.Message, "was taken out of Auto Scaling group workers") {
			t.Fatalf("%s: node %+v, terminated %v: %+v", name, n.Spec, g.ended, g.record().Status.Decision)
		}
		g.launch(newInstance, "InService")
		g.boot("new", newInstance)
		g.setBudget(1)
		g.run(2*time.Minute, g.stopsIn(20*time.Second))
		if len(g.ended) == 0 || len(g.deletions) > 0 {
			t.Errorf("%s: terminated %v, deleted %v: %+v", name, g.ended, g.deletions, g.record().Status)
		}
	}
}

// The detach was written to the status, the process was killed before the call, and afterwards
// it was not wanted any more.
func TestUnsentDetachIsCancelled(t *testing.T) {
	t.Parallel()
	planned := spot()
	planned.Kind, planned.Subject, planned.InstanceAction, planned.Source = notice.KindScheduledChange, "arn", notice.ActionStop, notice.SourceEC2
	planned.Deadline = notice.At(start.Add(30*time.Minute), v1beta1.DeadlineSoft)
	g := withGroup(t, recordOf(planned), pod("web-1"))
	g.refuse = errors.New("the network is down")
	g.run(3*time.Second, nil)
	if s := g.replaces(); s.Phase != v1beta1.ReplacementOrdered || s.DetachTime != nil {
		t.Fatalf("%+v", s)
	}
	planned.ID, planned.Withdrawn, planned.Time = "over", true, metav1.NewTime(g.now)
	planned.ReceivedTime = metav1.NewMicroTime(g.now)
	g.addNotices(planned)
	g.restart()
	g.run(2*time.Minute, nil)
	if in := g.record(); in.Status.Phase != v1beta1.PhaseCancelled || g.node().Spec.Unschedulable || len(g.asked)+len(g.ended) > 0 {
		t.Errorf("phase %s, asked %v, terminated %v: %+v", in.Status.Phase, g.asked, g.ended, record.Drain(&in.Status).Replacement)
	}
}

// The test runs random sequences: the group launches, abandons, lags or is throttled, and
// terminates the instance on its own; the process is killed at any write and any call. The
// instance must be detached at most once, be terminated if it was, and use one replacement. Each
// pod must be asked to stop by its last call.
func TestRandomGroupBehaviour(t *testing.T) {
	t.Parallel()
	seeds := uint64(30)
	if testing.Short() {
		seeds = 10
	}
	var kills, detached, terminated, answered uint64
	for seed := range seeds {
		g := withGroup(t, recordOf(spot()), pod("web-1"), pod("web-2"))
		s := &groupRun{scaledGroup: g, dice: rand.New(rand.NewPCG(seed, 11)), seed: seed}
		s.simulate()
		kills += s.kills
		detached += uint64(len(s.detached))
		terminated += uint64(len(s.ended))
		answered += uint64(len(s.completed))
	}
	t.Logf("%d runs: %d kills, %d instances taken out of the group, %d terminated, %d hooks answered", seeds, kills, detached, terminated, answered)
	if kills < seeds || detached < seeds/4 || terminated < seeds/4 || answered < seeds/10 {
		t.Error("too little happened for the test to mean anything")
	}
}

type groupRun struct {
	*scaledGroup
	dice   *rand.Rand
	seed   uint64
	serial int
	held   bool
	kills  uint64
}

func (s *groupRun) simulate() {
	if s.seed%3 == 0 { // otherwise Lifeboat detaches it before the group can terminate it
		s.takenByGroup()
	}
	for s.now.Sub(start) < 3*time.Minute {
		if s.lives == nil && s.dice.IntN(6) == 0 {
			n := s.dice.IntN(6)
			s.lives = &n
		}
		err := s.pass(time.Duration(s.dice.IntN(4000)) * time.Millisecond)
		if s.lives != nil && *s.lives < 0 {
			s.kills++
			s.restart()
			_ = s.pass(0)
		} else if err != nil {
			s.t.Fatalf("seed %d: %v", s.seed, err)
		}
		s.withoutKills(s.others)
		if s.dice.IntN(3) > 0 {
			s.look()
		}
		s.check()
	}
	s.lives, s.refuse = nil, nil
	for _, name := range []string{"web-1", "web-2"} {
		s.gone(name)
	}
	s.look()
	s.settle(time.Minute)
	s.settle(2 * time.Minute)
	if len(s.detached) > 0 && len(s.ended) == 0 {
		s.t.Fatalf("seed %d: it was taken out of its group, and not terminated: %+v", s.seed, s.record().Status)
	}
	s.remove(s.node())
	s.settle(20 * time.Minute)
	if in := s.record(); in == nil || in.Status.CompletionTime == nil {
		s.t.Fatalf("seed %d: %+v", s.seed, in.Status)
	}
}

func (s *groupRun) others() {
	switch s.dice.IntN(14) {
	case 0, 1:
		s.serial++
		s.launch(fmt.Sprintf("i-0000000000000%04d", s.serial), "Pending")
	case 2, 3:
		if id := fmt.Sprintf("i-0000000000000%04d", s.serial); s.states[id] == "Pending" {
			s.states[id] = "InService"
			s.boot(fmt.Sprintf("new-%d", s.serial), id)
		}
	case 4:
		if id := s.replaces().InstanceID; id != "" && s.dice.IntN(3) == 0 {
			delete(s.states, id)
		}
	case 5:
		s.refuse = fmt.Errorf("Throttling: %w", cloud.ErrBusy)
	case 6, 7, 8:
		s.refuse = nil
	case 9:
		if _, in := s.states[instance]; in && !s.held && s.dice.IntN(3) == 0 {
			s.takenByGroup()
		}
	default:
		s.stopsIn(5 * time.Second)()
	}
}

// takenByGroup terminates the instance in the group, with a terminate hook.
func (s *groupRun) takenByGroup() {
	s.held = true
	s.hold("Terminating:Wait")
	s.expires = s.now.Add(time.Hour)
}

func (s *groupRun) check() {
	if len(s.detached) > 1 {
		s.t.Fatalf("seed %d: taken out at %v", s.seed, s.detached)
	}
	if len(s.completed) > 1 {
		s.t.Fatalf("seed %d: answered %v", s.seed, s.completed)
	}
	in := s.record()
	if pods := s.podsThere(); len(s.completed) > 0 && pods > 0 && s.now.Before(start.Add(2*time.Minute)) {
		s.t.Fatalf("seed %d: answered with %d pods on the node: %+v", s.seed, pods, in.Status.LifecycleHooks)
	}
	if len(s.ended) > 0 && s.podsThere() > 0 && s.now.Before(start.Add(2*time.Minute)) {
		s.t.Fatalf("seed %d: terminated with pods on the node", s.seed)
	}
	if late := s.now.Sub(start.Add(80 * time.Second)); late > 15*time.Second && s.now.Before(start.Add(2*time.Minute)) {
		for _, name := range []string{"web-1", "web-2"} {
			if _, asked := s.asked[name]; !asked {
				s.t.Fatalf("seed %d: %s was not asked to stop: %+v", s.seed, name, record.Pending(record.Drain(&in.Status)))
			}
		}
	}
}

var (
	_ membership.Source = (*scaledGroup)(nil)
	_ cloud.Lifecycle   = (*scaledGroup)(nil)
)

// The controller is restarted without its source autoscaling, while a group replaces the node.
func TestRestartWithoutGroups(t *testing.T) {
	t.Parallel()
	g := withGroup(t, recordOf(spot()), pod("web-1"))
	g.run(5*time.Second, nil)
	if g.replaces().Phase != v1beta1.ReplacementOrdered {
		t.Fatalf("nothing is ordered: %+v", g.replaces())
	}
	o := g.loop.Options
	o.Groups, o.Detacher = nil, nil
	g.loop, g.lives = New(o), nil
	for range 24 {
		if err := g.pass(5 * time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if len(g.asked) != 1 {
		t.Errorf("asked to stop: %v", g.asked)
	}
}

// Only the agent reports a recommendation, which EC2 does not confirm. The pods still move.
func TestPodsDoNotWaitForUnconfirmedReplacement(t *testing.T) {
	t.Parallel()
	hint := rebalance()
	hint.Source = notice.SourceIMDS
	g := withGroup(t, recordOf(hint), pod("web-1"), team(func(s *v1beta1.InterruptionPolicySpec) {
		s.Rules[0].Replacement = v1beta1.ReplacementBefore
	}))
	g.run(time.Minute, nil)
	if s := g.replaces(); s.Phase != v1beta1.ReplacementQueued || len(g.asked) > 0 {
		t.Fatalf("replacement %+v, asked to stop: %v", s, g.asked)
	}
	g.run(25*time.Minute, g.stopsIn(time.Second))
	if len(g.asked) != 1 || len(g.detached)+len(g.ended) > 0 {
		t.Errorf("asked to stop %v, detached %v, terminated %v: %+v", g.asked, g.detached, g.ended, g.replaces())
	}
}
