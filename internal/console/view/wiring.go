package view

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// Health is whether Lifeboat runs in the cluster.
type Health struct {
	// Text is one sentence about the installation.
	Text     string            `json:"text,omitempty"`
	Problems []finding.Finding `json:"problems"`
	Checked  Millis            `json:"checked,omitempty"`
}

// Wiring is what the cluster knows about the sources of notices, node groups and policies.
type Wiring struct {
	Degraded []Degraded `json:"degraded"`
	Groups   []Group    `json:"groups"`
	Policies []Policy   `json:"policies"`
}

// Degraded is an interruption whose notice the queue did not deliver.
type Degraded struct {
	Name  string `json:"name"`
	Node  string `json:"node"`
	Text  string `json:"text"`
	Since Millis `json:"since"`
}

// Group is a node group.
type Group struct {
	Name      string                 `json:"name"`
	Group     string                 `json:"group"`
	Tone      Tone                   `json:"tone,omitempty"`
	Text      string                 `json:"text"`
	Instances string                 `json:"instances"`
	Findings  []v1beta1.GroupFinding `json:"findings"`
}

// Policy is an InterruptionPolicy.
type Policy struct {
	Name string `json:"name"`
	Tone Tone   `json:"tone,omitempty"`
	Text string `json:"text"`
}

// degradedFor is for how long an undelivered notice is shown.
const degradedFor = 7 * 24 * time.Hour

// NewDegraded returns that the queue did not deliver a notice about the interruption.
func NewDegraded(in *v1beta1.Interruption, now time.Time) (Degraded, bool) {
	c := meta.FindStatusCondition(in.Status.Conditions, v1beta1.ConditionWiringDegraded)
	if c == nil || c.Status != "True" || now.Sub(c.LastTransitionTime.Time) > degradedFor {
		return Degraded{}, false
	}
	return Degraded{Name: in.Name, Node: record.NodeName(in), Text: c.Message, Since: At(c.LastTransitionTime.Time)}, true
}

// NewGroup returns what the page shows of a node group.
func NewGroup(g *v1beta1.NodeGroup) Group {
	s := &g.Status
	v := Group{
		Name: g.Name, Group: s.Group, Findings: s.Findings, Tone: Warn, Text: "the controller has not looked at the group yet",
		Instances: fmt.Sprintf("%d of %d in service", s.Instances.InService, s.Desired),
	}
	if s.Instances.Warm > 0 {
		v.Instances += fmt.Sprintf(", %d warm", s.Instances.Warm)
	}
	if v.Findings == nil {
		v.Findings = []v1beta1.GroupFinding{}
	}
	if c := meta.FindStatusCondition(s.Conditions, v1beta1.ConditionReady); c != nil {
		v.Text, v.Tone = c.Message, Bad
		if c.Status == "True" {
			v.Tone = Good
		}
	}
	return v
}

// NewPolicy returns what the page shows of a policy.
func NewPolicy(p *v1beta1.InterruptionPolicy) Policy {
	v := Policy{Name: p.Name, Tone: Warn, Text: "the controller has not checked the policy yet"}
	if c := meta.FindStatusCondition(p.Status.Conditions, v1beta1.ConditionAccepted); c != nil {
		v.Text, v.Tone = cmp.Or(c.Message, c.Reason), Bad
		if c.Status == "True" {
			v.Tone = Good
		}
	}
	return v
}

// Sort sorts the lists: what has a problem first, then by name.
func (w *Wiring) Sort() {
	rank := func(t Tone) int { return slices.Index([]Tone{Bad, Warn, Plain, Good}, t) }
	slices.SortFunc(w.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(rank(a.Tone), rank(b.Tone)), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(w.Policies, func(a, b Policy) int {
		return cmp.Or(cmp.Compare(rank(a.Tone), rank(b.Tone)), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(w.Degraded, func(a, b Degraded) int { return cmp.Or(cmp.Compare(b.Since, a.Since), cmp.Compare(a.Name, b.Name)) })
}
