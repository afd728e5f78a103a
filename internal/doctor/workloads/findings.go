package workloads

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// The ids of findings.
const (
	GraceExceedsNotice  = "grace-exceeds-notice"
	HookExceedsGrace    = "prestop-exceeds-grace"
	BudgetNeverAllows   = "budget-never-allows"
	BudgetNotComputed   = "budget-not-computed"
	BudgetUnreadable    = "budget-unreadable"
	BudgetMatchesNone   = "budget-matches-nothing"
	BudgetsOverlap      = "budgets-overlap"
	SingleReplica       = "single-replica"
	DoNotDisrupt        = "do-not-disrupt-on-spot"
	BarePods            = "pods-without-owner"
	ToleratesEveryTaint = "tolerates-every-taint"
	DataOnNode          = "data-on-the-node"

	TargetsByAddress      = "targets-by-address"
	NoPreStop             = "no-prestop"
	NoReadinessProbe      = "no-readiness-probe"
	NoBudget              = "no-budget"
	StatefulWithoutPolicy = "stateful-without-policy"
	NotReadyInRotation    = "not-ready-in-rotation"
	EvictionWebhook       = "eviction-webhook"
)

// IDs returns the ids of all findings, in their order among others of the same severity.
func IDs() []string {
	return []string{
		GraceExceedsNotice, HookExceedsGrace, BudgetNeverAllows, BudgetsOverlap, BudgetNotComputed, BudgetUnreadable, EvictionWebhook, NotReadyInRotation, TargetsByAddress,
		BarePods, ToleratesEveryTaint, SingleReplica, DoNotDisrupt, DataOnNode, BudgetMatchesNone,
		NoPreStop, NoReadinessProbe, NoBudget, StatefulWithoutPolicy,
	}
}

// sizedFinding is a finding with the number of affected pods.
type sizedFinding struct {
	finding.Finding

	namespace string
	pods      int
}

// Findings returns the findings, the worst first. Of each kind it returns those with
// the most pods, and one summary of the others.
func (s *Survey) Findings() []finding.Finding {
	bySort := map[string][]sizedFinding{}
	var order []string
	add := func(w sizedFinding) {
		if bySort[w.ID] == nil {
			order = append(order, w.ID)
		}
		bySort[w.ID] = append(bySort[w.ID], w)
	}
	for _, by := range s.owners() {
		for _, w := range s.checkWorkload(by, s.workloads[by]) {
			add(w)
		}
	}
	for _, w := range s.checkBudgets() {
		add(w)
	}
	slices.SortFunc(order, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	all := []finding.Finding{} // not nil, so that JSON has an empty list
	for _, id := range order {
		all = append(all, s.shorten(bySort[id])...)
	}
	all = append(all, s.checkTraffic()...)
	finding.Sort(all)
	return all
}

// Counts are the numbers of checked objects: nodes, spot nodes among them, pods that
// a drain would evict, and workloads.
type Counts struct {
	Nodes     int `json:"nodes"`
	Spot      int `json:"spot"`
	Pods      int `json:"pods"`
	Workloads int `json:"workloads"`
}

// Counts returns the numbers of checked objects.
func (s *Survey) Counts() Counts {
	return Counts{Nodes: s.nodes, Spot: len(s.spot), Pods: s.pods, Workloads: len(s.workloads)}
}

// rank is the order of a kind of finding among others of the same severity.
func rank(id string) int { return slices.Index(IDs(), id) }

// owners returns the workloads in a fixed order.
func (s *Survey) owners() []owner {
	return slices.SortedFunc(maps.Keys(s.workloads), func(a, b owner) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
	})
}

// shorten keeps the findings with the most pods and summarizes the others.
func (s *Survey) shorten(all []sizedFinding) []finding.Finding {
	slices.SortStableFunc(all, func(a, b sizedFinding) int { return cmp.Compare(b.pods, a.pods) })
	var kept []finding.Finding
	for _, w := range all[:min(len(all), s.o.Most)] {
		kept = append(kept, w.Finding)
	}
	rest := all[len(kept):]
	if len(rest) == 0 {
		return kept
	}
	pods, byNamespace := 0, map[string]int{}
	for _, w := range rest {
		pods += w.pods
		byNamespace[w.namespace]++
	}
	return append(kept, finding.Finding{
		Severity: rest[0].Severity, ID: rest[0].ID, Object: fmt.Sprintf("%d more", len(rest)),
		Problem: fmt.Sprintf("the same problem for %s, in namespaces %s", somePods(pods), top(byNamespace)),
		Fix:     "as above",
	})
}

// top returns the namespaces with the most findings.
func top(byNamespace map[string]int) string {
	const most = 5
	names := slices.SortedFunc(maps.Keys(byNamespace), func(a, b string) int {
		return cmp.Or(cmp.Compare(byNamespace[b], byNamespace[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, name := range names[:min(len(names), most)] {
		parts = append(parts, fmt.Sprintf("%s (%d)", name, byNamespace[name]))
	}
	if more := len(names) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}

func somePods(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}

// formatDuration formats a duration without zero parts: 10m, not 10m0s.
func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
