package cli

import (
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/adopt"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
)

// adoptionReport is the output of `adopt karpenter` for scripts.
type adoptionReport struct {
	Undo      bool             `json:"undo"`
	Tool      adopt.Tool       `json:"tool"`
	Karpenter adopt.Deployment `json:"karpenter"`
	Steps     adopt.Plan       `json:"steps"`
	// Applied is true if the command has made the change.
	Applied *bool `json:"applied,omitempty"`
}

func (a *adoption) report(applied *bool) adoptionReport {
	return adoptionReport{Undo: a.back, Tool: a.facts.Tool, Karpenter: a.facts.Karpenter, Steps: a.plan, Applied: applied}
}

// show prints a plan for people.
func (a *adoption) show() {
	k := a.facts.Karpenter
	title := "Karpenter " + k.Version + ", deployment " + k.Namespace + "/" + k.Name
	if k.Release != "" {
		title += ", release " + k.Release + " of Helm"
	}
	a.out.Printf("%s\n", a.out.Paint(terminal.Bold, title))
	styles := map[adopt.State]terminal.Style{
		adopt.Done: terminal.Good, adopt.Change: terminal.Warn, adopt.Manual: terminal.Warn, adopt.Optional: terminal.Dim, adopt.Blocked: terminal.Bad,
	}
	for _, s := range a.plan {
		const width = len("optional")
		state := string(s.State) + strings.Repeat(" ", width-len(s.State))
		a.out.Printf("\n%s  %s\n", a.out.Paint(styles[s.State], state), s.Title)
		for _, why := range s.Why {
			a.out.Printf("          %s\n", a.out.Paint(terminal.Dim, why+"."))
		}
		for _, line := range s.Lines {
			a.out.Printf("            %s\n", line)
		}
		for _, command := range s.Commands {
			a.out.Printf("          $ %s\n", command)
		}
	}
}

// sentences joins sentences.
func sentences(all []string) string { return strings.Join(all, ". ") }
