package drain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// maxDisruptedPods is the number of evictions that the API server grants ahead
// of the disruption controller (kubernetes pkg/registry/core/pod/storage,
// MaxDisruptedPodSize).
const maxDisruptedPods = 2000

// budget is a PodDisruptionBudget and the disruptions that this plan has used of it.
type budget struct {
	*policyv1.PodDisruptionBudget
	selector labels.Selector
	taken    int32
	first    string // the first pod that took from it
}

// pdbState has the budgets of the pods' namespaces by namespace, so that a plan grants no more
// evictions than the API server would.
type pdbState map[string][]*budget

func newPDBState(pods []*corev1.Pod, pdbs []*policyv1.PodDisruptionBudget) pdbState {
	l := pdbState{}
	for _, pod := range pods {
		l[pod.Namespace] = nil
	}
	for _, pdb := range pdbs {
		if _, wanted := l[pdb.Namespace]; !wanted {
			continue
		}
		// Same rules as the API server: a budget with a malformed or missing selector covers
		// no pod; an empty selector covers all.
		if selector, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector); err == nil {
			l[pdb.Namespace] = append(l[pdb.Namespace], &budget{PodDisruptionBudget: pdb, selector: selector})
		}
	}
	for _, budgets := range l {
		slices.SortFunc(budgets, func(a, b *budget) int {
			return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
		})
	}
	return l
}

func (l pdbState) covering(pod *corev1.Pod) []*budget {
	var covering []*budget
	for _, b := range l[pod.Namespace] {
		if b.selector.Matches(labels.Set(pod.Labels)) {
			covering = append(covering, b)
		}
	}
	return covering
}

// pdbDecision is the expected answer of the Eviction API.
type pdbDecision struct {
	granted bool
	why     string  // a clause, such as "PodDisruptionBudget a allows 0 disruptions"
	from    *budget // the budget whose disruption is used, if any
}

// permitFor answers as the Eviction API would after the evictions that this plan has granted
// (kubernetes pkg/registry/core/pod/storage/eviction.go).
func permitFor(c *podState) pdbDecision {
	switch {
	case len(c.budgets) == 0:
		return pdbDecision{granted: true, why: "nothing holds it"}
	case c.pod.Status.Phase == corev1.PodPending:
		return pdbDecision{granted: true, why: "it has not started, so no PodDisruptionBudget protects it"}
	case len(c.budgets) > 1:
		return pdbDecision{why: fmt.Sprintf("%d PodDisruptionBudgets cover it (%s), and the Eviction API takes no pod with more than one",
			len(c.budgets), strings.Join(names(c.budgets), ", "))}
	}
	b := c.budgets[0]
	if why, unguarded := b.ignores(c.pod); unguarded {
		return pdbDecision{granted: true, why: why}
	}
	if why, refused := b.refuses(); refused {
		return pdbDecision{why: why}
	}
	return pdbDecision{granted: true, why: fmt.Sprintf("%s allows %s", b.title(), disruptions(b.Status.DisruptionsAllowed)), from: b}
}

// ignores reports whether the pod can leave without using a disruption of the budget: a pod that
// is not Ready does not count as healthy.
func (b *budget) ignores(pod *corev1.Pod) (string, bool) {
	if IsReady(pod) {
		return "", false
	}
	if p := b.Spec.UnhealthyPodEvictionPolicy; p != nil && *p == policyv1.AlwaysAllow {
		return fmt.Sprintf("it is not Ready, and %s always lets such pods go", b.title()), true
	}
	if b.Status.CurrentHealthy >= b.Status.DesiredHealthy && b.Status.DesiredHealthy > 0 {
		return fmt.Sprintf("it is not Ready, and %s has the %d healthy pods it needs without it", b.title(), b.Status.DesiredHealthy), true
	}
	return "", false
}

// refuses reports why the budget allows no further eviction, if it does not.
func (b *budget) refuses() (string, bool) {
	st := b.Status
	switch {
	case st.ObservedGeneration < b.Generation:
		return b.title() + " has changed, and the disruption controller has not recounted it yet", true
	case st.DisruptionsAllowed < 0:
		return fmt.Sprintf("%s allows %d disruptions, which the API server refuses as corrupt", b.title(), st.DisruptionsAllowed), true
	case len(st.DisruptedPods) > maxDisruptedPods:
		return fmt.Sprintf("%s has %d evictions that the disruption controller has not seen yet", b.title(), len(st.DisruptedPods)), true
	case st.DisruptionsAllowed == 0:
		return fmt.Sprintf("%s allows 0 disruptions (%s)", b.title(), b.whyZero()), true
	case b.taken >= st.DisruptionsAllowed:
		return fmt.Sprintf("%s allows %s at a time, and %s goes first", b.title(), disruptions(st.DisruptionsAllowed), b.first), true
	}
	return "", false
}

// take records that the pod leaves. If that overrides its budgets, other pods cannot use those
// disruptions either.
func (p pdbDecision) take(c *podState) {
	var payers []*budget
	switch {
	case p.from != nil:
		payers = []*budget{p.from}
	case !p.granted && IsReady(c.pod):
		payers = c.budgets
	}
	for _, b := range payers {
		if b.taken == 0 {
			b.first = c.pod.Name
		}
		b.taken++
	}
}
