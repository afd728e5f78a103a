package scenario

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// recordSays: Lifeboat's record about a node has these fields. It is the one condition on
// Lifeboat's own data, for scenarios in which nothing should happen.
type recordSays struct {
	Node                  string
	None                  bool
	Phase, Action, Policy string
	Kinds                 string // of the notices, sorted, with commas
	Sources               string // likewise
	Wiring                string // degraded: the queue did not bring what it should have
	Replacement           string // how it stands, in a word, such as NoCapacity
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
	if d := n.record.Status.Drain; d != nil && d.Replacement != nil {
		is.Replacement = d.Replacement.Reason
	}
	text := fmt.Sprintf("the record says phase=%s action=%s policy=%s kinds=%s sources=%s wiring=%s replacement=%s",
		is.Phase, is.Action, is.Policy, is.Kinds, is.Sources, is.Wiring, is.Replacement)
	holds := !c.None
	for _, field := range []struct{ want, got string }{
		{c.Phase, is.Phase}, {c.Action, is.Action}, {c.Policy, is.Policy}, {c.Kinds, is.Kinds},
		{c.Sources, is.Sources}, {c.Wiring, is.Wiring}, {c.Replacement, is.Replacement},
	} {
		holds = holds && (field.want == "" || field.want == field.got)
	}
	return holds, text
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
