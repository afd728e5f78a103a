package forecast

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// tell judges whether each pod fits and puts them in order.
func (w *world) tell() []Fate {
	fates := make([]Fate, 0, len(w.fates))
	for _, f := range w.fates {
		f.Fits = w.fits(f)
		fates = append(fates, *f)
	}
	slices.SortStableFunc(fates, func(a, b Fate) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.Asked.Compare(b.Asked), compareNames(a.Pod, b.Pod))
	})
	return fates
}

func (w *world) fits(f *Fate) bool {
	if f.Step == drain.StepStays {
		return true
	}
	if f.Gone.IsZero() || f.Grace < f.Wants || w.InstanceGone {
		return false
	}
	return w.Deadline == nil || !f.Gone.After(w.Deadline.Time.Time)
}

// rank puts those that leave already first, then those that are asked to,
// those that never get to, and those that stay.
func rank(f Fate) int {
	if acts(f.Step) {
		return 1
	}
	return slices.Index([]drain.Step{drain.StepLeaving, drain.StepEvict, drain.StepSurge, drain.StepWaits, drain.StepStays}, f.Step)
}

func compareNames(a, b *corev1.Pod) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
