package readiness

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/finding"
)

// The ids of findings.
const (
	GraceExceedsNotice = "grace-exceeds-notice"
	HookExceedsGrace   = "prestop-exceeds-grace"
	BudgetNeverAllows  = "budget-never-allows"
	BudgetNotComputed  = "budget-not-computed"
	BudgetUnreadable   = "budget-unreadable"
	BudgetMatchesNone  = "budget-matches-nothing"
	BudgetsOverlap     = "budgets-overlap"
	SingleReplica      = "single-replica"
	DoNotDisrupt       = "do-not-disrupt-on-spot"
	BarePods           = "pods-without-owner"
	ToleratesDoom      = "tolerates-every-taint"
	DataOnNode         = "data-on-the-node"
)

// weighed is a finding, with how many pods it is about.
type weighed struct {
	finding.Finding

	namespace string
	pods      int
}

// Findings are what the survey has found, the worst first; of each sort those
// with the most pods, and one that sums up the rest.
func (s *Survey) Findings() []finding.Finding {
	bySort := map[string][]weighed{}
	var order []string
	add := func(w weighed) {
		if bySort[w.ID] == nil {
			order = append(order, w.ID)
		}
		bySort[w.ID] = append(bySort[w.ID], w)
	}
	for _, by := range s.owners() {
		for _, w := range s.judge(by, s.workloads[by]) {
			add(w)
		}
	}
	for _, w := range s.judgeBudgets() {
		add(w)
	}
	slices.SortFunc(order, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
	all := []finding.Finding{} // an empty list, also in JSON
	for _, id := range order {
		all = append(all, s.shorten(bySort[id])...)
	}
	finding.Sort(all)
	return all
}

// Counts are how much was looked at: nodes, spot nodes among them, pods that
// would have to leave, and workloads.
type Counts struct {
	Nodes     int `json:"nodes"`
	Spot      int `json:"spot"`
	Pods      int `json:"pods"`
	Workloads int `json:"workloads"`
}

// Counts returns how much was looked at.
func (s *Survey) Counts() Counts {
	return Counts{Nodes: s.nodes, Spot: len(s.spot), Pods: s.pods, Workloads: len(s.workloads)}
}

// place is where a sort of finding stands among others of the same severity.
func place(id string) int {
	return slices.Index([]string{
		GraceExceedsNotice, HookExceedsGrace, BudgetNeverAllows, BudgetsOverlap, BudgetNotComputed, BudgetUnreadable,
		BarePods, ToleratesDoom, SingleReplica, DoNotDisrupt, DataOnNode, BudgetMatchesNone,
	}, id)
}

// owners are the workloads in a fixed order.
func (s *Survey) owners() []owner {
	return slices.SortedFunc(maps.Keys(s.workloads), func(a, b owner) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
	})
}

// shorten keeps the findings with the most pods and sums up the rest.
func (s *Survey) shorten(all []weighed) []finding.Finding {
	slices.SortStableFunc(all, func(a, b weighed) int { return cmp.Compare(b.pods, a.pods) })
	var told []finding.Finding
	for _, w := range all[:min(len(all), s.o.Most)] {
		told = append(told, w.Finding)
	}
	rest := all[len(told):]
	if len(rest) == 0 {
		return told
	}
	pods, byNamespace := 0, map[string]int{}
	for _, w := range rest {
		pods += w.pods
		byNamespace[w.namespace]++
	}
	return append(told, finding.Finding{
		Severity: rest[0].Severity, ID: rest[0].ID, Object: fmt.Sprintf("%d more", len(rest)),
		Problem: fmt.Sprintf("the same as above, with %s, in namespaces %s", somePods(pods), top(byNamespace)),
		Fix:     "as above",
	})
}

// top names the namespaces with the most findings.
func top(byNamespace map[string]int) string {
	const most = 5
	names := slices.SortedFunc(maps.Keys(byNamespace), func(a, b string) int {
		return cmp.Or(cmp.Compare(byNamespace[b], byNamespace[a]), cmp.Compare(a, b))
	})
	var said []string
	for _, name := range names[:min(len(names), most)] {
		said = append(said, fmt.Sprintf("%s (%d)", name, byNamespace[name]))
	}
	if more := len(names) - len(said); more > 0 {
		said = append(said, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(said, ", ")
}

func somePods(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}

// short writes a duration without its empty parts: 10m, not 10m0s.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
