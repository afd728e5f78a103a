package replacement

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

var (
	groupNow = time.Date(2026, 5, 11, 8, 14, 0, 0, time.UTC)
	at       = metav1.NewMicroTime(groupNow)
)

func inGroup(id, state string, change ...func(*GroupMember)) GroupMember {
	m := GroupMember{InstanceID: id, State: state, At: lifecycle.Read(state)}
	for _, c := range change {
		c(&m)
	}
	return m
}

func withNode(ready bool, age time.Duration) func(*GroupMember) {
	return func(m *GroupMember) {
		m.Node = &GroupNode{Name: "node-" + m.InstanceID, Created: groupNow.Add(-age), Ready: ready}
	}
}

func interruptedIn(m GroupMember) GroupFacts {
	return GroupFacts{
		QuickFacts: QuickFacts{Now: groupNow, Movable: 1, Deadline: notice.At(groupNow.Add(2*time.Minute), v1beta1.DeadlineHard)},
		Notice:     v1beta1.Notice{Kind: notice.KindSpotInterruption, InstanceAction: notice.ActionTerminate}, Cloud: true,
		Group: &ScalingGroup{Time: groupNow, Name: "workers", Interrupted: &m},
	}
}

func TestDetachDecision(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*GroupFacts)
		phase  v1beta1.ReplacementPhase
		reason string
	}{
		"it is":                {func(*GroupFacts) {}, v1beta1.ReplacementOrdered, ReasonOrdered},
		"nothing moves":        {func(f *GroupFacts) { f.Movable = 0 }, v1beta1.NoReplacement, ReasonNoPods},
		"it is gone":           {func(f *GroupFacts) { f.InstanceGone = true }, v1beta1.NoReplacement, ReasonInstanceGone},
		"it is going":          {func(f *GroupFacts) { f.Notice.Kind = notice.KindInstanceStateChange }, v1beta1.NoReplacement, ReasonGroupReplaces},
		"the group takes it":   {func(f *GroupFacts) { *f.Group.Interrupted = inGroup("i", "Terminating") }, v1beta1.NoReplacement, ReasonGroupReplaces},
		"a reboot":             {func(f *GroupFacts) { f.Notice.InstanceAction = notice.ActionReboot }, v1beta1.NoReplacement, ReasonSurvives},
		"a drill":              {func(f *GroupFacts) { f.Drill = true }, v1beta1.NoReplacement, ReasonDrill},
		"too late":             {func(f *GroupFacts) { f.Now = groupNow.Add(91 * time.Second) }, v1beta1.NoReplacement, ReasonTooLate},
		"protected":            {func(f *GroupFacts) { f.Group.Interrupted.Protected = true }, v1beta1.NoReplacement, ReasonProtected},
		"standby":              {func(f *GroupFacts) { *f.Group.Interrupted = inGroup("i", "Standby") }, v1beta1.NoReplacement, ReasonNotInService},
		"joining":              {func(f *GroupFacts) { *f.Group.Interrupted = inGroup("i", "Pending:Wait") }, v1beta1.NoReplacement, ReasonNotInService},
		"an operator's":        {func(f *GroupFacts) { f.Group.Operator = "EKS" }, v1beta1.NoReplacement, ReasonOperator},
		"nothing is launched":  {func(f *GroupFacts) { f.Group.Suspended = []string{"Launch"} }, v1beta1.NoReplacement, ReasonLaunchSuspended},
		"terminations are not": {func(f *GroupFacts) { f.Group.Suspended = []string{"Terminate"} }, v1beta1.ReplacementOrdered, ReasonOrdered},
		"no cloud":             {func(f *GroupFacts) { f.Cloud = false }, v1beta1.NoReplacement, ReasonNoCloud},
		"no group":             {func(f *GroupFacts) { f.Group.Interrupted = nil }, v1beta1.NoReplacement, ReasonNoGroup},
		"not known yet":        {func(f *GroupFacts) { f.Group = nil }, v1beta1.ReplacementQueued, ReasonUnreadable},
		"not known for long": {func(f *GroupFacts) {
			f.Group, f.Was, f.Now, f.Deadline = nil, &Status{StartTime: &at}, groupNow.Add(time.Minute), nil
		}, v1beta1.NoReplacement, ReasonNoGroup},
	} {
		f := interruptedIn(inGroup("i", "InService"))
		test.change(&f)
		if s := DecideGroup(f); s.Phase != test.phase || s.Reason != test.reason || s.Message == "" {
			t.Errorf("%s: %s %s: %s", name, s.Phase, s.Reason, s.Message)
		}
	}
}

// TestReplacementInstanceIsIdentified: a new one that no other interruption uses,
// the furthest in its launch; it is stored before pods move to it.
func TestReplacementInstanceIsIdentified(t *testing.T) {
	t.Parallel()
	claimed := func(m *GroupMember) { m.Claimed = true }
	f := interruptedIn(inGroup("i", "InService"))
	f.Group.Others = []GroupMember{inGroup("apart", "Pending:Wait"), inGroup("old", "InService", withNode(true, time.Hour))}
	s := DecideGroup(f)
	Detached(s, nil, groupNow)
	group := &ScalingGroup{Time: groupNow.Add(time.Minute), Others: []GroupMember{
		inGroup("apart", "InService", withNode(true, -time.Second)), inGroup("old", "InService", withNode(true, time.Hour)),
		inGroup("taken", "InService", withNode(true, -time.Second), claimed), inGroup("warm", "Warmed:Stopped"), inGroup("a", "Pending"),
		inGroup("b", "InService", withNode(true, -time.Second)), inGroup("c", "InService", withNode(true, -time.Second)),
	}}
	follow := func() {
		s = FollowGroup(GroupFollowing{Now: group.Time, Was: *s, Group: group})
	}
	follow()
	if s.InstanceID != "b" || s.Phase != v1beta1.ReplacementLaunched {
		t.Fatalf("%+v", s)
	}
	follow()
	if s.Phase != v1beta1.ReplacementReady || s.NodeName != "node-b" {
		t.Fatalf("%+v", s)
	}

	s.Phase, group.Others = v1beta1.ReplacementLaunched, group.Others[:5]
	follow()
	if s.Phase != v1beta1.ReplacementOrdered || s.Reason != ReasonVanished || s.InstanceID != "" {
		t.Fatalf("%+v", s)
	}
	follow()
	if s.InstanceID != "a" {
		t.Fatalf("%+v", s)
	}
}

func TestDetachProgress(t *testing.T) {
	t.Parallel()
	order := func() *Status { return DecideGroup(interruptedIn(inGroup("i", "InService"))) }
	seen := func(after time.Duration, interrupted ...GroupMember) *ScalingGroup {
		g := &ScalingGroup{Time: groupNow.Add(after), Name: "workers"}
		if len(interrupted) > 0 {
			g.Interrupted = &interrupted[0]
		}
		return g
	}
	serving := inGroup("i", "InService")
	for name, test := range map[string]struct {
		group    *ScalingGroup
		deadline *v1beta1.Deadline
		detached bool
		phase    v1beta1.ReplacementPhase
		again    bool
		kept     bool
	}{
		"no one has looked since":     {seen(0), nil, false, v1beta1.ReplacementOrdered, false, false},
		"it is there":                 {seen(10*time.Second, serving), nil, false, v1beta1.ReplacementOrdered, true, false},
		"it is there for long":        {seen(20*time.Second, serving), nil, false, v1beta1.ReplacementOrdered, true, true},
		"it is there, and it is late": {seen(20*time.Second, serving), notice.At(groupNow.Add(30*time.Second), v1beta1.DeadlineHard), false, v1beta1.ReplacementFailed, false, true},
		"it leaves":                   {seen(10*time.Second, inGroup("i", "Detaching")), nil, true, v1beta1.ReplacementOrdered, false, false},
		"it has left":                 {seen(10 * time.Second), nil, true, v1beta1.ReplacementOrdered, false, false},
		"the group was faster":        {seen(10*time.Second, inGroup("i", "Terminating:Wait")), nil, false, v1beta1.NoReplacement, false, false},
	} {
		now := test.group.Time.Add(time.Second)
		s := order()
		kept := IsKept(s, test.group)
		s = FollowGroup(GroupFollowing{Now: now, Deadline: test.deadline, Was: *s, Group: test.group})
		again, _ := ToDetach(s, test.group, now)
		if (s.DetachTime != nil) != test.detached || s.Phase != test.phase || again != test.again || kept != test.kept {
			t.Errorf("%s: again %t, kept %t, %+v", name, again, kept, s)
		}
	}
	s := order()
	Detached(s, &cloud.DeniedError{Err: errors.New("no"), Fix: "allow it"}, groupNow)
	if s.Phase != v1beta1.NoReplacement || IsDetached(s) {
		t.Errorf("%+v", s)
	}
	s = order()
	Detached(s, nil, groupNow)
	s = FollowGroup(GroupFollowing{Now: groupNow.Add(patience), Was: *s, Group: seen(patience)})
	if s.Phase != v1beta1.ReplacementFailed || s.Reason != ReasonNoCapacity || !IsDetached(s) {
		t.Errorf("%+v", s)
	}
}
