package bootagent

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
)

var now = time.Date(2026, 5, 11, 8, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// facts are the facts about a machine with a target, a minute after the leg began.
func facts(target string, goal Goal, change func(*Facts)) Facts {
	f := Facts{
		Instance: "i-0a1b2c3d4e5f60718", Boot: "b1", Target: Target{Read: true, Value: target, At: ago(time.Second), Since: ago(time.Minute)},
		Journal: Journal{Instance: "i-0a1b2c3d4e5f60718", Lives: 1, Leg: Leg{Boot: "b1", Goal: goal, At: ago(time.Minute)}},
		Kubelet: KubeletOff, Progress: ago(time.Minute),
		Rules: Settings{}.withDefaults().rules(),
	}
	if change != nil {
		change(&f)
	}
	return f
}

func opened(f *Facts) {
	f.Gate, f.Kubelet = true, KubeletRuns
	f.Journal.Served, f.Journal.Gate = true, GateRecord{Boot: "b1", At: ago(50 * time.Second), Started: true}
}

func ready(f *Facts) {
	opened(f)
	f.Node = Node{At: ago(time.Second), Name: "n", Ready: true, Heartbeat: ago(5 * time.Second)}
	f.Journal.Node = "n"
}

func described(state string, age time.Duration) func(*Facts) {
	return func(f *Facts) {
		f.State = State{At: ago(age), Group: "g", Value: state, Position: lifecycle.Read(state)}
	}
}

func hooked(f *Facts) {
	f.Hooks = Hooks{At: ago(10 * time.Second), All: []lifecycle.Hook{
		{Name: "lifeboat-launch", Own: true, Timeout: 10 * time.Minute, Global: 16 * time.Hour},
		{Name: "lifeboat-terminate", Own: true, Terminating: true, Timeout: 5 * time.Minute},
		{Name: "codedeploy"},
	}}
}

func all(changes ...func(*Facts)) func(*Facts) {
	return func(f *Facts) {
		for _, c := range changes {
			c(f)
		}
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	image := StageFact{Key: imageKey + "a", Image: true}
	command := StageFact{Key: commandKey + "c"}
	with := func(stages ...StageFact) func(*Facts) { return func(f *Facts) { f.Stages = stages } }
	over := func(s StageFact) StageFact { s.Done = true; return s }
	busy := func(s StageFact) StageFact { s.Running = true; return s }
	failing := func(s StageFact, tries int) StageFact {
		s.Tries, s.Trouble, s.Again = tries, "exit status 1", now.Add(time.Minute)
		return s
	}
	served := func(f *Facts) {
		f.Journal.Served, f.Journal.Gate = true, GateRecord{Boot: "b0", At: ago(time.Hour), Started: true}
	}
	target := func(change func(*Target)) func(*Facts) { return func(f *Facts) { change(&f.Target) } }
	absent := target(func(t *Target) { t.Value, t.Since = "", ago(3*time.Minute) })

	for name, c := range map[string]struct {
		facts Facts
		do    Do
		says  string
	}{
		"nothing was read":                        {facts("", "", func(f *Facts) { f.Instance = "" }), DoAsk, "does not answer"},
		"metadata fails":                          {facts("", "", target(func(t *Target) { *t = Target{Trouble: "503"} })), DoAsk, "nothing is begun before it does: 503"},
		"metadata fails after an answer":          {facts("InService", Serve, all(ready, described("InService", time.Minute), func(f *Facts) { f.Target.Trouble = "503"; f.Journal.Leg.Answered = "done" })), DoWait, "done"},
		"absent, for a while":                     {facts("", "", target(func(t *Target) { t.Since = ago(time.Minute) })), DoAsk, "it is asked until 08:01:00 UTC"},
		"absent, for long":                        {facts("", "", absent), DoCorroborate, "whether the machine is in a group"},
		"absent, and no source answered":          {facts("", "", all(absent, func(f *Facts) { f.Talk = Talk{Due: now.Add(time.Minute), Denied: "AccessDenied"} })), DoWait, "AccessDenied"},
		"absent, in no group":                     {facts("", "", all(absent, func(f *Facts) { f.Member = MemberOfNone })), DoBegin, "in no Auto Scaling group"},
		"absent, in a group":                      {facts("", "", all(absent, func(f *Facts) { f.Member = MemberIn })), DoDescribe, "asks Auto Scaling where it goes"},
		"absent, in a group that warms it":        {facts("", "", all(absent, described("Warmed:Pending:Wait", time.Second), func(f *Facts) { f.Member = MemberIn })), DoBegin, "into the warm pool"},
		"absent, in a group that has it aside":    {facts("", "", all(absent, described("EnteringStandby", time.Second), func(f *Facts) { f.Member = MemberIn })), DoWait, "nothing is begun"},
		"absent, in a group that ends it":         {facts("", "", all(absent, described("Terminating:Wait", time.Second), func(f *Facts) { f.Member = MemberIn })), DoBegin, "terminates the machine"},
		"a target that is not known":              {facts("Quarantined", "", nil), DoAsk, "does not know"},
		"standby":                                 {facts("Standby", Aside, nil), DoWait, "standby"},
		"detached":                                {facts("Detached", Serve, target(func(t *Target) { t.Since = ago(time.Hour) })), DoCorroborate, "Detached"},
		"the end":                                 {facts("Terminated", End, ready), DoStop, "not opened"},
		"the end, from the pool":                  {facts("Warmed:Terminated", End, nil), DoStop, ""},
		"a new target":                            {facts("InService", Warm, nil), DoBegin, "into service"},
		"a new boot":                              {facts("InService", Serve, func(f *Facts) { f.Boot = "b2" }), DoBegin, "into service"},
		"the pool":                                {facts("Warmed:Stopped", "", nil), DoBegin, "into the warm pool"},
		"the pool, from service":                  {facts("Warmed:Stopped", Serve, ready), DoBegin, "back into the warm pool"},
		"in service":                              {facts("InService", Serve, nil), DoOpen, "into service"},
		"in service, by an old answer":            {facts("InService", Serve, func(f *Facts) { f.Target.At = ago(time.Minute) }), DoAsk, "says again"},
		"in service, then no answer":              {facts("InService", Serve, func(f *Facts) { f.Target.Trouble = "503" }), DoAsk, "503"},
		"in service, not prepared":                {facts("InService", Serve, with(command, image)), DoPrepare, "0 of 2"},
		"in service, being prepared":              {facts("InService", Serve, with(busy(command), image)), DoDescribe, "prepares"},
		"in service, images are not waited for":   {facts("InService", Serve, with(over(command), image)), DoOpen, ""},
		"in service, the start failed":            {facts("InService", Serve, func(f *Facts) { f.Again, f.Broken = now.Add(time.Second), "exit 1" }), DoWait, "run again: exit 1"},
		"in service, started half":                {facts("InService", Serve, all(opened, func(f *Facts) { f.Journal.Gate.Started = false })), DoOpen, ""},
		"in service, back from the pool":          {facts("InService", Serve, func(f *Facts) { f.Journal.Served, f.Journal.Pooled = true, true }), DoWipe, "warm pool since"},
		"in service, wiping was cut short":        {facts("InService", Serve, func(f *Facts) { f.Journal.Wiping = ago(time.Hour) }), DoWipe, ""},
		"in service, in an earlier boot":          {facts("InService", Serve, served), DoDescribe, "in the warm pool since"},
		"the same, and it was":                    {facts("InService", Serve, all(served, described("Pending:Wait", time.Second))), DoWipe, "Pending:Wait"},
		"the same, and it was not":                {facts("InService", Serve, all(served, described("InService", time.Second))), DoOpen, ""},
		"the same, and no source answers":         {facts("InService", Serve, all(served, func(f *Facts) { f.Talk.Trouble = "503" })), DoOpen, ""},
		"joining, no node":                        {facts("InService", Serve, all(opened, described("Pending:Wait", time.Minute), hooked, func(f *Facts) { f.Node.At = ago(time.Second) })), DoWait, "not registered"},
		"joining, ready":                          {facts("InService", Serve, all(ready, described("Pending:Wait", time.Second), hooked)), DoComplete, "CONTINUE to lifeboat-launch"},
		"joining, ready, the state is old":        {facts("InService", Serve, all(ready, described("Pending:Wait", 6*time.Second), hooked)), DoDescribe, ""},
		"joining, ready from before":              {facts("InService", Serve, all(ready, described("Pending:Wait", time.Second), hooked, func(f *Facts) { f.Node.Heartbeat = ago(time.Hour) })), DoWait, "next heartbeat"},
		"joining, ready, being deleted":           {facts("InService", Serve, all(ready, described("Pending:Wait", time.Second), hooked, func(f *Facts) { f.Node.Deleting = true })), DoWait, "is being deleted"},
		"joining, the hooks are not known":        {facts("InService", Serve, all(ready, described("Pending:Wait", time.Second))), DoHooks, "group g"},
		"joining, before the wait":                {facts("InService", Serve, all(ready, described("Pending", 3*time.Second), hooked, func(f *Facts) { f.Talk.Look = now.Add(time.Second) })), DoWait, "until its hooks are asked"},
		"joining, and let go":                     {facts("InService", Serve, all(ready, described("Pending:Proceed", time.Second), hooked)), DoSettle, "Pending:Proceed"},
		"joining, and Auto Scaling warms it":      {facts("InService", Serve, all(ready, described("Warmed:Pending:Wait", time.Second), hooked)), DoWait, "nothing is answered"},
		"joining, and Auto Scaling ends it":       {facts("InService", Serve, all(ready, described("Terminating:Wait", time.Second), hooked)), DoWait, "nothing is answered"},
		"joining, a state that is not known":      {facts("InService", Serve, all(ready, described("Pending:Ponder", time.Second), hooked)), DoWait, "nothing is answered"},
		"joining, in service at once":             {facts("InService", Serve, all(ready, described("InService", time.Second), func(f *Facts) { f.Journal.Leg.At = ago(5 * time.Second) })), DoWait, "once more"},
		"joining, answers are disabled":           {facts("InService", Serve, all(ready, func(f *Facts) { f.Rules.Answer = false })), DoWait, "the controller answers"},
		"joining, due for a heartbeat":            {facts("InService", Serve, all(opened, described("Pending:Wait", time.Minute), hooked, func(f *Facts) { f.Journal.Leg.At, f.Progress = ago(4*time.Minute), ago(4*time.Minute) })), DoHeartbeat, "extends lifeboat-launch"},
		"joining, no progress":                    {facts("InService", Serve, all(opened, described("Pending:Wait", time.Minute), hooked, func(f *Facts) { f.Journal.Leg.At, f.Progress = ago(14*time.Minute), ago(11*time.Minute) })), DoWait, "no progress for 10m"},
		"joining, no patience":                    {facts("InService", Serve, all(opened, described("Pending:Wait", time.Minute), hooked, func(f *Facts) { f.Journal.Leg.At = ago(31 * time.Minute) })), DoWait, "not extended any more"},
		"joining, denied":                         {facts("InService", Serve, all(ready, described("Pending:Wait", time.Minute), hooked, func(f *Facts) { f.Talk = Talk{Denied: "AccessDenied", Due: now.Add(time.Minute)} })), DoWait, "the controller answers in its place"},
		"warming":                                 {facts("Warmed:Stopped", Warm, with(command, image)), DoPrepare, ""},
		"warming, the kubelet runs":               {facts("Warmed:Stopped", Warm, func(f *Facts) { f.Kubelet = KubeletRuns }), DoClose, "must not run"},
		"warming, the gate is open":               {facts("Warmed:Stopped", Warm, func(f *Facts) { f.Gate = true }), DoClose, "must not run"},
		"warming, a command first":                {facts("Warmed:Stopped", Warm, all(with(busy(command), image), described("Warmed:Pending:Wait", time.Minute), hooked)), DoWait, "0 of 2"},
		"warming, images beside each other":       {facts("Warmed:Stopped", Warm, with(over(command), busy(image), StageFact{Key: imageKey + "b", Image: true})), DoPrepare, "1 of 3"},
		"warming, no more than two":               {facts("Warmed:Stopped", Warm, all(with(busy(image), busy(image), image), described("Warmed:Pending:Wait", time.Minute), hooked)), DoWait, "0 of 3"},
		"warming, an image that does not exist":   {facts("Warmed:Stopped", Warm, all(with(over(command), failing(image, 5)), described("Warmed:Pending:Wait", time.Second), hooked)), DoComplete, ""},
		"warming, a command that fails":           {facts("Warmed:Stopped", Warm, all(with(failing(command, 9), image), described("Warmed:Pending:Wait", time.Second), hooked)), DoWait, "has failed 9 times: exit status 1"},
		"warming, one that fails, and abandons":   {facts("Warmed:Stopped", Warm, all(with(failing(command, 9), image), described("Warmed:Pending:Wait", time.Second), hooked, func(f *Facts) { f.Rules.Abandon = true })), DoComplete, "ABANDON"},
		"warming, done":                           {facts("Warmed:Stopped", Warm, all(described("Warmed:Pending:Wait", time.Second), hooked)), DoComplete, "CONTINUE to lifeboat-launch"},
		"warming, denied":                         {facts("Warmed:Stopped", Warm, all(described("Warmed:Pending:Wait", time.Second), hooked, func(f *Facts) { f.Talk = Talk{Denied: "AccessDenied", Due: now.Add(time.Minute)} })), DoWait, "only another answer"},
		"warm":                                    {facts("Warmed:Running", Warm, described("Warmed:Running", time.Second)), DoSettle, "Warmed:Running"},
		"back into the pool, with pods":           {facts("Warmed:Stopped", Return, all(ready, described("Warmed:Pending:Wait", time.Second), hooked)), DoWait, "until the pods are moved"},
		"back, the node cannot be read":           {facts("Warmed:Stopped", Return, all(ready, described("Warmed:Pending:Wait", time.Second), func(f *Facts) { f.Node = Node{At: now, Trouble: "503"} })), DoWait, "until the pods are moved"},
		"back, the node is gone":                  {facts("Warmed:Stopped", Return, all(ready, described("Warmed:Pending:Wait", time.Second), func(f *Facts) { f.Node = Node{At: now} })), DoClose, "node deleted"},
		"back, the node was never seen":           {facts("Warmed:Stopped", Return, all(opened, described("Warmed:Pending:Wait", time.Second), func(f *Facts) { f.Node = Node{At: now} })), DoWait, "until the pods are moved"},
		"back, and let go":                        {facts("Warmed:Running", Return, all(ready, described("Warmed:Running", time.Second))), DoClose, "nothing holds"},
		"back, the kubelet is off":                {facts("Warmed:Stopped", Return, func(f *Facts) { f.Journal.Served = true }), DoWipe, "goes back"},
		"back, wiped":                             {facts("Warmed:Stopped", Return, all(described("Warmed:Pending:Wait", time.Second), hooked, func(f *Facts) { f.Journal.NodeGone = true })), DoComplete, "CONTINUE to lifeboat-terminate"},
		"back, wiped, and its drain was not seen": {facts("Warmed:Stopped", Return, all(described("Warmed:Pending:Wait", time.Second), hooked)), DoWait, "the controller answers"},
		"in no group, served":                     {facts("", Alone, all(absent, opened, func(f *Facts) { f.Member = MemberOfNone })), DoWait, "without an Auto Scaling group"},
		"in no group, not prepared":               {facts("", Alone, all(absent, with(busy(command)), func(f *Facts) { f.Member = MemberOfNone })), DoWait, "prepares"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Decide(c.facts, now)
			if got.Do != c.do || !strings.Contains(got.Reason, c.says) {
				t.Errorf("%+v\nwant %s, saying %q", got, c.do, c.says)
			}
			if got.Reason == "" {
				t.Error("no reason")
			}
		})
	}
}

// Some decisions must not follow from any facts.
func TestDecideNeverReturnsUnsafeActions(t *testing.T) {
	t.Parallel()
	dice := rand.New(rand.NewPCG(1, 2))
	counts := map[Do]int{}
	for range 100_000 {
		f := anything(dice)
		s := Decide(f, now)
		counts[s.Do]++
		goal := f.Journal.Leg.Goal
		switch s.Do {
		case DoOpen:
			stated := f.State.Position.Phase == lifecycle.Joining || f.State.Position.Phase == lifecycle.Serving
			known := lifecycle.Read(f.Target.Value).Lasting() == lifecycle.Serving ||
				(f.Target.Value == "" || f.Target.Value == "Detached") && (f.Member == MemberOfNone || f.Member == MemberIn && stated)
			if !known || !f.Target.Read || f.Target.Trouble != "" || !f.Journal.Wiping.IsZero() {
				t.Fatalf("opens the gate without a target that allows it: %+v", f)
			}
		case DoComplete, DoHeartbeat:
			way, _ := goal.phases()
			if f.State.Position != (lifecycle.Position{Phase: way, Step: lifecycle.Waiting}) || len(s.Hooks) == 0 || !f.Rules.Answer || goal == End {
				t.Fatalf("%s in the state %q on the way to %s", s.Do, f.State.Value, goal)
			}
			if s.Do == DoComplete && (now.Sub(f.State.At) > freshState || !f.State.At.After(sent(f))) {
				t.Fatalf("answers by a state %s old", now.Sub(f.State.At))
			}
			if s.Result == cloud.Abandon && (!f.Rules.Abandon || failed(f) == nil) {
				t.Fatalf("abandons: %+v", f)
			}
			for _, h := range s.Hooks {
				if (h == "lifeboat-terminate") != (goal == Return) || h == "codedeploy" {
					t.Fatalf("%s of %s on the way to %s", s.Do, h, goal)
				}
			}
		case DoWipe:
			if f.Gate || f.Kubelet == KubeletRuns {
				t.Fatalf("wipes under a kubelet that runs: %+v", f)
			}
		case DoWait:
			if !s.At.IsZero() && !s.At.After(now) {
				t.Fatalf("waits for a moment that is over: %+v: %+v", s, f)
			}
		}
	}
	for _, do := range []Do{DoWait, DoAsk, DoCorroborate, DoBegin, DoPrepare, DoOpen, DoClose, DoWipe, DoDescribe, DoHooks, DoHeartbeat, DoComplete, DoSettle, DoStop} {
		if counts[do] == 0 {
			t.Errorf("%s was never decided: %v", do, counts)
		}
	}
}

func one[T any](dice *rand.Rand, of ...T) T { return of[dice.IntN(len(of))] }

// anything are random facts, many of them impossible.
func anything(d *rand.Rand) Facts {
	moment := func() time.Time {
		return one(d, time.Time{}, ago(-time.Minute), ago(time.Second), ago(20*time.Second), ago(5*time.Minute), ago(time.Hour))
	}
	yes := func() bool { return d.IntN(2) == 0 }
	state := one(d, "", "Pending", "Pending:Wait", "Pending:Proceed", "InService", "Warmed:Pending", "Warmed:Pending:Wait", "Warmed:Stopped",
		"Terminating:Wait", "Standby", "Strange")
	callRecord := func() lifecycle.CallRecord {
		t := lifecycle.CallRecord{At: moment(), Extended: moment(), Completed: moment(), Tries: d.IntN(9)}
		t.Do = one(d, lifecycle.Nothing, lifecycle.Heartbeat, lifecycle.Complete)
		t.Outcome = one(d, lifecycle.Accepted, lifecycle.NoAction, lifecycle.Denied, lifecycle.Busy)
		return t
	}
	f := Facts{
		Instance: "i-0a1b2c3d4e5f60718", Boot: "b1", Gate: yes(), Kubelet: one(d, KubeletUnknown, KubeletOff, KubeletRuns),
		Target: Target{
			Read: d.IntN(9) > 0, At: moment(), Since: moment(), Trouble: one(d, "", "", "503"),
			Value: one(d, "", "InService", "InService", "Warmed:Stopped", "Warmed:Running", "Terminated", "Standby", "Detached", "Strange"),
		},
		Member: one(d, MemberUnknown, MemberIn, MemberOfNone),
		Journal: Journal{
			Served: yes(), NodeGone: yes(), Pooled: d.IntN(4) == 0, Node: one(d, "", "n"), Wiping: one(d, time.Time{}, time.Time{}, ago(time.Minute)),
			Gate: GateRecord{Boot: one(d, "b0", "b1"), At: moment(), Started: yes()},
			Leg:  Leg{Boot: one(d, "b0", "b1", "b1", "b1"), Goal: one(d, Serve, Alone, Warm, Return, End, Aside), At: moment(), Beat: moment(), Answered: one(d, "", "", "done")},
		},
		Node:  Node{At: moment(), Name: one(d, "", "n"), Ready: yes(), Deleting: d.IntN(5) == 0, Heartbeat: moment(), Trouble: one(d, "", "", "503")},
		State: State{At: moment(), Group: one(d, "", "g"), Value: state, Position: lifecycle.Read(state)},
		Talk:  Talk{Due: moment(), Look: moment(), Calls: map[string]lifecycle.CallRecord{"lifeboat-launch": callRecord(), "lifeboat-terminate": callRecord()}, Tries: d.IntN(9), Trouble: one(d, "", "503"), Denied: one(d, "", "no")},
		Again: moment(), Progress: moment(),
		Rules: Rules{AbsentFor: 2 * time.Minute, Answer: d.IntN(9) > 0, Abandon: yes(), Patience: 30 * time.Minute, Stall: 10 * time.Minute, Tries: 5, Parallel: 2},
	}
	if yes() {
		hooked(&f)
		f.Hooks.At = moment()
	}
	if yes() { // consistent facts
		f.Target.Read, f.Journal.Leg.Boot, f.Journal.Leg.Answered, f.Talk.Due, f.Rules.Answer = true, "b1", "", time.Time{}, true
		if goal, _ := aim(f, now); goal != "" {
			f.Journal.Leg.Goal = goal
		}
	}
	for range d.IntN(3) {
		isImage := yes()
		f.Stages = append(f.Stages, StageFact{Key: one(d, "a", "b"), Image: isImage, Done: yes(), Running: yes(), Tries: d.IntN(9), Again: moment()})
	}
	return f
}

// sent is when a result was last sent in the current leg.
func sent(f Facts) time.Time {
	last, _ := f.hold(now).Last(lifecycle.Complete)
	return last.At
}
