package lifecycle_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
)

// The races of docs/races.md that the controller's decisions prevent.

func TestRace03DoneBeforeTheWait(t *testing.T) {
	s := launched(t, "Pending").node(true)
	s.does("", "")
	s.after(15*time.Second, "Pending").does("", "")
	s.after(15*time.Second, "Pending:Wait").does("Complete lifeboat-launch", "its node is Ready")
	s.after(15*time.Second, "Pending:Proceed").does("", "")
}

func TestRace04WaitButNoAction(t *testing.T) {
	s := launched(t, "Pending").after(time.Second, "Pending:Wait").node(true)
	did, at := s.passes(10*time.Minute, errRefused)
	if count(did, lifecycle.Complete) != len(did) || len(did) < 20 || len(did) > 27 {
		t.Fatalf("did %v", did)
	}
	for i := 1; i < len(at); i++ {
		if gap := at[i] - at[i-1]; gap < 2*time.Second || gap > 34*time.Second || i > 1 && i < 4 && gap <= at[i-1]-at[i-2] {
			t.Errorf("tried at %v: gap %s", at, gap)
		}
	}
	// It ends in any case once the state has left :Wait.
	s.after(time.Second, "InService").does("Untaint", "in service")
}

func TestRace05LateCompleteHitsTheNextFiring(t *testing.T) {
	s := launched(t, "Pending").after(time.Second, "Pending:Wait").node(true)
	s.call(s.does("Complete lifeboat-launch", ""), errBusy)
	// Calls for one firing do not count for the next: out of service, into the pool, and out
	// again with another node that is not Ready.
	s.after(time.Minute, "InService")
	s.after(time.Minute, "Warmed:Pending").noNode()
	s.after(time.Minute, "Warmed:Stopped")
	s.after(time.Minute, "Pending")
	s.after(time.Minute, "Pending:Wait")
	if len(s.memory.Calls) != 0 {
		t.Errorf("remembers %+v of another firing", s.memory.Calls)
	}
	s.does("", "has not registered yet")
	s.node(false).does("", "not Ready")
	// A firing is not answered with a stale state either: it gets heartbeats meanwhile.
	s.Node.Ready, s.Stale = true, true
	s.does("", "answered once Auto Scaling can be asked")
	s.after(200*time.Second, "Pending:Wait").does("Heartbeat lifeboat-launch", "answered once Auto Scaling can be asked")
}

func TestRace06TheHookFiresTwice(t *testing.T) {
	s := launched(t, "Warmed:Pending").after(time.Second, "Warmed:Pending:Wait")
	s.does("", "its agent completes the hook") // the first firing is the agent's
	s.after(5*time.Minute, "Warmed:Stopped").does("", "")
	s.after(time.Hour, "Pending").after(time.Second, "Pending:Wait").does("", "has not registered yet")
	s.node(true).does("Complete lifeboat-launch", "its node is Ready") // the second is answered, although the agent is silent
}

func TestRace08KubeletStartsWhileWarming(t *testing.T) {
	s := launched(t, "Warmed:Pending").node(true).after(15*time.Second, "Warmed:Pending")
	s.Node.Tainted, s.Node.Pods = false, -1
	s.does("Taint", "should not have started")
	s.Node.Tainted = true
	s.does("", "not known yet which pods")
	s.Node.Pods = 2
	s.does("Evict", "2 pods have to leave")
	s.Node.Pods = 0
	s.does("Delete", "of no use")
	s.Node.Deleting = true
	s.does("", "")
	// Without a running machine there is nothing to wait for.
	s = launched(t, "Warmed:Pending").node(true)
	s.Node.Tainted, s.Node.Pods = false, 7
	s.after(time.Minute, "Warmed:Stopped").does("Delete", "machine does not run")
	s.Interrupted = true
	s.does("", "")
	// A launch hook that holds it gets heartbeats.
	s = launched(t, "Warmed:Pending").after(time.Second, "Warmed:Pending:Wait").node(true)
	s.Node.Pods = 0
	s.after(4*time.Minute, "Warmed:Pending:Wait").does("Heartbeat lifeboat-launch Delete", "of no use")
	// The instance leaves the pool and its kubelet starts before the group is read again: the
	// known state is older than the node, which is not changed.
	for _, ready := range []bool{true, false} {
		s = launched(t, "Warmed:Pending").after(time.Minute, "Warmed:Stopped")
		s.Now = s.Now.Add(20 * time.Second) // the age of the last read
		s.node(ready)
		if d := s.does("", ""); !d.Ask.Equal(s.Now.Add(time.Second)) {
			t.Errorf("asks at %s", d.Ask)
		}
		s.Now = s.Now.Add(time.Hour)
		s.does("", "")
		s.Node.Created = began.Add(-time.Hour) // nor is an old node whose kubelet is back
		s.does("", "")
		s.after(time.Second, "Pending").does("", "")
	}
}

func TestRace10MetadataSaysNothing(t *testing.T) {
	// Only the group's state shows that an instance is in service.
	for _, state := range []string{"", "Quarantined", "Teleporting", "InService:Soon", "Pending", "Pending:Wait", "Pending:Proceed", "Warmed:Running", "Standby", "Terminating:Retained"} {
		s := begin(t).after(0, state).node(true)
		if d := s.decide(); d.Node == lifecycle.Untaint {
			t.Errorf("%q: pods are let in", state)
		}
	}
	begin(t).after(0, "InService").node(true).after(time.Second, "InService").does("Untaint", "in service")
	// That it was in service before the node was created proves nothing about the node.
	s := begin(t).after(0, "InService")
	s.Now = s.Now.Add(time.Hour)
	if d := s.node(true).does("", ""); !d.Ask.Equal(s.Now.Add(time.Second)) {
		t.Errorf("asks at %s", d.Ask)
	}
}

func TestRace11RebootWhileWarming(t *testing.T) {
	s := launched(t, "Warmed:Pending").after(time.Second, "Warmed:Pending:Wait")
	for range 3 { // its node registers again with each boot
		s.after(time.Second, "Warmed:Pending:Wait").node(true)
		s.does("", "")
		s.after(10*time.Second, "Warmed:Pending:Wait").does("Delete", "of no use")
		s.noNode()
	}
}

func TestRace13SlowBootOutlivesTheHook(t *testing.T) {
	s := launched(t, "Pending").after(time.Second, "Pending:Wait")
	did, at := s.passes(40*time.Minute, accepted)
	if count(did, lifecycle.Heartbeat) != len(did)-1 || did[len(did)-1] != string(lifecycle.GiveUp) || len(did) < 9 || len(did) > 10 || at[0] > launchHook.Timeout/3 {
		t.Errorf("did %v at %v", did, at)
	}
	for i := 1; i < len(at)-1; i++ {
		if gap := at[i] - at[i-1]; gap > launchHook.Timeout/3 {
			t.Errorf("%s between two heartbeats", gap)
		}
	}
	s.does("", "patience of 30m0s is over: it is left to the hook's own result")
	// It is completed even then, if its node becomes Ready.
	s.node(true).does("Complete lifeboat-launch", "Ready")
	// The global timeout bounds it if that is shorter.
	s = launched(t, "Pending").after(time.Second, "Pending:Wait")
	s.Hooks[0].Global = 5 * time.Minute
	if did, at := s.passes(10*time.Minute, accepted); did[len(did)-1] != "GiveUp" || at[len(at)-1] != 5*time.Minute {
		t.Errorf("did %v at %v", did, at)
	}
	// The next state shows that it was abandoned.
	m := s.memory
	for next, want := range map[lifecycle.Phase]lifecycle.Result{
		lifecycle.Leaving: lifecycle.LaunchFailed, lifecycle.Gone: lifecycle.LaunchFailed, lifecycle.Serving: lifecycle.LaunchSucceeded, lifecycle.Aside: lifecycle.Undecided,
	} {
		if got := m.Result(next); got != want {
			t.Errorf("joining, then %s: %s", next, got)
		}
	}
}

func TestRace14ServingWhileTheHookWaits(t *testing.T) {
	s := launched(t, "Pending").after(time.Second, "Pending:Wait").node(true)
	d := s.does("Complete lifeboat-launch", "Ready") // and the taint stays
	if d.Alarm {
		t.Error("alarm at once")
	}
	s.call(d, errRefused)
	if s.after(4*time.Minute, "Pending:Wait").decide().Alarm {
		t.Error("alarm in the first half of the hook's time")
	}
	if !s.after(2*time.Minute, "Pending:Wait").decide().Alarm {
		t.Error("no alarm although the node may be lost")
	}
	s.after(time.Second, "Pending:Proceed").does("", "kept free of pods")
	s.after(time.Second, "InService").does("Untaint", "in service")
}

func TestRace15NetworkRestartsWhileItAnswers(t *testing.T) {
	s := launched(t, "Pending").after(time.Second, "Pending:Wait").node(true)
	did, _ := s.passes(9*time.Minute, errBusy) // all calls fail
	if count(did, lifecycle.Complete) < 15 {
		t.Errorf("did %v", did)
	}
	s.Node.Ready = false // meanwhile the node is disconnected
	s.after(time.Minute, "Pending:Wait").does("Heartbeat lifeboat-launch", "not Ready")
	s.Node.Ready = true
	s.after(time.Minute, "Pending:Wait").does("Complete lifeboat-launch", "Ready")
}

func TestRace16TakenBackWhileJoining(t *testing.T) {
	s := launched(t, "Pending").after(time.Second, "Pending:Wait")
	s.call(s.after(4*time.Minute, "Pending:Wait").does("Heartbeat lifeboat-launch", ""), accepted)
	s.after(time.Minute, "Terminating").node(true).does("", "")
	d := s.after(time.Minute, "Terminating:Wait").does("", "an Interruption has drained")
	if d.Hook != "lifeboat-terminate" || s.memory.Result(lifecycle.Gone) != lifecycle.Undecided {
		t.Errorf("%+v", d)
	}
	// Out of the pool during its set-up: no heartbeat, no gate, only the end.
	s = launched(t, "Warmed:Pending").after(time.Second, "Warmed:Pending:Wait")
	s.after(5*time.Minute, "Warmed:Terminating").does("", "")
	s.after(time.Second, "Warmed:Terminating:Wait").does("", "has no node")
	s.after(31*time.Second, "Warmed:Terminating:Wait").does("Complete lifeboat-terminate", "no node")
}

func TestRace17BackIntoThePool(t *testing.T) {
	s := launched(t, "Pending").after(time.Second, "InService").node(true)
	s.Node.Tainted = false
	s.after(time.Hour, "Warmed:Pending").does("", "")
	// An Interruption drains its node and answers; its node is not deleted here.
	s.after(time.Second, "Warmed:Pending:Wait").does("", "an Interruption has drained")
	s.Interrupted = true
	s.does("", "its Interruption drains the node and answers")
	s.Interrupted = false
	s.noNode().does("", "answered unless one registers")
	s.after(31*time.Second, "Warmed:Pending:Wait").does("Complete lifeboat-terminate", "no node")
	// When it returns it is a launch like any other, with its own node.
	s.after(time.Minute, "Warmed:Stopped").after(time.Hour, "Pending").after(time.Second, "Pending:Wait").does("", "not registered")
	s.node(true).does("Complete lifeboat-launch", "Ready")

	// After a restart its direction is unknown: the hooks show it.
	s = begin(t).after(0, "Warmed:Pending:Wait")
	s.call(s.does("Heartbeat lifeboat-launch", ""), errRefused)
	s.call(s.does("Heartbeat lifeboat-terminate", ""), accepted)
	s.does("", "has no node")
	s.after(31*time.Second, "Warmed:Pending:Wait").does("Complete lifeboat-terminate", "")
	s = begin(t).after(0, "Warmed:Pending:Wait").node(true)
	s.Node.Pods = 0
	s.call(s.does("Heartbeat lifeboat-launch", ""), accepted)
	s.after(10*time.Second, "Warmed:Pending:Wait").does("Delete", "of no use")
	// Without a hook of Lifeboat's the node stays: the instance may be on its way back.
	s = begin(t).after(0, "Warmed:Pending:Wait").node(true)
	s.Hooks, s.Node.Pods = []lifecycle.Hook{{Name: "theirs"}}, 0
	s.does("", "of others holds it")
}

func TestRace18TerminatedWithoutANode(t *testing.T) {
	for state, moving := range map[string]string{"Terminating:Wait": "Terminating", "Warmed:Terminating:Wait": "Warmed:Terminating"} {
		s := begin(t).after(0, moving)
		s.does("", "")
		if d := s.after(time.Hour, state).does("", "answered unless one registers within 30s"); !d.Wake.Equal(s.Now.Add(30 * time.Second)) {
			t.Errorf("%s: looks again at %s", state, d.Wake)
		}
		s.after(29*time.Second, state).does("", "")
		s.after(time.Second, state).does("Complete lifeboat-terminate", "no node")
		// A node that registers at the last moment is drained first.
		s.node(false)
		s.Node.Deleting = true
		s.does("", "drained")
	}
}

func TestRace19LostAndRepeatedEvents(t *testing.T) {
	// Only the state counts: no event of its launch was received.
	s := begin(t).after(0, "Pending:Wait").node(true)
	s.after(time.Second, "Pending:Wait").Node.Heartbeat = s.Now
	s.does("Complete lifeboat-launch", "Ready")
	// A second read changes nothing.
	s.call(s.decide(), accepted)
	for range 3 {
		s.after(time.Second, "Pending:Wait").does("", "its state is to follow")
	}
}

func TestRace20ReadinessAskedOnceMore(t *testing.T) {
	s := launched(t, "Pending").after(time.Second, "Pending:Wait").node(false)
	if did, _ := s.passes(25*time.Minute, accepted); count(did, lifecycle.GiveUp) != 0 || count(did, lifecycle.Complete) != 0 {
		t.Errorf("did %v", did)
	}
	s.Node.Ready = true
	s.does("Complete lifeboat-launch", "Ready")
}

func TestRace24HookReplacedWhileHeld(t *testing.T) {
	s := launched(t, "Pending").after(time.Second, "Pending:Wait").node(true)
	s.call(s.does("Complete lifeboat-launch", ""), errRefused)
	s.Hooks = []lifecycle.Hook{{Name: "lifeboat-launch-2", Own: true, Timeout: time.Minute}, terminateHook}
	s.does("Complete lifeboat-launch-2", "Ready") // at once: it got no call yet
	s.Hooks = []lifecycle.Hook{terminateHook}
	s.does("", "the hook was deleted")
	s.HooksKnown = false
	s.does("", "could not be read")
}

func TestRace25InstancesOlderThanTheHook(t *testing.T) {
	// It has an old agent or none: the controller answers for it.
	s := launched(t, "Pending").after(time.Second, "Pending:Wait").node(true)
	s.Node.Tainted = false // it did not register with the startup taint
	s.does("Complete lifeboat-launch", "Ready")
	s.after(time.Second, "InService").does("", "")
}

func TestRace26TwoAnswerAtOnce(t *testing.T) {
	s := launched(t, "Pending").after(time.Second, "Pending:Wait").node(true)
	s.call(s.does("Complete lifeboat-launch", ""), errRefused) // the agent was first
	s.after(time.Second, "Pending:Wait").does("", "is answered again")
	s.after(time.Second, "InService").does("Untaint", "in service")
	// No decision is an ABANDON: there is no such action.
	for _, v := range []lifecycle.Verb{lifecycle.Complete, lifecycle.Heartbeat, lifecycle.GiveUp} {
		if strings.Contains(string(v), "Abandon") {
			t.Error(v)
		}
	}
}

func TestRace27SeveralHooksOnOneTransition(t *testing.T) {
	s := launched(t, "Pending").after(time.Second, "Pending:Wait").node(true)
	s.Hooks = []lifecycle.Hook{
		launchHook, {Name: "lifeboat-second", Own: true, Timeout: time.Minute},
		{Name: "codedeploy", Timeout: time.Minute}, {Name: "audit"}, terminateHook,
	}
	s.call(s.does("Complete lifeboat-launch lifeboat-second", ""), accepted)
	s.after(time.Second, "Pending:Wait").does("", "the hooks codedeploy, audit still hold it")
	did, _ := s.passes(time.Hour, errRefused) // it is tried again to see whether it was released
	if len(did) != 1 {
		t.Errorf("did %v", did)
	}
	s.does("", "the hooks codedeploy, audit still hold it")
	s.Hooks = []lifecycle.Hook{{Name: "codedeploy"}, terminateHook}
	s.does("", "the hook codedeploy of others holds it, which Lifeboat does not answer")
}

func TestRace30TheSameInstanceAgain(t *testing.T) {
	old := &lifecycle.Node{Created: began.Add(-time.Hour), Heartbeat: began.Add(-time.Minute), Ready: true, Tainted: true}
	s := begin(t).after(0, "Warmed:Stopped").after(time.Minute, "Pending").after(time.Second, "Pending:Wait")
	s.Node = old
	s.does("", "was Ready before the instance was started this time")
	// A node that was created in this phase is proof enough, although its kubelet has not
	// reported since the last read.
	s.Node = &lifecycle.Node{Created: began.Add(30 * time.Second), Heartbeat: began.Add(40 * time.Second), Ready: true}
	s.does("Complete lifeboat-launch", "")
	// So is the old node, once it has become Ready in this phase, or its kubelet has reported
	// in it.
	s.Node = &lifecycle.Node{Created: began.Add(-time.Hour), Heartbeat: began.Add(40 * time.Second), Turned: began.Add(40 * time.Second), Ready: true}
	s.does("Complete lifeboat-launch", "")
	s.Node = old
	s.Node.Heartbeat = s.Now.Add(time.Second)
	s.after(2*time.Second, "Pending:Wait").does("Complete lifeboat-launch", "")
	s.Node.Deleting = true
	s.does("", "being deleted")
}

func TestRace31ReadyFromAnEarlierLife(t *testing.T) {
	ready := &lifecycle.Node{Created: began.Add(-time.Hour), Heartbeat: began.Add(-time.Minute), Ready: true}
	// After a restart of the controller it may have been in the pool before.
	s := begin(t).after(0, "Pending:Wait")
	s.Node = ready
	s.does("Heartbeat lifeboat-launch", "its kubelet has not reported since")
	// A kubelet that does not run would have been noticed by now.
	s.after(2*time.Minute, "Pending:Wait").does("Complete lifeboat-launch", "Ready")
	s = begin(t).after(0, "Pending:Wait")
	s.Node = ready
	// In a group without a pool there is no earlier life.
	s.Pool = false
	s.does("Complete lifeboat-launch", "Ready")
	// Nor has an instance that was just launched.
	s = launched(t, "Pending:Wait")
	s.Node = ready
	s.does("Complete lifeboat-launch", "Ready")
}

func TestRace33AnotherAnswersForIt(t *testing.T) {
	// Without its agent, and without any permission on the node, an instance comes into
	// service.
	s := launched(t, "Pending").after(time.Second, "Pending:Wait").node(false)
	s.call(s.after(200*time.Second, "Pending:Wait").does("Heartbeat lifeboat-launch", ""), accepted)
	s.Node.Ready = true
	s.call(s.does("Complete lifeboat-launch", ""), accepted)
	s.after(time.Second, "InService").does("Untaint", "")
	// If the controller has no permission, it reports that and does not retry often.
	s = launched(t, "Pending").after(time.Second, "Pending:Wait").node(true)
	did, _ := s.passes(9*time.Minute, denied)
	if len(did) != 2 {
		t.Errorf("did %v", did)
	}
	s.does("", "cannot be answered: AccessDenied; allow autoscaling:CompleteLifecycleAction")
}

func TestRace34GroupOwnedByAnOperator(t *testing.T) {
	for _, state := range []string{"Pending:Wait", "Terminating:Wait", "Warmed:Pending:Wait", "Warmed:Terminating:Wait"} {
		s := launched(t, state)
		s.Operator = "eks.amazonaws.com"
		s.does("", "belongs to eks.amazonaws.com, which alone may answer")
	}
	s := launched(t, "Pending").node(true).after(time.Second, "InService")
	s.Operator = "eks.amazonaws.com"
	s.does("Untaint", "in service") // the node belongs to the cluster
}

func TestStates(t *testing.T) {
	s := begin(t).after(0, "Terminating:Retained")
	s.does("", "TerminateInstanceInAutoScalingGroup")
	for _, state := range []string{"Standby", "Detaching", "Terminated", "Warmed:Terminated"} {
		begin(t).after(0, state).does("", "")
	}
	begin(t).after(0, "Standby").node(true).does("", "its state is Standby")
}

func TestIsOwn(t *testing.T) {
	for _, test := range []struct {
		name     string
		named    []string
		patterns []string
		want     bool
	}{
		{"lifeboat-launch", nil, []string{"lifeboat-*"}, true},
		{"lifeboat", nil, []string{"lifeboat-*"}, false},
		{"kops-warmpool", nil, []string{"lifeboat-*"}, false},
		{"kops-warmpool", []string{"kops-warmpool"}, nil, true},
		{"kops-warmpool", nil, []string{"x", "kops-*pool"}, true},
		{"a-b-c", nil, []string{"a*b*c"}, true},
		{"a-c", nil, []string{"a*b*c"}, false},
		{"ab", nil, []string{"ab*b"}, false},
		{"anything", nil, []string{"*"}, true},
		{"lifeboat-launch", nil, []string{"lifeboat-launch"}, true},
		{"lifeboat-launch", nil, nil, false},
	} {
		if got := lifecycle.IsOwn(test.name, test.named, test.patterns); got != test.want {
			t.Errorf("%+v: got %v", test, got)
		}
	}
}

func FuzzDecide(f *testing.F) {
	states := []string{"Pending", "Pending:Wait", "InService", "Terminating:Wait", "Warmed:Pending:Wait", "Warmed:Stopped", "Warmed:Running", "Warmed:Terminating:Wait", "Standby", ""}
	f.Add([]byte{0, 1, 2, 3}, uint8(0))
	f.Add([]byte{4, 5, 0, 1, 2, 4, 6, 7}, uint8(255))
	f.Fuzz(func(t *testing.T, path []byte, bits uint8) {
		s := begin(t)
		s.Interrupted, s.Pool = bits&1 != 0, bits&2 != 0
		for i, b := range path {
			s.after(time.Duration(b)*time.Second, states[int(b)%len(states)])
			if bits>>(i%8)&1 != 0 {
				s.node(bits&4 != 0)
			} else {
				s.noNode()
			}
			d := s.decide()
			switch {
			case d.Node == lifecycle.Untaint && (s.State != "InService" || !s.Seen.After(s.Node.Created)):
				t.Errorf("%s: pods are let in", s.State)
			case d.Do == lifecycle.Complete && !s.At.Held():
				t.Errorf("%s: answered", s.State)
			case d.Do == lifecycle.Complete && s.At.Phase == lifecycle.Joining && !s.Node.Ready:
				t.Errorf("%s: answered for a node that is not Ready", s.State)
			case d.Do == lifecycle.Complete && s.At.Phase != lifecycle.Joining && (s.Node != nil || s.Interrupted || !slices.Equal(d.Hooks, []string{"lifeboat-terminate"})):
				t.Errorf("%s: %v answered", s.State, d.Hooks)
			case (d.Node == lifecycle.Delete || d.Node == lifecycle.Taint) && s.Seen.Before(s.Node.Created.Add(10*time.Second)):
				t.Errorf("%s: %s by what may be over", s.State, d.Node)
			case (d.Node == lifecycle.Delete || d.Node == lifecycle.Evict) && (s.Interrupted || s.At.Phase == lifecycle.Serving || s.At.Phase == lifecycle.Joining || s.At.Phase == lifecycle.Leaving):
				t.Errorf("%s: %s", s.State, d.Node)
			}
			if len(d.Hooks) > 0 {
				s.call(d, []error{accepted, errRefused, errBusy}[int(b)%3])
			}
		}
	})
}
