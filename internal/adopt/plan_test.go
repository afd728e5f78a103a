package adopt

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func states(p Plan) map[string]State {
	all := map[string]State{}
	for _, s := range p {
		all[s.ID] = s.State
	}
	return all
}

// reads is a cluster in which Karpenter reads its queue, and Lifeboat receives notices.
func reads(change func(*Facts)) Facts {
	f := Facts{
		Tool: Kubectl, Chart: "oci://c", Rules: []string{"KarpenterSpot"},
		Karpenter: Deployment{Namespace: "kube-system", Name: "karpenter", Version: "1.14.1", Release: "karpenter", Queue: "prod", RolledOut: true},
		Polls:     true,
	}
	if change != nil {
		change(&f)
	}
	return f
}

func off(f *Facts) { f.Karpenter.Queue, f.Karpenter.Was = "", "prod" }

func TestCutOver(t *testing.T) {
	for name, c := range map[string]struct {
		facts   func(*Facts)
		want    map[string]State
		remains bool
	}{
		"to do":               {nil, map[string]State{StepReceive: Done, StepPolls: Optional, StepQueue: Change, StepRules: Optional}, true},
		"Lifeboat is away":    {func(f *Facts) { f.Unready = []string{"no"} }, map[string]State{StepReceive: Blocked, StepPolls: Optional, StepQueue: Change, StepRules: Optional}, true},
		"Helm":                {func(f *Facts) { f.Tool = Helm }, map[string]State{StepReceive: Done, StepPolls: Optional, StepQueue: Manual, StepRules: Optional}, true},
		"Terraform":           {func(f *Facts) { f.Tool = Terraform }, map[string]State{StepReceive: Done, StepPolls: Optional, StepQueue: Manual, StepRules: Optional}, true},
		"in an argument":      {func(f *Facts) { f.Karpenter.Elsewhere = "the argument" }, map[string]State{StepReceive: Done, StepPolls: Optional, StepQueue: Manual, StepRules: Optional}, true},
		"the guard is on":     {func(f *Facts) { f.Guard = true }, map[string]State{StepReceive: Done, StepPolls: Done, StepQueue: Change, StepRules: Optional}, true},
		"an older Karpenter":  {func(f *Facts) { f.Polls = false }, map[string]State{StepReceive: Done, StepQueue: Change, StepRules: Optional}, true},
		"pods restart":        {func(f *Facts) { off(f); f.Karpenter.RolledOut = false }, map[string]State{StepReceive: Done, StepPolls: Optional, StepQueue: Change, StepRules: Optional}, true},
		"done":                {off, map[string]State{StepReceive: Done, StepPolls: Optional, StepQueue: Done, StepRules: Optional}, false},
		"done, without rules": {func(f *Facts) { off(f); f.Rules = nil }, map[string]State{StepReceive: Done, StepPolls: Optional, StepQueue: Done, StepRules: Done}, false},
		"only Lifeboat sends": {func(f *Facts) { f.Forwards, f.Rules = true, nil }, map[string]State{StepReceive: Done, StepPolls: Optional, StepQueue: Done, StepRules: Done}, false},
		"rules send too":      {func(f *Facts) { f.Forwards = true }, map[string]State{StepReceive: Done, StepPolls: Optional, StepQueue: Change, StepRules: Optional}, true},
		"perhaps rules send":  {func(f *Facts) { f.Forwards, f.Rules, f.RulesUnread = true, nil, "denied" }, map[string]State{StepReceive: Done, StepPolls: Optional, StepQueue: Change, StepRules: Optional}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := CutOver(reads(c.facts))
			if diff := cmp.Diff(c.want, states(p)); diff != "" || p.Remains() != c.remains {
				t.Errorf("remains %t (-want +got):\n%s", p.Remains(), diff)
			}
		})
	}
}

func TestBack(t *testing.T) {
	for name, c := range map[string]struct {
		facts   func(*Facts)
		want    map[string]State
		remains bool
	}{
		"to do":              {off, map[string]State{StepRules: Done, StepQueue: Change, StepLeave: Optional}, true},
		"Helm":               {func(f *Facts) { off(f); f.Tool = Helm }, map[string]State{StepRules: Done, StepQueue: Manual, StepLeave: Optional}, true},
		"no rule":            {func(f *Facts) { off(f); f.Rules = nil }, map[string]State{StepRules: Blocked, StepQueue: Change, StepLeave: Optional}, true},
		"rules not read":     {func(f *Facts) { off(f); f.RulesUnread = "denied" }, map[string]State{StepRules: Blocked, StepQueue: Change, StepLeave: Optional}, true},
		"queue not known":    {func(f *Facts) { off(f); f.Karpenter.Was = "" }, map[string]State{StepRules: Done, StepQueue: Blocked, StepLeave: Optional}, true},
		"pods restart":       {func(f *Facts) { f.Karpenter.RolledOut = false }, map[string]State{StepRules: Done, StepQueue: Change, StepLeave: Optional}, true},
		"done":               {nil, map[string]State{StepRules: Done, StepQueue: Done, StepLeave: Optional}, false},
		"done, with a guard": {func(f *Facts) { f.Guard = true }, map[string]State{StepRules: Done, StepQueue: Done, StepGuard: Optional, StepLeave: Optional}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := Back(reads(c.facts))
			if diff := cmp.Diff(c.want, states(p)); diff != "" || p.Remains() != c.remains {
				t.Errorf("remains %t (-want +got):\n%s", p.Remains(), diff)
			}
		})
	}
}

// In no state of the cluster do the plans make a change that leaves notices to no program.
func TestPlansLeaveNoGap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(25, 1))
	may := func() bool { return rnd.IntN(2) == 0 }
	text := func(s string) string {
		if may() {
			return s
		}
		return ""
	}
	for range 5000 {
		f := reads(nil)
		f.Tool = Tools()[rnd.IntN(3)]
		f.Karpenter.Queue, f.Karpenter.Was, f.Karpenter.Elsewhere, f.Karpenter.RolledOut = text("prod"), text("prod"), text("an argument"), may()
		f.RulesUnread, f.Guard, f.Polls, f.Forwards = text("denied"), may(), may(), may()
		if may() {
			f.Unready = []string{"away"}
		}
		if may() {
			f.Rules = nil
		}
		if p := CutOver(f); len(f.Unready) > 0 && len(p.Blocked()) == 0 {
			t.Fatalf("Lifeboat is away, and Karpenter's queue would be turned off: %+v", f)
		}
		p := Back(f)
		if s, _ := p.Step(StepQueue); (f.RulesUnread != "" || len(f.Rules) == 0 || f.Karpenter.Queue+f.Karpenter.Was == "") && len(p.Blocked()) == 0 {
			t.Fatalf("Karpenter would receive nothing, and Lifeboat may stop: %+v, %+v", f, s)
		}
		if i, j := index(p, StepLeave), index(p, StepQueue); i < j {
			t.Fatalf("Lifeboat stops first: %+v", p)
		}
		for _, s := range append(CutOver(f), p...) {
			if (s.State == Blocked) && len(s.Why) == 0 || s.State == Manual && len(s.Commands)+len(s.Lines) == 0 {
				t.Fatalf("a step that does not say what to do: %+v", s)
			}
		}
	}
}

func index(p Plan, id string) int {
	for i, s := range p {
		if s.ID == id {
			return i
		}
	}
	return -1
}

// With Terraform the queue must not be deleted in the apply that takes it from Karpenter.
func TestTerraformDeletesQueueLast(t *testing.T) {
	var text strings.Builder
	p := CutOver(reads(func(f *Facts) { f.Tool = Terraform }))
	for _, s := range p {
		text.WriteString(strings.Join(s.Lines, "\n") + "\n")
	}
	setting, deletes := strings.Index(text.String(), `interruptionQueue: ""`), strings.Index(text.String(), "enable_spot_termination = false")
	if setting < 0 || deletes < setting {
		t.Errorf("%s", text.String())
	}
	if s, _ := p.Step(StepQueue); !strings.Contains(strings.Join(s.Why, " "), "enable_spot_termination") {
		t.Errorf("%+v", s)
	}
}
