package scenario

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/scenarios"
)

// archive returns a well-formed archive around a script.
func archive(script string) string {
	return "A title\n\nSome prose.\n\n-- w.yaml --\nkind: Pod\n-- script --\n" + script
}

func TestParseEveryStatement(t *testing.T) {
	sc, err := Parse("x.txtar", []byte(archive(`
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
		CheckStatement{Cond: recordIs{Node: "a", Phase: "Ignored", Policy: "team", Replacement: "NoCapacity"}},
		CheckStatement{Cond: recordIs{Node: "b", None: true}},
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
always deployment web available>=3
always deployments serving
always deployments available
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
cancel a b
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
		AlwaysStatement{deploymentAvailable{"web", ">=", 3}},
		AlwaysStatement{deploymentsServing{}},
		AlwaysStatement{deploymentsAvailable{}},
		UserActionStatement{Act: UserApprove, Node: "a", By: "dana"},
		UserActionStatement{Act: UserHold, Node: "a", By: "dana"},
		UserActionStatement{Act: UserRelease, Node: "a", By: "dana"},
		CheckStatement{Cond: nodeIs{"a", nodeAsBefore}},
		CheckStatement{Cond: podIs{Glob: "web-*", Verdict: asked, Relation: "after", When: When{From: FromJob}}},
		CheckStatement{Cond: podGrace{"web-*", "<=", 110}},
		CheckStatement{Cond: podOwned{"web-*", true}},
		CheckStatement{Cond: podOwned{"web-*", false}},
		CheckStatement{Cond: jobIs{"flush-*", jobComplete}},
		CheckStatement{Mode: CheckAt, When: When{FromWindow, time.Second}, Cond: nodeIs{"a", nodeCordoned}},
		CancelStatement{Nodes: []string{"a", "b"}},
		InterruptStatement{Nodes: []string{"c"}, Kind: FailedStatus, Via: ViaEC2},
		InterruptStatement{Nodes: []string{"c"}, Kind: SpotInterruption, Via: ViaFIS, Notice: 5 * time.Minute},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

func TestParseKarpenterScenarios(t *testing.T) {
	sc, err := Parse("x.txtar", []byte(archive(`
boot 15s
karpenter on own-queue
wait node a launched within 2m
wait node b launched
karpenter off
karpenter on
capacity none type=m5.large zone=us-east-1a spot
capacity none on-demand
capacity none
capacity back
boot ordinary
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
		BootStatement{Delay: 15 * time.Second},
		KarpenterStatement{Do: KarpenterOn, OwnQueue: true},
		NamedStatement{Name: "a", Within: 2 * time.Minute},
		NamedStatement{Name: "b", Within: time.Minute},
		KarpenterStatement{Do: KarpenterOff},
		KarpenterStatement{Do: KarpenterOn},
		CapacityStatement{Type: "m5.large", Zone: "us-east-1a", CapacityType: "spot"},
		CapacityStatement{CapacityType: "on-demand"},
		CapacityStatement{},
		CapacityStatement{Back: true},
		BootStatement{},
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
		{"no title", "-- script --\nnode a\n", `x.txtar:1: no title: begin with a line that describes what the scenario shows`},
		{"no script", "T\n-- w.yaml --\n", `x.txtar: no script: add a file with the line -- script --`},
		{"empty script", "T\n-- script --\n# nothing\n", `x.txtar:4: the script is empty: begin with a node`},
		{"a file twice", "T\n-- a --\n-- a --\n-- script --\nnode a\n", `x.txtar: the file "a" exists twice`},
		{"unknown verb", archive("nod a\n"), `x.txtar:8: unknown verb "nod": write node, apply, rules, lifeboat, boot, karpenter, capacity, group, scale, refresh, balance, detach, terminate, agents, interrupt, cancel, chaos, approve, hold, release, wait, expect, always, at, by or until`},
		{"bad node name", archive("node A\n"), `x.txtar:8: node name "A" is not lower-case letters, digits and -; write: node NAME`},
		{"unknown option", archive("node a size=5\n"), `x.txtar:8: unknown option "size": there are labels, on-demand, spot, taints, type or zone; write: node NAME`},
		{"flag with a value", archive("node a spot=yes\n"), `option spot: it takes no value`},
		{"option twice", archive("node a type=m5.large type=c5.large\n"), `option type is given twice`},
		{"node twice", archive("node a\nnode a\n"), `x.txtar:9: there is a node a already`},
		{"no such file", archive("apply z.yaml\n"), `x.txtar:8: there is no file "z.yaml" in the archive: add it with the line -- z.yaml --; write: apply FILE`},
		{"unknown rules", archive("rules some\n"), `unknown rules "some"; write: rules standard | rules none | rules from FILE`},
		{"unknown act", archive("lifeboat up\n"), `unknown act "up"; write: lifeboat on [sources=sqs,ec2,autoscaling] [status-interval=2s]`},
		{"unknown node", archive("interrupt a\n"), `there is no node "a" yet: begin with node a; write: interrupt NODE…`},
		{"no node at all", archive("node spot\nnode\n"), `x.txtar:9: a node needs a name`},
		{"interrupt without a node", archive(nodes + "interrupt kind=spot\n"), `at least one node is required; write: interrupt NODE…`},
		{"interrupted twice at once", archive(nodes + "interrupt a a\n"), `node a is named twice`},
		{"scheduled for no time", archive(nodes + "interrupt a kind=scheduled\n"), `a scheduled change has a start time: write how far ahead it is, such as notice=3h`},
		{"scheduled by message", archive(nodes + "interrupt a kind=scheduled notice=3h via=queue\n"), `a notice of kind scheduled comes from EC2: leave via=queue out`},
		{"code of spot", archive(nodes + "interrupt a code=instance-stop\n"), `only a scheduled change has a code: leave code out, or write kind=scheduled`},
		{"unknown code", archive(nodes + "interrupt a kind=scheduled notice=3h code=x\n"), `option code: unknown value "x": write instance-stop, `},
		{"status with notice", archive(nodes + "interrupt a kind=status notice=1m\n"), `a notice of kind status has no deadline: leave notice out`},
		{"cancel nothing", archive(nodes + "interrupt a\ncancel a\n"), `there is no scheduled event to cancel: write an interrupt of kind=scheduled before`},
		{"cancel too much", archive(nodes + "interrupt a kind=scheduled notice=3h\ncancel a by=x\n"), `"by=x" is too much`},
		{"approve without a user", archive(nodes + "interrupt a\napprove a\n"), `by=NAME is required; write: approve NODE by=NAME`},
		{"two approved", archive(nodes + "interrupt a b\nhold a b by=x\n"), `hold is about one node`},
		{"approved before", archive(nodes + "approve a by=x\n"), `there is nothing to approve before interrupt`},
		{"unknown placeholder", strings.Replace(archive("apply w.yaml\n"), "Pod", "${USER}", 1), `x.txtar:8: file w.yaml: unknown placeholder "${USER}": write one such as ${cron +20s}`},
		{"placeholder without time", strings.Replace(archive("apply w.yaml\n"), "Pod", "${cron soon}", 1), `unknown placeholder "${cron soon}"`},
		{"placeholder left open", strings.Replace(archive("apply w.yaml\n"), "Pod", "${cron", 1), `unknown placeholder "${cron"`},
		{"two windows", strings.Replace(archive("apply w.yaml\n"), "Pod", "${cron +20s} ${cron +30s}", 1), `${cron +30s} opens another window than ${cron +20s}: a scenario has at most one`},
		{"window twice", strings.Replace(archive("apply w.yaml\napply w.yaml\n"), "Pod", "${cron +20s}", 1), `a scenario has at most one window, and this is the second`},
		{"no window", archive(nodes + "until window\n"), `no window opens: apply a file with ${cron +20s} before`},
		{"at a job", archive(nodes + "interrupt a\nat job+1s node a cordoned\n"), `a moment cannot be counted from job here: write wait job NAME complete`},
		{"until a job", archive(nodes + "interrupt a\nuntil job\n"), `a moment cannot be counted from job here`},
		{"nodes alone", archive("expect nodes ready now\n"), `nodes goes with a count, as in nodes draining<=1`},
		{"unknown nodes", archive("expect nodes happy=1\n"), `unknown value "happy": write ready, not-ready, `},
		{"ready without pattern", archive("expect pods ready>=1\n"), `unknown value "ready": write whole, `},
		{"unknown job state", archive("expect job x done\n"), `unknown value "done": write running, complete, failed or none`},
		{"job without state", archive("expect job x\n"), `job goes with a name and a state, as in job flush-* complete`},
		{"no grace", archive("expect pod x grace\n"), `"grace" is no count: write one such as grace<=110`},
		{"misspelt grace", archive("expect pod x graces<=3\n"), `unknown value "graces<=3": write whole, `},
		{"unknown kind", archive(nodes + "interrupt a kind=flood\n"), `option kind: unknown value "flood": write spot, rebalance, scheduled or status`},
		{"rebalance by FIS", archive(nodes + "interrupt a kind=rebalance via=fis\n"), `FIS sends the recommendation only together with an interruption: leave via=fis out`},
		{"rebalance with notice", archive(nodes + "interrupt a kind=rebalance notice=1m\n"), `a notice of kind rebalance has no deadline: leave notice out`},
		{"short FIS notice", archive(nodes + "interrupt a via=fis notice=60s\n"), `FIS interrupts after 2m to 15m, not 1m0s`},
		{"clock not started", archive(nodes + "by 3s node a cordoned\n"), `the clock starts with interrupt; before it there is no 3s; write: by 3s CONDITION`},
		{"deadline without one", archive(nodes + "interrupt a kind=rebalance\nuntil deadline\n"), `a notice of this kind has no deadline`},
		{"no moment", archive(nodes + "interrupt a\nuntil tea\n"), `"tea" is no moment: write one such as 60s, deadline, deadline-10s or window+5s`},
		{"sign without deadline", archive(nodes + "interrupt a\nuntil +3s\n"), `"+3s" is no moment`},
		{"deadline without sign", archive(nodes + "interrupt a\nuntil deadline3s\n"), `"deadline3s" is no moment`},
		{"no condition", archive("expect pods\n"), `a condition is missing: pods ready | `},
		{"unknown condition", archive("expect cats asleep\n"), `unknown condition "cats": there are pods ready`},
		{"unknown count", archive("expect pods lost\n"), `"lost" is no count: write one such as lost=0 or whole>=2, or ready`},
		{"unknown verdict", archive("expect every pod happy\n"), `unknown value "happy": write whole, cut, lost, kept, leaving or asked`},
		{"quantifier alone", archive("expect every one whole\n"), `every goes with pod and a verdict, as in every pod whole`},
		{"bad pattern", archive("expect pod a[ whole\n"), `"a[" is no pattern: write one such as web-*`},
		{"too much", archive(nodes + "interrupt a\nexpect pod a whole after 3s\n"), `"after 3s" is too much: only asked goes with before or after and a moment`},
		{"unknown state", archive(nodes + "expect node a happy\n"), `unknown value "happy": write ready, not-ready, cordoned, at-risk, open, empty, draining, powered-off, gone, as-before, protected or unprotected`},
		{"unknown record field", archive(nodes + "expect record a colour=red\n"), `unknown option "colour": there are action, kinds, phase, policy, replacement, sources or wiring`},
		{"Karpenter too late", archive(nodes + "karpenter on\n"), `x.txtar:10: nothing provisions in this scenario: begin the script with karpenter on; write: karpenter on`},
		{"Karpenter off at first", archive("karpenter off\n"), `karpenter on must be the first line about Karpenter`},
		{"boot without a time", archive("boot\n"), `boot goes with one time; write: boot 2s | boot ordinary`},
		{"boot of no time", archive("boot soon\n"), `"soon" is no duration: write one such as 90s; write: boot 2s | boot ordinary`},
		{"Karpenter nothing", archive("karpenter\n"), `an act is missing; write: karpenter on [own-queue]`},
		{"Karpenter up", archive("karpenter on\nkarpenter up\n"), `unknown value "up": write on, off or kill`},
		{"own queue later", archive("karpenter on\nkarpenter on own-queue\n"), `"own-queue" is too much: only the first line takes options`},
		{"launched without a provisioner", archive(nodes + "wait node c launched\n"), `x.txtar:10: nothing launches nodes in this scenario: begin the script with karpenter on, or make a group; write: wait CONDITION`},
		{"launched twice", archive("karpenter on\nwait node c launched\nwait node c launched\n"), `there is a node c already`},
		{"launched at once", archive("karpenter on\nexpect node c launched\n"), `there is no node "c" yet`},
		{"claims without", archive("expect claims=1\n"), `nothing provisions in this scenario`},
		{"unknown machines", archive("expect pigs=1\n"), `unknown value "pigs": write instances, launched or claims`},
		{"a count alone", archive("expect instances\n"), `a condition is missing: pods ready | `},
		{"unknown capacity", archive("capacity some\n"), `unknown capacity "some"; write: capacity none`},
		{"unknown offering", archive("capacity none size=5\n"), `unknown option "size": there are on-demand, spot, type or zone`},
		{"exhausted by FIS", archive(nodes + "interrupt a via=fis capacity=none\n"), `EC2 only lacks capacity when it reclaims a spot instance: leave capacity out, or write kind=spot via=ec2`},
		{"exhausted a little", archive(nodes + "interrupt a capacity=some\n"), `option capacity: unknown value "some": write none`},
		{"bad duration", archive("wait pods ready within soon\n"), `"soon" is no duration: write one such as 90s`},
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
	f.Add([]byte(archive("node a\ninterrupt a\nby deadline-1s pods lost<=3\n")))
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

func TestParseChaos(t *testing.T) {
	t.Parallel()
	parse := func(line string) (*Scenario, error) {
		return Parse("x", []byte("Title\n-- script --\nnode a\n"+line+"\n"))
	}
	sc, err := parse("chaos cut-lifeboatd-api for=7s seed=3")
	if err != nil {
		t.Fatal(err)
	}
	st, ok := sc.Steps[1].Do.(ChaosStatement)
	if !ok || st.Fault.Name != "cut-lifeboatd-api" || st.For != 7*time.Second || st.Seed != 3 {
		t.Errorf("parsed %+v", sc.Steps[1].Do)
	}
	if o := sc.Sandbox(sandbox.Options{}); !o.Chaos {
		t.Error("the sandbox is not prepared for faults")
	}
	for _, wrong := range []string{"chaos", "chaos cut-lifeboatd-app", "chaos kill-lifeboatd seed=x"} {
		if _, err := parse(wrong); err == nil {
			t.Errorf("%s: no error", wrong)
		}
	}
}
