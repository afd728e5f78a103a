package scenario

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

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
