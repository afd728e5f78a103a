// Package notice is the noun of the product: what one source has heard about
// one instance. It is pure: it knows kinds and how notices about one instance
// add up, and nothing of where they come from or what is done about them.
package notice

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// MaxPerInstance is how many notices an Interruption holds; the oldest that
// neither rules nor is the newest makes room (the CRD has the same bound).
const MaxPerInstance = 32

// Notice is one signal, from one source, that an instance is going away or is
// sick, as intake hands it over to be recorded.
type Notice struct {
	v1alpha1.Notice

	// InstanceID is the cloud's id of the instance.
	InstanceID string
	// Account and Region are where the notice says it comes from.
	Account, Region string
}

// Join adds a notice to those already recorded about the instance. It reports
// false where nothing changed: the notice is a repeat of one that is there, or
// older news of the same subject. News of a subject takes the place of what was
// known of it.
func Join(recorded []v1alpha1.Notice, n v1alpha1.Notice) ([]v1alpha1.Notice, bool) {
	for i := range recorded {
		if recorded[i].ID == n.ID || (sameSubject(&recorded[i], &n) && n.Time.Before(&recorded[i].Time)) {
			return recorded, false
		}
	}
	joined := slices.DeleteFunc(slices.Clone(recorded), func(r v1alpha1.Notice) bool { return sameSubject(&r, &n) })
	takeBack(joined, &n)
	joined = append(joined, n)
	if len(joined) <= MaxPerInstance {
		return joined, true
	}
	ruling, _ := Ruling(joined, time.Time{})
	// Each source makes room among its own first: an agent may not touch what
	// others wrote.
	for _, own := range []bool{true, false} {
		for i := range joined[:len(joined)-1] {
			if joined[i].ID != ruling.ID && (joined[i].Source == n.Source || !own) {
				return slices.Delete(joined, i, i+1), true
			}
		}
	}
	return joined[1:], true
}

// sameSubject reports whether a and b are news of the same thing.
func sameSubject(a, b *v1alpha1.Notice) bool {
	return a.Subject != "" && a.Subject == b.Subject && a.Kind == b.Kind && a.Source == b.Source
}

// takeBack marks what an instance that serves again makes untrue.
func takeBack(recorded []v1alpha1.Notice, n *v1alpha1.Notice) {
	for i := range recorded {
		if TakesBack(n, &recorded[i]) {
			recorded[i].Withdrawn = true
		}
	}
}

// TakesBack reports whether n makes what another source has said untrue: whatever
// event said that the group takes the instance away, the group's own list, which has
// it in service, knows better. A drill is none of the group's.
func TakesBack(n, said *v1alpha1.Notice) bool {
	return n.Withdrawn && n.Kind == KindAutoScalingTermination && n.Source == SourceAutoScaling &&
		said.Kind == n.Kind && !said.Drill
}

// counts reports whether the notice is to be acted on: it was received after
// since, and was not taken back.
func counts(n *v1alpha1.Notice, since time.Time) bool {
	return !n.Withdrawn && isLater(n, since)
}

func isLater(n *v1alpha1.Notice, since time.Time) bool {
	return since.IsZero() || n.ReceivedTime.Time.After(since)
}

// Unanswered returns the notices that were not dealt with yet.
func Unanswered(notices []v1alpha1.Notice, answered []string) []v1alpha1.Notice {
	if len(answered) == 0 {
		return notices
	}
	return slices.DeleteFunc(slices.Clone(notices), func(n v1alpha1.Notice) bool { return slices.Contains(answered, n.ID) })
}

// AllWithdrawn reports whether there are notices received after since, and the
// cloud has taken every one of them back.
func AllWithdrawn(notices []v1alpha1.Notice, since time.Time) bool {
	withdrawn := false
	for i := range notices {
		switch {
		case counts(&notices[i], since):
			return false
		case isLater(&notices[i], since):
			withdrawn = true
		}
	}
	return withdrawn
}

// Finished reports whether nothing is left to do about a record: it was
// completed, and nothing was heard since but that something is over.
func Finished(in *v1alpha1.Interruption) bool {
	done := in.Status.CompletionTime
	return done != nil && !slices.ContainsFunc(in.Spec.Notices, func(n v1alpha1.Notice) bool { return counts(&n, done.Time) })
}

// Ruling returns the notice that rules among those that count, which are those
// received after since and not withdrawn: one that says the instance is stopped or
// terminated, else the one with the earliest firm deadline (see IsFirm), else that
// of a group which terminates the instance already, else the one with the earliest
// soft deadline, else the newest. It reports false where there is none.
func Ruling(notices []v1alpha1.Notice, since time.Time) (v1alpha1.Notice, bool) {
	var best *v1alpha1.Notice
	for i := range notices {
		n := &notices[i]
		if !counts(n, since) {
			continue
		}
		if best == nil || overrules(n, best) {
			best = n
		}
	}
	if best == nil {
		return v1alpha1.Notice{}, false
	}
	return *best, true
}

// Deadline returns the deadline that rules among notices that count: the earliest
// firm one (see IsFirm), else the earliest soft one, else nil. Estimates no longer
// count once the instance is stopped or terminated: its end is known.
func Deadline(notices []v1alpha1.Notice, since time.Time) *v1alpha1.Deadline {
	var best *v1alpha1.Deadline
	gone := InstanceGone(notices, since)
	for _, n := range notices {
		if n.Deadline == nil || !counts(&n, since) || gone && n.Deadline.Type == v1alpha1.DeadlineEstimated {
			continue
		}
		if best == nil || earlier(n.Deadline, best) {
			best = n.Deadline.DeepCopy()
		}
	}
	return best
}

// InstanceGone reports whether a notice that counts says that the
// instance no longer runs, so that nothing on it can be asked to stop.
func InstanceGone(notices []v1alpha1.Notice, since time.Time) bool {
	return slices.ContainsFunc(notices, func(n v1alpha1.Notice) bool {
		return counts(&n, since) && isGone(&n)
	})
}

func isGone(n *v1alpha1.Notice) bool {
	return n.Kind == KindInstanceStateChange && (n.InstanceState == StateStopped || n.InstanceState == StateTerminated)
}

// overrules reports whether a comes before b in the order that Ruling states.
// Equal rank goes to the newer.
func overrules(a, b *v1alpha1.Notice) bool {
	if rankA, rankB := rank(a), rank(b); rankA != rankB {
		return rankA > rankB
	}
	if a.Deadline != nil && b.Deadline != nil && *a.Deadline != *b.Deadline {
		return earlier(a.Deadline, b.Deadline)
	}
	return !a.Time.Before(&b.Time)
}

func rank(n *v1alpha1.Notice) int {
	switch {
	case isGone(n):
		return 4
	case IsFirm(n.Deadline):
		return 3
	case n.Kind == KindAutoScalingTermination:
		return 2
	case n.Deadline != nil:
		return 1
	}
	return 0
}

// earlier orders deadlines: firm ones first, then by time. At the same time a hard
// one comes before an estimate.
func earlier(a, b *v1alpha1.Deadline) bool {
	switch {
	case IsFirm(a) != IsFirm(b):
		return IsFirm(a)
	case a.Time.Equal(&b.Time):
		return a.Type == v1alpha1.DeadlineHard && b.Type != v1alpha1.DeadlineHard
	}
	return a.Time.Before(&b.Time)
}

// At is a convenience for writing deadlines.
func At(t time.Time, typ v1alpha1.DeadlineType) *v1alpha1.Deadline {
	return &v1alpha1.Deadline{Time: metav1.NewTime(t), Type: typ}
}
