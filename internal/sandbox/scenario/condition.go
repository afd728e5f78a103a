package scenario

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// Condition is something that a script demands of the world.
type Condition interface {
	// Holds reports whether it is so and, in words, what is so instead.
	Holds(w *World) (bool, string)
}

// podsReady: every workload that was applied has all its replicas Ready.
type podsReady struct{}

func (podsReady) Holds(w *World) (bool, string) {
	var missing []string
	for key, ready := range w.workloads {
		if !ready {
			missing = append(missing, key)
		}
	}
	slices.Sort(missing)
	if len(missing) > 0 {
		return false, "not ready: " + strings.Join(missing, ", ")
	}
	return true, ""
}

// count is a bound on the number of judged pods with a verdict.
type count struct {
	Verdict Verdict
	Op      string
	N       int
}

type counts []count

func (c counts) Holds(w *World) (bool, string) {
	var wrong []string
	for _, one := range c {
		if n := w.count(one.Verdict); !compare(n, one.Op, one.N) {
			wrong = append(wrong, fmt.Sprintf("%s=%d", one.Verdict, n))
		}
	}
	return len(wrong) == 0, strings.Join(wrong, " ") + pods(w.judged())
}

func (w *World) count(v Verdict) int {
	n := 0
	for _, p := range w.judged() {
		if p.is(v) {
			n++
		}
	}
	return n
}

func (p *podTrack) is(v Verdict) bool {
	if v == asked {
		return !p.asked.IsZero()
	}
	return p.verdict() == v
}

func compare(n int, op string, bound int) bool {
	switch op {
	case ">=":
		return n >= bound
	case "<=":
		return n <= bound
	default:
		return n == bound
	}
}

// quantified: every, some or no judged pod has a verdict. There must be pods for
// every to hold.
type quantified struct {
	Quantity string
	Verdict  Verdict
}

func (q quantified) Holds(w *World) (bool, string) {
	all := w.judged()
	if len(all) == 0 {
		return false, "there was no pod on the interrupted nodes"
	}
	n := w.count(q.Verdict)
	holds := n > 0
	switch q.Quantity {
	case "every":
		holds = n == len(all)
	case "no":
		holds = n == 0
	}
	return holds, fmt.Sprintf("%d of %d are %s", n, len(all), q.Verdict) + pods(all)
}

// pods lists what became of pods, for a message.
func pods(all []*podTrack) string {
	var b strings.Builder
	for _, p := range all {
		fmt.Fprintf(&b, "; %s: %s", p.name, p.describe())
	}
	return b.String()
}

// podIs: every judged pod whose name matches, and at least one, has a verdict.
type podIs struct {
	Glob     string
	Verdict  Verdict
	Relation string // before or after, for asked; "": whenever
	When     When
}

func (c podIs) Holds(w *World) (bool, string) {
	var matching []*podTrack
	for _, p := range w.judged() {
		if ok, _ := path.Match(c.Glob, p.name); ok { // the pattern was checked when it was read
			matching = append(matching, p)
		}
	}
	if len(matching) == 0 {
		return false, "no pod of the interrupted nodes is called " + c.Glob
	}
	for _, p := range matching {
		if !p.is(c.Verdict) {
			return false, p.name + ": " + p.describe()
		}
		limit := c.When.time(w.notice, w.deadline)
		if c.Relation == "before" && !p.asked.Before(limit) || c.Relation == "after" && !p.asked.After(limit) {
			return false, fmt.Sprintf("%s was asked %s after the notice", p.name, seconds(p.asked.Sub(w.notice)))
		}
	}
	return true, ""
}

// nodeState is what a node may be.
type nodeState string

const (
	nodeUp       nodeState = "ready"
	nodeSilent   nodeState = "not-ready"
	nodeCordoned nodeState = "cordoned"
	nodeAtRisk   nodeState = "at-risk"
	nodeOpen     nodeState = "open" // neither cordoned nor at risk
	nodeEmpty    nodeState = "empty"
	nodeDark     nodeState = "dark"
	nodeGone     nodeState = "gone" // the Node was deleted
)

type nodeIs struct {
	Node  string
	State nodeState
}

func (c nodeIs) Holds(w *World) (bool, string) {
	n := w.nodes[c.Node]
	if n == nil {
		return false, "it was not launched"
	}
	is := map[nodeState]bool{
		nodeUp:       n.ready,
		nodeSilent:   n.everReady && !n.ready,
		nodeCordoned: n.cordoned,
		nodeAtRisk:   n.atRisk,
		nodeOpen:     n.everReady && !n.cordoned && !n.atRisk,
		nodeEmpty:    n.everReady && w.left(n) == 0,
		nodeDark:     !n.dark.IsZero(),
		nodeGone:     !n.gone.IsZero(),
	}
	var so []string
	for _, s := range []nodeState{nodeUp, nodeSilent, nodeCordoned, nodeAtRisk, nodeOpen, nodeEmpty, nodeDark, nodeGone} {
		if is[s] {
			so = append(so, string(s))
		}
	}
	if len(so) == 0 {
		so = []string{"not up yet"}
	}
	return is[c.State], fmt.Sprintf("it is %s, with %d pods to leave it", strings.Join(so, ", "), w.left(n))
}

// nodePods: so many pods are on a node that would have to leave it.
type nodePods struct {
	Node string
	Op   string
	N    int
}

func (c nodePods) Holds(w *World) (bool, string) {
	n := w.nodes[c.Node]
	if n == nil {
		return false, "it was not launched"
	}
	left := w.left(n)
	return compare(left, c.Op, c.N), fmt.Sprintf("there are %d", left)
}

// recordSays: Lifeboat's record about a node has these fields. It is the one
// condition on what Lifeboat says, for stories in which nothing is to happen.
type recordSays struct {
	Node                  string
	None                  bool
	Phase, Action, Policy string
	Kinds                 string // of the notices, sorted, with commas
	Sources               string // likewise
	Wiring                string // degraded: the queue did not bring what it should have
}

func (c recordSays) Holds(w *World) (bool, string) {
	n := w.nodes[c.Node]
	if n == nil || n.record == nil {
		return c.None, "there is no record"
	}
	is := recordSays{Node: c.Node, Phase: string(n.record.Status.Phase),
		Kinds:   sorted(n.record, func(n v1alpha1.Notice) string { return n.Kind }),
		Sources: sorted(n.record, func(n v1alpha1.Notice) string { return n.Source }),
	}
	if meta.IsStatusConditionTrue(n.record.Status.Conditions, v1alpha1.ConditionWiringDegraded) {
		is.Wiring = wiringDegraded
	}
	if d := n.record.Status.Decision; d != nil {
		is.Action, is.Policy = string(d.Action), d.Policy
	}
	text := fmt.Sprintf("the record says phase=%s action=%s policy=%s kinds=%s sources=%s wiring=%s",
		is.Phase, is.Action, is.Policy, is.Kinds, is.Sources, is.Wiring)
	fits := func(want, got string) bool { return want == "" || want == got }
	return !c.None && fits(c.Phase, is.Phase) && fits(c.Action, is.Action) && fits(c.Policy, is.Policy) && fits(c.Kinds, is.Kinds) &&
		fits(c.Sources, is.Sources) && fits(c.Wiring, is.Wiring), text
}

// wiringDegraded is what a script says of a record with that condition.
const wiringDegraded = "degraded"

// sorted lists what the notices of a record have in a field.
func sorted(record *v1alpha1.Interruption, field func(v1alpha1.Notice) string) string {
	var all []string
	for _, n := range record.Spec.Notices {
		all = append(all, field(n))
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ",")
}
