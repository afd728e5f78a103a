package policy

import (
	"cmp"
	"fmt"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// consent is whether a person has agreed, where one has to.
type consent struct {
	awaited    bool
	proceedsAt time.Time // zero: never
	because    string    // a clause; empty where nobody has to agree
}

// about is what an approval of what is done about the notice has to be about.
func about(n v1alpha1.Notice) string {
	if n.Subject == "" {
		return n.Kind
	}
	return n.Kind + " " + n.Subject
}

// consent says whether a person's go-ahead is awaited. Whatever the deadline it
// is, unless the rule says that silence is consent. An instance that no longer
// runs is cleaned up without: there is nothing left on it to protect.
func (c choice) consent(f Facts, d Decision) consent {
	if c.approval != v1alpha1.ApprovalRequired {
		return consent{}
	}
	if say := f.Approval; say != nil && say.About == d.About && (f.Since.IsZero() || say.Time.After(f.Since)) {
		return consent{because: say.By + " has approved it"}
	}
	if d.InstanceGone {
		return consent{because: "it needs no approval any more, since the instance is gone"}
	}
	asks := fmt.Sprintf("it waits for approval (`lifeboat approve %s`)", nodeName(f))
	if c.ifUnanswered != v1alpha1.UnansweredProceed {
		return consent{awaited: true, because: asks + ", without which nothing is done"}
	}
	at := issued(d.Notice).Add(lead)
	if d.Deadline != nil {
		at = d.Deadline.Time.Add(-lead)
	}
	if !at.After(f.Now) {
		return consent{because: "nobody has approved it, and it goes ahead without"}
	}
	return consent{awaited: true, proceedsAt: at, because: fmt.Sprintf("%s until %s, and then goes ahead without", asks, wall(at.UTC()))}
}

func nodeName(f Facts) string {
	if f.Node == nil {
		return "NODE"
	}
	return cmp.Or(f.Node.Name, "NODE")
}
