package lifecycle

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

var start = time.Date(2026, 5, 11, 8, 14, 0, 0, time.UTC)

const instance = "i-0a1b2c3d4e5f60718"

func newNotice(token string, change ...func(*v1beta1.Notice)) v1beta1.Notice {
	n := v1beta1.Notice{
		ID: "n" + token, Kind: notice.KindAutoScalingTermination, Source: notice.SourceQueue, Time: metav1.NewTime(start),
		ReceivedTime: metav1.NewMicroTime(start), InstanceAction: notice.ActionTerminate,
		LifecycleHook: &v1beta1.LifecycleHookInvocation{Group: "workers", Name: "lifeboat-terminate", Token: token},
	}
	for _, c := range change {
		c(&n)
	}
	return n
}

// facts are the facts for an instance in a state that was seen some time after the start.
func facts(state string, seen time.Duration, notices ...v1beta1.Notice) TerminationFacts {
	return TerminationFacts{
		Now: start.Add(seen), InstanceID: instance, Notices: notices, Action: v1beta1.ActionDrain,
		Owns: func(hook string) bool { return hook == "lifeboat-terminate" },
		Seen: Seen{Time: start.Add(seen), Group: "workers", State: state, HooksKnown: true, Hooks: []Hook{
			{Name: "lifeboat-terminate", Timeout: 5 * time.Minute, Global: 500 * time.Minute, Own: true, Terminating: true},
		}},
	}
}

func TestInstanceState(t *testing.T) {
	t.Parallel()
	returns := func(n *v1beta1.Notice) { n.InstanceAction = notice.ActionReturn }
	drill := func(n *v1beta1.Notice) { n.Drill = true }
	for name, test := range map[string]struct {
		facts   TerminationFacts
		do      Verb
		pending bool
	}{
		"held":                                {facts("Terminating:Wait", time.Second, newNotice("")), Nothing, true},
		"held, drained":                       {drained(facts("Terminating:Wait", time.Second, newNotice(""))), Complete, true},
		"held, without an event":              {drained(facts("Terminating:Wait", time.Second)), Complete, true},
		"not held yet":                        {drained(facts("Terminating", time.Second, newNotice(""))), Nothing, true},
		"not held yet, except in the event":   {drained(facts("Terminating", time.Second, newNotice("a"))), Complete, true},
		"the event is newer than the state":   {drained(facts("InService", 0, newNotice("a"))), Complete, true},
		"the state is newer than the event":   {drained(facts("InService", time.Second, newNotice("a"))), Nothing, false},
		"it went on":                          {drained(facts("Terminating:Proceed", time.Second, newNotice("a"))), Nothing, false},
		"it is gone":                          {drained(facts("", time.Second, newNotice("a"))), Nothing, false},
		"warming, launched":                   {drained(facts("Warmed:Pending:Wait", time.Second, newNotice(""))), Nothing, false},
		"warming, back from service":          {drained(facts("Warmed:Pending:Wait", time.Second, newNotice("", returns))), Complete, true},
		"warm":                                {drained(facts("Warmed:Stopped", time.Second, newNotice("a", returns))), Nothing, false},
		"joining":                             {drained(facts("Pending:Wait", time.Second, newNotice(""))), Nothing, false},
		"shrinking pool":                      {drained(facts("Warmed:Terminating:Wait", time.Second, newNotice(""))), Complete, true},
		"out of the pool, after a return":     {drained(facts("Warmed:Terminating:Wait", time.Second, newNotice("a", returns))), Complete, true},
		"out of the pool, to be drained":      {facts("Warmed:Terminating:Wait", time.Second, newNotice("a", returns)), Nothing, true},
		"out of the pool, not held yet":       {drained(facts("Warmed:Terminating", time.Second, newNotice("a", returns))), Nothing, true},
		"a state of a later release":          {drained(facts("Teleporting:Wait", time.Second, newNotice(""))), Nothing, false},
		"a drill":                             {drained(facts("InService", 0, newNotice("a", drill))), Nothing, false},
		"a drill, and it happens to be held":  {drained(facts("Terminating:Wait", time.Second, newNotice("a", drill))), Complete, true},
		"nothing is known":                    {drained(unseen(newNotice(""))), Nothing, false},
		"nothing is known but the event":      {drained(unseen(newNotice("a"))), Complete, true},
		"an agent names a hook":               {drained(unseen(newNotice("a", func(n *v1beta1.Notice) { n.Source = notice.SourceIMDS }))), Nothing, false},
		"the event is of a hook of another's": {drained(unseen(newNotice("a", func(n *v1beta1.Notice) { n.LifecycleHook.Name = "nth" }))), Nothing, false},
	} {
		d := DecideTermination(test.facts)
		if d.Do != test.do || d.Pending != test.pending {
			t.Errorf("%s: %q, pending %t; %+v", name, d.Do, d.Pending, d.Status)
		}
	}
}

// drained are the facts for a drained node, which was just confirmed.
func drained(f TerminationFacts) TerminationFacts { f.Drained, f.Due = true, f.Now; return f }

func unseen(notices ...v1beta1.Notice) TerminationFacts {
	f := facts("", 0, notices...)
	f.Seen = Seen{}
	return f
}

// The intervals must grow.
func TestHookIsCompletedUntilStateChanges(t *testing.T) {
	t.Parallel()
	f := drained(facts("Terminating:Wait", 0, newNotice("a")))
	var at []time.Duration
	for f.Now = start; f.Now.Before(start.Add(5 * time.Minute)); f.Now = f.Now.Add(time.Second) {
		f.Seen.Time = f.Now
		f.Due = f.Now
		d := DecideTermination(f)
		f.Was = d.Status
		if d.Do == Complete {
			at = append(at, f.Now.Sub(start))
			Note(f.Was, Complete, f.Now)
			NoteResult(f.Was, Complete, cloud.ErrNoAction)
		}
	}
	if len(at) < 10 || len(at) > 16 || at[1] < 2*time.Second || at[len(at)-1]-at[len(at)-2] > 40*time.Second {
		t.Errorf("answered at %v", at)
	}
	f.Seen.State, f.Seen.Time = "Terminating:Proceed", f.Now
	if d := DecideTermination(f); d.Pending || d.Status.CompletedTime == nil {
		t.Errorf("%+v", d.Status)
	}
}

func TestWithoutAStateItGivesUp(t *testing.T) {
	t.Parallel()
	f := drained(unseen(newNotice("a")))
	tries := 0
	for range 1000 {
		f.Due = f.Now
		d := DecideTermination(f)
		f.Was, f.Now = d.Status, f.Now.Add(time.Second)
		if d.Do == Complete {
			tries++
			Note(f.Was, Complete, f.Now)
			NoteResult(f.Was, Complete, cloud.ErrNoAction)
		}
	}
	was := f.Was.DeepCopy()
	f.Now = f.Now.Add(time.Hour)
	if d := DecideTermination(f); !d.Status.CompletedTime.Equal(was.CompletedTime) || d.Look || !d.Wake.IsZero() {
		t.Errorf("it does not settle: %+v, %+v", d, d.Status)
	}
	if d := DecideTermination(f); tries != blindTries || d.Pending || !strings.Contains(d.Status.Message, "autoscaling:DescribeAutoScalingGroups") {
		t.Errorf("%d tries: %+v", tries, d.Status)
	}
}

// A launch hook must not be taken for the hook of a return forever.
func TestLaunchHookBeforeWarmPool(t *testing.T) {
	t.Parallel()
	f := drained(facts("Warmed:Pending:Wait", 0, newNotice("", func(n *v1beta1.Notice) { n.InstanceAction = notice.ActionReturn })))
	for range 200 {
		f.Seen.Time, f.Due = f.Now, f.Now
		d := DecideTermination(f)
		f.Was, f.Now = d.Status, f.Now.Add(time.Second)
		if d.Do == Complete {
			Note(f.Was, Complete, f.Now)
			NoteResult(f.Was, Complete, cloud.ErrNoAction)
		}
	}
	if d := DecideTermination(f); d.Pending || !strings.Contains(d.Status.Message, "launch hook") || !Returns(f) {
		t.Errorf("%+v", d.Status)
	}
}

// Every result needs a confirmation of its own that is not old.
func TestCompletionNeedsConfirmation(t *testing.T) {
	t.Parallel()
	held := drained(facts("Terminating:Wait", time.Minute, newNotice("a")))
	for name, test := range map[string]struct {
		due   time.Time
		tried bool // a result was sent half a minute ago
		want  Verb
	}{
		"never confirmed":            {want: Nothing},
		"confirmed now":              {due: held.Now, want: Complete},
		"confirmed a while ago":      {due: held.Now.Add(-confirmedFor), want: Nothing},
		"confirmed before the try":   {due: held.Now.Add(-time.Minute), tried: true, want: Nothing},
		"confirmed for the last try": {due: held.Now.Add(-30 * time.Second), tried: true, want: Nothing},
		"confirmed after the try":    {due: held.Now.Add(-10 * time.Second), tried: true, want: Complete},
	} {
		f := held
		f.Due = f.Now
		f.Was = DecideTermination(f).Status
		if test.tried {
			Note(f.Was, Complete, f.Now.Add(-30*time.Second))
		}
		f.Due = test.due
		if d := DecideTermination(f); d.Do != test.want || d.Confirm == (test.want == Complete) || !d.Pending {
			t.Errorf("%s: %q, confirm %t, pending %t", name, d.Do, d.Confirm, d.Pending)
		}
	}
}

// For any facts, the decision must say what it waits for, and when to decide again.
func FuzzDecideTermination(f *testing.F) {
	f.Add("Terminating:Wait", int64(0), true, true, "a")
	f.Add("Warmed:Pending:Wait", int64(-100), false, true, "")
	f.Fuzz(func(t *testing.T, state string, seen int64, isDrained, known bool, token string) {
		x := facts(state, time.Duration(seen%1e6)*time.Millisecond, newNotice(token))
		x.Drained, x.Seen.HooksKnown = isDrained, known
		d := DecideTermination(x)
		if d.Pending && (d.Status == nil || d.Do == Nothing && !d.Confirm && (d.Wake.IsZero() || d.Status.Message == "")) {
			t.Errorf("it never ends: %+v, %+v", d, d.Status)
		}
		if d.Do != Nothing && len(d.Status.Hooks) == 0 {
			t.Error("there is no hook to call")
		}
	})
}
