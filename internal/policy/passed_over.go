package policy

import (
	"fmt"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// passOver returns the decision on the first notice that drains the node now, else on the first
// notice. Example: an instance with failed status checks is drained although another change is planned
// in twelve days.
func passOver(f Facts, first Decision, notices []v1beta1.Notice) (Decision, bool) {
	for passed := []Decision{first}; ; {
		notices = notice.Unanswered(notices, []string{passed[len(passed)-1].Notice.ID})
		next, ok := decideOn(f, notices)
		if !ok {
			return first, true
		}
		if next.drainsNow() {
			next.Considered = append(whyNotDeciding(passed), next.Considered...)
			return next, true
		}
		passed = append(passed, next)
		first.Next = soonest(first.Next, next.NotBefore, next.ProceedsAt)
	}
}

// whyNotDeciding says why notices of higher rank do not decide.
func whyNotDeciding(decisions []Decision) []Considered {
	var all []Considered
	for _, d := range decisions {
		all = append(all, Considered{Policy: d.Policy, Rule: d.Rule, Reason: fmt.Sprintf(
			"%s is passed over, since another notice drains the node now and this does not. %s", subject(d.Notice), d.Message)})
	}
	return all
}

// soonest returns the earliest time that is not zero; zero if there is none.
func soonest(moments ...time.Time) time.Time {
	var first time.Time
	for _, at := range moments {
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}
