package scenario

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/sandbox/scenarios"
)

// story is a well-formed archive around a script.
func story(script string) string {
	return "A title\n\nSome prose.\n\n-- w.yaml --\nkind: Pod\n-- script --\n" + script
}

func TestParseEveryStatement(t *testing.T) {
	sc, err := Parse("x.txtar", []byte(story(`
node a type=c5.large zone=us-east-1b spot labels=team=web,tier=x taints=k=v:NoSchedule  # the interrupted one
node b
apply w.yaml
rules none
rules from w.yaml
lifeboat kill
wait pods ready within 90s
interrupt a b kind=spot via=fis notice=3m
by 2.5s node a cordoned
at deadline-10s pods lost=0 whole>=2
expect pod web-* asked after 60s
expect no pod cut
expect record a phase=Ignored policy=team replacement=NoCapacity
expect record b none
expect node a pods<=4
until deadline+3s
`)))
	if err != nil {
		t.Fatal(err)
	}
	var got []any
	for _, s := range sc.Steps {
		got = append(got, s.Do)
	}
	want := []any{
		NodeStatement{Names: []string{"a"}, Type: "c5.large", Zone: "us-east-1b", Spot: true, Labels: "team=web,tier=x", Taints: "k=v:NoSchedule"},
		NodeStatement{Names: []string{"b"}, Type: "m5.large"},
		ApplyStatement{File: "w.yaml"},
		RulesStatement{Set: RulesNone},
		RulesStatement{Set: RulesFrom, File: "w.yaml"},
		LifeboatStatement{Do: LifeboatKill},
		CheckStatement{Mode: CheckWait, Within: 90 * time.Second, Cond: podsReady{}},
		InterruptStatement{Nodes: []string{"a", "b"}, Kind: SpotInterruption, Via: ViaFIS, Notice: 3 * time.Minute},
		CheckStatement{Mode: CheckBy, When: When{Offset: 2500 * time.Millisecond}, Cond: nodeIs{"a", nodeCordoned}},
		CheckStatement{Mode: CheckAt, When: When{FromDeadline, -10 * time.Second}, Cond: counts{Bounds: []count{{Lost, "=", 0}, {Whole, ">=", 2}}}},
		CheckStatement{Cond: podIs{Glob: "web-*", Verdict: asked, Relation: "after", When: When{Offset: time.Minute}}},
		CheckStatement{Cond: quantified{"no", Cut}},
		CheckStatement{Cond: recordSays{Node: "a", Phase: "Ignored", Policy: "team", Replacement: "NoCapacity"}},
		CheckStatement{Cond: recordSays{Node: "b", None: true}},
		CheckStatement{Cond: nodePods{"a", "<=", 4}},
		UntilStatement{When{FromDeadline, 3 * time.Second}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if sc.Name != "x" || sc.Title != "A title" || sc.Prose != "Some prose." {
		t.Errorf("name %q, title %q, prose %q", sc.Name, sc.Title, sc.Prose)
	}
	if s := sc.Steps[0]; s.Line != 9 || !strings.HasPrefix(s.Text, "node a type=c5.large") || strings.Contains(s.Text, "#") {
		t.Errorf("first step is line %d, %q", s.Line, s.Text)
	}
}

func TestParseApprovalAndPlanStatements(t *testing.T) {
	sc, err := Parse("x.txtar", []byte("A title\n\nProse.\n\n-- p.yaml --\nschedule: \"${cron +20s}\"\n-- script --\n"+`
node a b c labels=x=y spot
lifeboat on sources=ec2 status-interval=2s
apply p.yaml
until window-5s
interrupt a b kind=scheduled notice=3h
always nodes draining<=1
always pods web-* ready>=1 leaving<=1
approve a by=dana
hold a by=dana
release a by=dana
expect node a as-before
expect pod web-* asked after job
expect pod web-* grace<=110
expect pod web-* owned
expect pod web-* unowned
expect job flush-* complete
at window+1s node a cordoned
call-off a b
interrupt c kind=status
interrupt c notice=5m via=fis
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []any
	for _, s := range sc.Steps {
		got = append(got, s.Do)
	}
	want := []any{
		NodeStatement{Names: []string{"a", "b", "c"}, Type: "m5.large", Spot: true, Labels: "x=y"},
		LifeboatStatement{Do: LifeboatOn, Args: []string{"--sources=ec2", "--status-interval=2s"}},
		ApplyStatement{File: "p.yaml"},
		UntilStatement{When{FromWindow, -5 * time.Second}},
		InterruptStatement{Nodes: []string{"a", "b"}, Kind: ScheduledChange, Via: ViaEC2, Notice: 3 * time.Hour, Code: "instance-stop"},
		AlwaysStatement{nodesCount{nodeDraining, "<=", 1}},
		AlwaysStatement{counts{Glob: "web-*", Bounds: []count{{podReadyNow, ">=", 1}, {Leaving, "<=", 1}}}},
		SayStatement{Act: SayApprove, Node: "a", By: "dana"},
		SayStatement{Act: SayHold, Node: "a", By: "dana"},
		SayStatement{Act: SayRelease, Node: "a", By: "dana"},
		CheckStatement{Cond: nodeIs{"a", nodeAsBefore}},
		CheckStatement{Cond: podIs{Glob: "web-*", Verdict: asked, Relation: "after", When: When{From: FromJob}}},
		CheckStatement{Cond: podGrace{"web-*", "<=", 110}},
		CheckStatement{Cond: podOwned{"web-*", true}},
		CheckStatement{Cond: podOwned{"web-*", false}},
		CheckStatement{Cond: jobIs{"flush-*", jobComplete}},
		CheckStatement{Mode: CheckAt, When: When{FromWindow, time.Second}, Cond: nodeIs{"a", nodeCordoned}},
		CallOffStatement{Nodes: []string{"a", "b"}},
		InterruptStatement{Nodes: []string{"c"}, Kind: FailedStatus, Via: ViaEC2},
		InterruptStatement{Nodes: []string{"c"}, Kind: SpotInterruption, Via: ViaFIS, Notice: 5 * time.Minute},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

func TestParseKarpenterScenarios(t *testing.T) {
	sc, err := Parse("x.txtar", []byte(story(`
karpenter on hears boot-delay=15s
wait node a launched within 2m
wait node b launched
karpenter off
karpenter on
capacity none type=m5.large zone=us-east-1a spot
capacity none on-demand
capacity none
capacity back
interrupt a kind=spot capacity=none
karpenter kill
always instances<=2
expect launched=2
expect claims>=1
expect node b unprotected
`)))
	if err != nil {
		t.Fatal(err)
	}
	var got []any
	for _, s := range sc.Steps {
		got = append(got, s.Do)
	}
	want := []any{
		KarpenterStatement{Do: KarpenterOn, Hears: true, BootDelay: 15 * time.Second},
		NamedStatement{Name: "a", Within: 2 * time.Minute},
		NamedStatement{Name: "b", Within: time.Minute},
		KarpenterStatement{Do: KarpenterOff},
		KarpenterStatement{Do: KarpenterOn},
		CapacityStatement{Type: "m5.large", Zone: "us-east-1a", CapacityType: "spot"},
		CapacityStatement{CapacityType: "on-demand"},
		CapacityStatement{},
		CapacityStatement{Back: true},
		InterruptStatement{Nodes: []string{"a"}, Kind: SpotInterruption, Via: ViaEC2, Notice: 2 * time.Minute, Exhausts: true},
		KarpenterStatement{Do: KarpenterKill},
		AlwaysStatement{machinesCount{runningInstances, "<=", 2}},
		CheckStatement{Cond: machinesCount{launchedInstances, "=", 2}},
		CheckStatement{Cond: machinesCount{nodeClaims, ">=", 1}},
		CheckStatement{Cond: nodeIs{"b", nodeUnprotected}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

func TestParseErrorsNameLineAndRemedy(t *testing.T) {
	const nodes = "node a spot\nnode b\n"
	for _, tc := range []struct{ name, text, want string }{
		{"no title", "-- script --\nnode a\n", `x.txtar:1: no title: begin with a line that says what the scenario shows`},
		{"no script", "T\n-- w.yaml --\n", `x.txtar: no script: add a file with the line -- script --`},
		{"empty script", "T\n-- script --\n# nothing\n", `x.txtar:4: the script is empty: begin with a node`},
		{"a file twice", "T\n-- a --\n-- a --\n-- script --\nnode a\n", `x.txtar: the file "a" is there twice`},
		{"unknown verb", story("nod a\n"), `x.txtar:8: unknown verb "nod": write node, apply, rules, lifeboat, karpenter, capacity, group, scale, refresh, balance, detach, terminate, agents, interrupt, call-off, approve, hold, release, wait, expect, always, at, by or until`},
		{"bad node name", story("node A\n"), `x.txtar:8: node name "A" is not lower-case letters, digits and -; write: node NAME`},
		{"unknown option", story("node a size=5\n"), `x.txtar:8: unknown option "size": there are labels, on-demand, spot, taints, type or zone; write: node NAME`},
		{"flag with a value", story("node a spot=yes\n"), `option spot: it takes no value`},
		{"option twice", story("node a type=m5.large type=c5.large\n"), `option type is there twice`},
		{"node twice", story("node a\nnode a\n"), `x.txtar:9: there is a node a already`},
		{"no such file", story("apply z.yaml\n"), `x.txtar:8: there is no file "z.yaml" in the archive: add it with the line -- z.yaml --; write: apply FILE`},
		{"unknown rules", story("rules some\n"), `unknown rules "some"; write: rules standard | rules none | rules from FILE`},
		{"unknown act", story("lifeboat up\n"), `unknown act "up"; write: lifeboat on [sources=sqs,ec2,autoscaling] [status-interval=2s]`},
		{"unknown node", story("interrupt a\n"), `there is no node "a" yet: begin with node a; write: interrupt NODE…`},
		{"no node at all", story("node spot\nnode\n"), `x.txtar:9: a node needs a name`},
		{"interrupt without a node", story(nodes + "interrupt kind=spot\n"), `at least one node has to be named; write: interrupt NODE…`},
		{"interrupted twice at once", story(nodes + "interrupt a a\n"), `node a is there twice`},
		{"scheduled for no time", story(nodes + "interrupt a kind=scheduled\n"), `a scheduled change is due at some time: write how far ahead, such as notice=3h`},
		{"scheduled by message", story(nodes + "interrupt a kind=scheduled notice=3h via=queue\n"), `a notice of kind scheduled comes from EC2: leave via=queue out`},
		{"code of spot", story(nodes + "interrupt a code=instance-stop\n"), `only a scheduled change has a code: leave code out, or write kind=scheduled`},
		{"unknown code", story(nodes + "interrupt a kind=scheduled notice=3h code=x\n"), `option code: unknown value "x": write instance-stop, `},
		{"status with notice", story(nodes + "interrupt a kind=status notice=1m\n"), `a notice of kind status has no deadline: leave notice out`},
		{"call off nothing", story(nodes + "interrupt a\ncall-off a\n"), `nothing is planned yet: AWS calls off what an interrupt of kind=scheduled has planned`},
		{"call off too much", story(nodes + "interrupt a kind=scheduled notice=3h\ncall-off a by=x\n"), `"by=x" is too much`},
		{"approve without a user", story(nodes + "interrupt a\napprove a\n"), `by=NAME is required; write: approve NODE by=NAME`},
		{"two approved", story(nodes + "interrupt a b\nhold a b by=x\n"), `hold is about one node`},
		{"approved before", story(nodes + "approve a by=x\n"), `there is nothing to approve before interrupt`},
		{"unknown placeholder", strings.Replace(story("apply w.yaml\n"), "Pod", "${USER}", 1), `x.txtar:8: file w.yaml: unknown placeholder "${USER}": write one such as ${cron +20s}`},
		{"placeholder without time", strings.Replace(story("apply w.yaml\n"), "Pod", "${cron soon}", 1), `unknown placeholder "${cron soon}"`},
		{"placeholder left open", strings.Replace(story("apply w.yaml\n"), "Pod", "${cron", 1), `unknown placeholder "${cron"`},
		{"two windows", strings.Replace(story("apply w.yaml\n"), "Pod", "${cron +20s} ${cron +30s}", 1), `${cron +30s} opens another window than ${cron +20s}: a story has one`},
		{"window twice", strings.Replace(story("apply w.yaml\napply w.yaml\n"), "Pod", "${cron +20s}", 1), `a story has one window, and there is one already`},
		{"no window", story(nodes + "until window\n"), `no window opens: apply a file with ${cron +20s} before`},
		{"at a job", story(nodes + "interrupt a\nat job+1s node a cordoned\n"), `a moment cannot be counted from job here: write wait job NAME complete`},
		{"until a job", story(nodes + "interrupt a\nuntil job\n"), `a moment cannot be counted from job here`},
		{"nodes alone", story("expect nodes ready now\n"), `nodes goes with a count, as in nodes draining<=1`},
		{"unknown nodes", story("expect nodes happy=1\n"), `unknown value "happy": write ready, not-ready, `},
		{"ready without pattern", story("expect pods ready>=1\n"), `unknown value "ready": write whole, `},
		{"unknown job state", story("expect job x done\n"), `unknown value "done": write running, complete, failed or none`},
		{"job without state", story("expect job x\n"), `job goes with a name and a state, as in job flush-* complete`},
		{"no grace", story("expect pod x grace\n"), `"grace" is no count: write one such as grace<=110`},
		{"misspelt grace", story("expect pod x graces<=3\n"), `unknown value "graces<=3": write whole, `},
		{"unknown kind", story(nodes + "interrupt a kind=flood\n"), `option kind: unknown value "flood": write spot, rebalance, scheduled or status`},
		{"rebalance by FIS", story(nodes + "interrupt a kind=rebalance via=fis\n"), `FIS sends the recommendation only together with an interruption: leave via=fis out`},
		{"rebalance with notice", story(nodes + "interrupt a kind=rebalance notice=1m\n"), `a notice of kind rebalance has no deadline: leave notice out`},
		{"short FIS notice", story(nodes + "interrupt a via=fis notice=60s\n"), `FIS interrupts after 2m to 15m, not 1m0s`},
		{"clock not started", story(nodes + "by 3s node a cordoned\n"), `the clock starts with interrupt; before it there is no 3s; write: by 3s CONDITION`},
		{"deadline without one", story(nodes + "interrupt a kind=rebalance\nuntil deadline\n"), `a notice of this kind has no deadline`},
		{"no moment", story(nodes + "interrupt a\nuntil tea\n"), `"tea" is no moment: write one such as 60s, deadline, deadline-10s or window+5s`},
		{"sign without deadline", story(nodes + "interrupt a\nuntil +3s\n"), `"+3s" is no moment`},
		{"deadline without sign", story(nodes + "interrupt a\nuntil deadline3s\n"), `"deadline3s" is no moment`},
		{"no condition", story("expect pods\n"), `a condition is missing: pods ready | `},
		{"unknown condition", story("expect cats asleep\n"), `unknown condition "cats": there are pods ready`},
		{"unknown count", story("expect pods lost\n"), `"lost" is no count: write one such as lost=0 or whole>=2, or ready`},
		{"unknown verdict", story("expect every pod happy\n"), `unknown value "happy": write whole, cut, lost, kept, leaving or asked`},
		{"quantifier alone", story("expect every one whole\n"), `every goes with pod and a verdict, as in every pod whole`},
		{"bad pattern", story("expect pod a[ whole\n"), `"a[" is no pattern: write one such as web-*`},
		{"too much", story(nodes + "interrupt a\nexpect pod a whole after 3s\n"), `"after 3s" is too much: only asked goes with before or after and a moment`},
		{"unknown state", story(nodes + "expect node a happy\n"), `unknown value "happy": write ready, not-ready, cordoned, at-risk, open, empty, draining, dark, gone, as-before, protected or unprotected`},
		{"unknown record field", story(nodes + "expect record a colour=red\n"), `unknown option "colour": there are action, kinds, phase, policy, replacement, sources or wiring`},
		{"Karpenter too late", story(nodes + "karpenter on\n"), `x.txtar:10: nothing provisions in this story: begin the script with karpenter on; write: karpenter on`},
		{"Karpenter off at first", story("karpenter off\n"), `the first thing that is done to Karpenter is karpenter on`},
		{"Karpenter nothing", story("karpenter\n"), `an act is missing; write: karpenter on [hears]`},
		{"Karpenter up", story("karpenter on\nkarpenter up\n"), `unknown value "up": write on, off or kill`},
		{"Karpenter hears later", story("karpenter on\nkarpenter on hears\n"), `"hears" is too much: only the first line says more`},
		{"launched without a provisioner", story(nodes + "wait node c launched\n"), `x.txtar:10: nothing launches nodes in this story: begin the script with karpenter on, or make a group; write: wait CONDITION`},
		{"launched twice", story("karpenter on\nwait node c launched\nwait node c launched\n"), `there is a node c already`},
		{"launched at once", story("karpenter on\nexpect node c launched\n"), `there is no node "c" yet`},
		{"claims without", story("expect claims=1\n"), `nothing provisions in this story`},
		{"unknown machines", story("expect pigs=1\n"), `unknown value "pigs": write instances, launched or claims`},
		{"a count alone", story("expect instances\n"), `a condition is missing: pods ready | `},
		{"unknown capacity", story("capacity some\n"), `unknown capacity "some"; write: capacity none`},
		{"unknown offering", story("capacity none size=5\n"), `unknown option "size": there are on-demand, spot, type or zone`},
		{"exhausted by FIS", story(nodes + "interrupt a via=fis capacity=none\n"), `capacity runs out as EC2 takes a spot instance back: leave capacity out, or write kind=spot via=ec2`},
		{"exhausted a little", story(nodes + "interrupt a capacity=some\n"), `option capacity: unknown value "some": write none`},
		{"bad duration", story("wait pods ready within soon\n"), `"soon" is no duration: write one such as 90s`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Parse("x", []byte(tc.text))
			var parse *ParseError
			if !errors.As(err, &parse) {
				t.Fatalf("Parse() = %v, want a *ParseError", err)
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Parse() = %q, want it to contain %q", err, tc.want)
			}
		})
	}
}

func TestWhenRoundTrip(t *testing.T) {
	for _, text := range []string{"1m0s", "2.5s", "deadline", "deadline+3s", "deadline-10s", "window", "window-1m0s", "job"} {
		w, err := parseWhen(text)
		if err != nil || w.String() != text {
			t.Errorf("parseWhen(%q) = %s, %v", text, w, err)
		}
	}
}

// FuzzParse: for any input, Parse returns a scenario with steps, or an error about a line of the
// text.
func FuzzParse(f *testing.F) {
	names, err := scenarios.Names()
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		text, err := scenarios.Read(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(story("node a\ninterrupt a\nby deadline-1s pods lost<=3\n")))
	f.Fuzz(func(t *testing.T, text []byte) {
		sc, err := Parse("fuzz", text)
		if err == nil {
			if len(sc.Steps) == 0 || sc.Title == "" {
				t.Error("a scenario without steps or title")
			}
			for i, s := range sc.Steps {
				if s.Do == nil || s.Line <= 0 || i > 0 && s.Line <= sc.Steps[i-1].Line {
					t.Errorf("step %d: %+v", i, s)
				}
			}
			return
		}
		var parse *ParseError
		if !errors.As(err, &parse) {
			t.Fatalf("%v is no *ParseError", err)
		}
		if lines := strings.Count(string(text), "\n") + 2; parse.Line < 0 || parse.Line > lines {
			t.Errorf("line %d of %d", parse.Line, lines)
		}
	})
}
