package cli

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/concurrency"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// limit is how many of so many nodes policy takes at a time, and how many it has.
type limit struct {
	// Says is the limit as the policy has it, such as 20%.
	Says string `json:"says"`
	// Of is how many nodes it is a share of, Nodes what that makes.
	Of    int `json:"of"`
	Nodes int `json:"nodes"`
	// Taken is how many are being drained, or terminated, now.
	Taken int `json:"taken"`
	// Counts is false where the deadline is hard and waits for no one.
	Counts bool `json:"counts"`
}

// full reports whether the node would have to wait for its turn.
func (l *limit) full() bool { return l != nil && l.Counts && l.Taken >= l.Nodes }

func (l *limit) String() string {
	text := fmt.Sprintf("%d of %s at a time", l.Nodes, counted(l.Of, "node"))
	if strings.HasSuffix(l.Says, "%") {
		text = l.Says + ", which is " + text
	}
	if !l.Counts {
		return text + "; it does not count, since the deadline is hard"
	}
	return text + fmt.Sprintf(", and %d now", l.Taken)
}

// isHard reports whether no one can move the deadline.
func isHard(d *v1beta1.Deadline) bool { return notice.IsFirm(d) }

// budget is the effectivePolicy's budget; nil where it has none.
func (w *observed) budget(d policy.Decision) *limit {
	if !record.Drains(d.Action) {
		return nil
	}
	return w.limit(d, concurrency.Budget(&d, w.policy.Policies))
}

// terminations bounds forced terminations in the node's pool; nil where the
// action is another.
func (w *observed) terminations(d policy.Decision) *limit {
	return w.limit(d, concurrency.Terminations(&d, w.node, w.nodeOf))
}

// limit counts what a limit allows and what uses it, as the controller does.
func (w *observed) limit(d policy.Decision, l *concurrency.Limit) *limit {
	if l == nil {
		return nil
	}
	of := l.Of(w.nodes)
	return &limit{
		Says: l.Max.String(), Of: of, Nodes: policy.Share(l.Max, of),
		Taken: l.Used(w.records, w.instanceID()), Counts: !isHard(d.Deadline),
	}
}

// nodeOf returns the node of an Interruption, or nil.
func (w *observed) nodeOf(in *v1beta1.Interruption) *corev1.Node {
	for i := range w.nodes {
		if id, _ := instanceOf(&w.nodes[i]); id != "" && id == in.Spec.InstanceID {
			return &w.nodes[i]
		}
	}
	return nil
}
