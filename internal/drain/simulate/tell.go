package simulate

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// outcomeList decides for each pod whether it fits, and sorts the outcomes.
func (w *world) outcomeList() []PodOutcome {
	outcomes := make([]PodOutcome, 0, len(w.outcomes))
	for _, f := range w.outcomes {
		f.Fits = w.fits(f)
		outcomes = append(outcomes, *f)
	}
	slices.SortStableFunc(outcomes, func(a, b PodOutcome) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.Asked.Compare(b.Asked), compareNames(a.Pod, b.Pod))
	})
	return outcomes
}

func (w *world) fits(f *PodOutcome) bool {
	if f.Step == drain.StepStays {
		return true
	}
	if f.Gone.IsZero() || f.Grace < f.Wants || w.InstanceGone {
		return false
	}
	return w.Deadline == nil || !f.Gone.After(w.Deadline.Time.Time)
}

// rank orders pods: already terminating, then asked to stop, then never asked,
// then staying.
func rank(f PodOutcome) int {
	if isEviction(f.Step) {
		return 1
	}
	return slices.Index([]drain.Step{drain.StepLeaving, drain.StepEvict, drain.StepSurge, drain.StepWaits, drain.StepStays}, f.Step)
}

func compareNames(a, b *corev1.Pod) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
