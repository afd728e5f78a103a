package scenario

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// recordIs: Lifeboat's record about a node has these fields. It is the one condition on
// Lifeboat's own data, for scenarios in which Lifeboat must not act.
type recordIs struct {
	Node                  string
	None                  bool
	Phase, Action, Policy string
	Kinds                 string // of the notices, sorted, with commas
	Sources               string // likewise
	Wiring                string // degraded: the queue missed a notice
	Replacement           string // its phase, such as NoCapacity
}

func (c recordIs) Holds(w *World) (bool, string) {
	n := w.nodes[c.Node]
	if n == nil || n.record == nil {
		return c.None, "there is no record"
	}
	is := recordIs{Node: c.Node, Phase: string(n.record.Status.Phase),
		Kinds:   sorted(n.record, func(n v1beta1.Notice) string { return n.Kind }),
		Sources: sorted(n.record, func(n v1beta1.Notice) string { return n.Source }),
	}
	if meta.IsStatusConditionTrue(n.record.Status.Conditions, v1beta1.ConditionWiringDegraded) {
		is.Wiring = wiringDegraded
	}
	if d := n.record.Status.Decision; d != nil {
		is.Action, is.Policy = string(d.Action), d.Policy
	}
	if d := n.record.Status.Drain; d != nil && d.Replacement != nil {
		is.Replacement = d.Replacement.Reason
	}
	text := fmt.Sprintf("the record has phase=%s action=%s policy=%s kinds=%s sources=%s wiring=%s replacement=%s",
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

// wiringDegraded is the script's word for the condition WiringDegraded.
const wiringDegraded = "degraded"

// sorted lists the values of a field of a record's notices.
func sorted(record *v1beta1.Interruption, field func(v1beta1.Notice) string) string {
	var all []string
	for _, n := range record.Spec.Notices {
		all = append(all, field(n))
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ",")
}
