package replacement

import (
	"fmt"
	"strings"
)

// DisruptionBudget is an entry of spec.disruption.budgets of a NodePool. It
// limits drift and consolidation, and no interruption (Karpenter documentation,
// "Disruption", NodePool disruption budgets).
type DisruptionBudget struct {
	Nodes    string   `json:"nodes"`
	Reasons  []string `json:"reasons,omitempty"`
	Schedule string   `json:"schedule,omitempty"`
	Duration string   `json:"duration,omitempty"`
}

// String describes the budget, such as "0 nodes for Drifted, for 8h from 0 9 * * mon-fri".
func (b DisruptionBudget) String() string {
	text := b.Nodes
	if !strings.HasSuffix(text, "%") {
		text += " nodes"
	}
	if len(b.Reasons) > 0 {
		text += " for " + strings.Join(b.Reasons, " and ")
	}
	if b.Schedule != "" {
		text += fmt.Sprintf(", for %s from %s", b.Duration, b.Schedule)
	}
	return text
}
