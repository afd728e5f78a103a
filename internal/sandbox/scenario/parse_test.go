package scenario

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/scenarios"
)

// story is a well-formed archive around a script.
func story(script string) string {
	return "A title\n\nSome prose.\n\n-- w.yaml --\nkind: Pod\n-- script --\n" + script
}

func TestParseReadsEveryStatement(t *testing.T) {
	sc, err := Parse("x.txtar", []byte(story(`
node a type=c5.large zone=us-east-1b spot labels=team=web,tier=x taints=k=v:NoSchedule  # the doomed one
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
expect record a phase=Ignored policy=team
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
		NodeStatement{Name: "a", Type: "c5.large", Zone: "us-east-1b", Spot: true, Labels: "team=web,tier=x", Taints: "k=v:NoSchedule"},
		NodeStatement{Name: "b", Type: "m5.large"},
		ApplyStatement{File: "w.yaml"},
		RulesStatement{Set: RulesNone},
		RulesStatement{Set: RulesFrom, File: "w.yaml"},
		LifeboatStatement{Do: LifeboatKill},
		CheckStatement{Mode: CheckWait, Within: 90 * time.Second, Cond: podsReady{}},
		InterruptStatement{Nodes: []string{"a", "b"}, Kind: SpotInterruption, Via: ViaFIS, Notice: 3 * time.Minute},
		CheckStatement{Mode: CheckBy, When: When{Offset: 2500 * time.Millisecond}, Cond: nodeIs{"a", nodeCordoned}},
		CheckStatement{Mode: CheckAt, When: When{true, -10 * time.Second}, Cond: counts{{Lost, "=", 0}, {Whole, ">=", 2}}},
		CheckStatement{Cond: podIs{Glob: "web-*", Verdict: asked, Relation: "after", When: When{Offset: time.Minute}}},
		CheckStatement{Cond: quantified{"no", Cut}},
		CheckStatement{Cond: recordSays{Node: "a", Phase: "Ignored", Policy: "team"}},
		CheckStatement{Cond: recordSays{Node: "b", None: true}},
		CheckStatement{Cond: nodePods{"a", "<=", 4}},
		UntilStatement{When{true, 3 * time.Second}},
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

func TestParseErrorsNameTheLineAndSayWhatToWrite(t *testing.T) {
	const nodes = "node a spot\nnode b\n"
	for _, tc := range []struct{ name, text, want string }{
		{"no title", "-- script --\nnode a\n", `x.txtar:1: no title: begin with a line that says what the scenario shows`},
		{"no script", "T\n-- w.yaml --\n", `x.txtar: no script: add a file with the line -- script --`},
		{"empty script", "T\n-- script --\n# nothing\n", `x.txtar:4: the script is empty: begin with a node`},
		{"a file twice", "T\n-- a --\n-- a --\n-- script --\nnode a\n", `x.txtar: the file "a" is there twice`},
		{"unknown verb", story("nod a\n"), `x.txtar:8: unknown verb "nod": write node, apply, rules, lifeboat, agents, interrupt, wait, expect, at, by or until`},
		{"bad node name", story("node A\n"), `x.txtar:8: node name "A" is not lower-case letters, digits and -; write: node NAME`},
		{"unknown option", story("node a size=5\n"), `x.txtar:8: unknown option "size": there are labels, on-demand, spot, taints, type or zone; write: node NAME`},
		{"flag with a value", story("node a spot=yes\n"), `option spot: it takes no value`},
		{"option twice", story("node a type=m5.large type=c5.large\n"), `option type is there twice`},
		{"node twice", story("node a\nnode a\n"), `x.txtar:9: there is a node a already`},
		{"no such file", story("apply z.yaml\n"), `x.txtar:8: there is no file "z.yaml" in the archive: add it with the line -- z.yaml --; write: apply FILE`},
		{"unknown rules", story("rules some\n"), `unknown rules "some"; write: rules standard | rules none | rules from FILE`},
		{"unknown act", story("lifeboat up\n"), `unknown act "up"; write: lifeboat on [sources=sqs,ec2,autoscaling] | lifeboat off | lifeboat kill`},
		{"unknown node", story("interrupt a\n"), `there is no node "a" yet: begin with node a; write: interrupt NODE…`},
		{"interrupt twice", story(nodes + "interrupt a\ninterrupt b\n"), `x.txtar:11: the clock runs already`},
		{"unknown kind", story(nodes + "interrupt a kind=flood\n"), `option kind: unknown value "flood": write spot or rebalance`},
		{"rebalance by FIS", story(nodes + "interrupt a kind=rebalance via=fis\n"), `FIS sends the recommendation only together with an interruption: leave via=fis out`},
		{"rebalance with notice", story(nodes + "interrupt a kind=rebalance notice=1m\n"), `a rebalance recommendation has no deadline: leave notice out`},
		{"short FIS notice", story(nodes + "interrupt a via=fis notice=60s\n"), `FIS interrupts after 2m to 15m, not 1m0s`},
		{"clock not started", story(nodes + "by 3s node a cordoned\n"), `the clock starts with interrupt; before it there is no 3s; write: by 3s CONDITION`},
		{"deadline without one", story(nodes + "interrupt a kind=rebalance\nuntil deadline\n"), `a rebalance recommendation has no deadline`},
		{"no moment", story(nodes + "interrupt a\nuntil tea\n"), `"tea" is no moment: write one such as 60s, deadline or deadline-10s`},
		{"sign without deadline", story(nodes + "interrupt a\nuntil +3s\n"), `"+3s" is no moment`},
		{"deadline without sign", story(nodes + "interrupt a\nuntil deadline3s\n"), `"deadline3s" is no moment`},
		{"no condition", story("expect pods\n"), `a condition is missing: pods ready | `},
		{"unknown condition", story("expect cats asleep\n"), `unknown condition "cats": there are pods ready`},
		{"unknown count", story("expect pods lost\n"), `"lost" is no count: write one such as lost=0 or whole>=2, or ready`},
		{"unknown verdict", story("expect every pod happy\n"), `unknown value "happy": write whole, cut, lost, kept, leaving or asked`},
		{"quantifier alone", story("expect every one whole\n"), `every goes with pod and a verdict, as in every pod whole`},
		{"bad pattern", story("expect pod a[ whole\n"), `"a[" is no pattern: write one such as web-*`},
		{"too much", story(nodes + "interrupt a\nexpect pod a whole after 3s\n"), `"after 3s" is too much: only asked goes with before or after and a moment`},
		{"unknown state", story(nodes + "expect node a happy\n"), `unknown value "happy": write ready, not-ready, cordoned, at-risk, open, empty, dark or gone`},
		{"unknown record field", story(nodes + "expect record a colour=red\n"), `unknown option "colour": there are action, kinds, phase, policy, sources or wiring`},
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

func TestWhenWritesItselfAsItIsRead(t *testing.T) {
	for _, text := range []string{"1m0s", "2.5s", "deadline", "deadline+3s", "deadline-10s"} {
		w, err := parseWhen(text)
		if err != nil || w.String() != text {
			t.Errorf("parseWhen(%q) = %s, %v", text, w, err)
		}
	}
}

// FuzzParse: whatever is thrown at it, Parse gives a scenario with steps, or an
// error that is about a line of the text.
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
