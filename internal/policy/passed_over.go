package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// passOver returns the decision on the first notice that drains the node now, else on the first
// notice. Example: an instance with failed status checks is drained although another change is planned
// in twelve days.
func passOver(f Facts, first Decision, standing, candidates []v1beta1.Notice) (Decision, bool) {
	for passed := []Decision{first}; ; {
		candidates = without(candidates, passed[len(passed)-1].Notice.ID)
		next, ok := decideOn(f, standing, candidates)
		if !ok {
			return first, true
		}
		if next.drainsNow() {
			next.Considered = append(whyNotDeciding(passed), next.Considered...)
			return hasten(f, next, standing), true
		}
		passed = append(passed, next)
		first.Next = soonest(first.Next, next.NotBefore, next.ProceedsAt)
	}
}

// requests returns the requests of people.
func requests(notices []v1beta1.Notice) []v1beta1.Notice {
	return slices.DeleteFunc(slices.Clone(notices), func(n v1beta1.Notice) bool { return !isRequested(n) })
}

func without(notices []v1beta1.Notice, id string) []v1beta1.Notice {
	return slices.DeleteFunc(slices.Clone(notices), func(n v1beta1.Notice) bool { return n.ID == id })
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
