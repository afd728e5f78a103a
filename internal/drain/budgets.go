package drain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// maxDisruptedPods is the number of evictions that the API server grants ahead
// of the disruption controller (kubernetes pkg/registry/core/pod/storage,
// MaxDisruptedPodSize).
const maxDisruptedPods = 2000

// budget is a Budget and the disruptions that this plan has used of it.
type budget struct {
	*Budget
	taken int32
	first string // the first pod that took from it
}

// pdbState has the budgets of the pods' namespaces by namespace, so that a plan grants no more
// evictions than the API server would.
type pdbState map[string][]*budget

func newPDBState(pods []*corev1.Pod, all []*Budget) pdbState {
	byNamespace := map[string][]*Budget{}
	for _, b := range all {
		byNamespace[b.Namespace] = append(byNamespace[b.Namespace], b)
	}
	l := pdbState{}
	for _, pod := range pods {
		if _, done := l[pod.Namespace]; done {
			continue
		}
		l[pod.Namespace] = nil
		for _, b := range readable(byNamespace[pod.Namespace]) {
			l[pod.Namespace] = append(l[pod.Namespace], &budget{Budget: b})
		}
	}
	for _, budgets := range l {
		slices.SortFunc(budgets, func(a, b *budget) int {
			return cmp.Or(byName(a.Budget, b.Budget), cmp.Compare(a.UID, b.UID))
		})
	}
	return l
}

func (l pdbState) covering(pod *corev1.Pod) []*budget {
	var covering []*budget
	for _, b := range l[pod.Namespace] {
		if b.Covers(pod) {
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
	return pdbDecision{granted: true, why: fmt.Sprintf("%s allows %s", b.title(), disruptions(b.DisruptionsAllowed)), from: b}
}

// ignores reports whether the pod can leave without using a disruption of the budget: a pod that
// is not Ready does not count as healthy.
func (b *budget) ignores(pod *corev1.Pod) (string, bool) {
	if IsReady(pod) || b.Unread != "" {
		return "", false
	}
	if b.AlwaysAllow {
		return fmt.Sprintf("it is not Ready, and %s always lets such pods go", b.title()), true
	}
	if b.CurrentHealthy >= b.DesiredHealthy && b.DesiredHealthy > 0 {
		return fmt.Sprintf("it is not Ready, and %s has the %d healthy pods it needs without it", b.title(), b.DesiredHealthy), true
	}
	return "", false
}

// refuses reports why the budget allows no further eviction, if it does not.
func (b *budget) refuses() (string, bool) {
	switch {
	case b.Unread != "":
		return fmt.Sprintf("%s is not read: %s", b.title(), b.Unread), true
	case b.Outdated && b.SyncFailed != "":
		// A failure leaves the observed generation as it is (kubernetes pkg/controller/disruption, failSafe).
		return fmt.Sprintf("%s allows 0 disruptions (%s)", b.title(), b.whyZero()), true
	case b.Outdated:
		return b.title() + " has changed, and the disruption controller has not recounted it yet", true
	case b.DisruptionsAllowed < 0:
		return fmt.Sprintf("%s allows %d disruptions, which the API server refuses as corrupt", b.title(), b.DisruptionsAllowed), true
	case b.Unseen > maxDisruptedPods:
		return fmt.Sprintf("%s has %d evictions that the disruption controller has not seen yet", b.title(), b.Unseen), true
	case b.DisruptionsAllowed == 0:
		return fmt.Sprintf("%s allows 0 disruptions (%s)", b.title(), b.whyZero()), true
	case b.taken >= b.DisruptionsAllowed:
		return fmt.Sprintf("%s allows %s at a time, and %s goes first", b.title(), disruptions(b.DisruptionsAllowed), b.first), true
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
