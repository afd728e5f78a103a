package readiness

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/lifeboat-dev/lifeboat/internal/finding"
)

// judgeBudgets says which PodDisruptionBudgets hold up a drain for ever.
func (s *Survey) judgeBudgets() []weighed {
	var all []weighed
	for _, namespace := range slices.Sorted(maps.Keys(s.budgets)) {
		for _, b := range s.budgets[namespace] {
			if f, found := b.judge(); found {
				all = append(all, weighed{Finding: f, namespace: namespace, pods: int(b.Status.ExpectedPods)})
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.overlaps)) {
		o := s.overlaps[key]
		all = append(all, weighed{namespace: o.namespace, pods: o.pods, Finding: finding.Finding{
			Severity: finding.Warning, ID: BudgetsOverlap,
			Object: fmt.Sprintf("PodDisruptionBudgets %s in namespace %s", strings.Join(o.names, " and "), o.namespace),
			Problem: fmt.Sprintf("both cover %s, such as %s: the API server refuses to evict a pod with more than one budget, so that Lifeboat has to wait for the last call and delete it",
				somePods(o.pods), o.example),
			Fix: fmt.Sprintf("kubectl -n %s delete pdb %s, or narrow its selector", o.namespace, o.names[len(o.names)-1]),
		}})
	}
	return all
}

// judge says what is wrong with a budget by itself.
func (b *budget) judge() (finding.Finding, bool) {
	f := finding.Finding{Severity: finding.Warning, Object: "PodDisruptionBudget " + b.Namespace + "/" + b.Name}
	const waits = "Lifeboat holds its pods until their last call and then deletes them all the same; a drain with no hard deadline never ends"
	fix := fmt.Sprintf(`kubectl -n %s patch pdb %s --type merge -p '{"spec":{"minAvailable":null,"maxUnavailable":1}}'`, b.Namespace, b.Name)
	why := b.whyNever()
	seen := b.Status.ObservedGeneration >= b.Generation && b.Status.ObservedGeneration > 0
	switch {
	case b.selector == nil:
		f.ID, f.Problem, f.Fix = BudgetUnreadable, "its selector cannot be read, so it protects no pod at all", "correct spec.selector"
	case why != "" && (!seen || b.Status.ExpectedPods > 0):
		f.ID, f.Problem, f.Fix = BudgetNeverAllows, why+": it never allows an eviction. "+waits, fix
	case !seen:
		return f, false
	case b.failed() != "":
		f.ID, f.Fix = BudgetNotComputed, "cover only pods of controllers that can be scaled; for others use minAvailable with a number"
		f.Problem = "it cannot be computed (" + b.failed() + "), so that it allows no eviction. " + waits
	case b.Status.ExpectedPods == 0:
		f.Severity, f.ID = finding.Info, BudgetMatchesNone
		f.Problem, f.Fix = "its selector matches no pod, so it protects nothing", "correct spec.selector, or delete it"
	case b.Status.DesiredHealthy >= b.Status.ExpectedPods:
		f.ID, f.Fix = BudgetNeverAllows, fix
		f.Problem = fmt.Sprintf("%s it needs %d healthy of %d pods: it never allows an eviction. %s", b.says(), b.Status.DesiredHealthy, b.Status.ExpectedPods, waits)
	default:
		return f, false
	}
	return f, true
}

// whyNever says why the budget allows no eviction whatever the pods do.
func (b *budget) whyNever() string {
	if most := b.Spec.MaxUnavailable; most != nil && isPart(*most, 0) {
		return "maxUnavailable is " + most.String()
	}
	if least := b.Spec.MinAvailable; least != nil && least.Type == intstr.String && isPart(*least, 100) {
		return "minAvailable is " + least.String()
	}
	return ""
}

// isPart reports whether a value is n, or n percent.
func isPart(value intstr.IntOrString, n int) bool {
	if value.Type == intstr.Int {
		return value.IntValue() == n
	}
	return strings.TrimSuffix(strings.TrimSpace(value.StrVal), "%") == fmt.Sprint(n)
}

// says begins a sentence with what the budget asks for.
func (b *budget) says() string {
	switch {
	case b.Spec.MinAvailable != nil:
		return "minAvailable is " + b.Spec.MinAvailable.String() + ", so that"
	case b.Spec.MaxUnavailable != nil:
		return "maxUnavailable is " + b.Spec.MaxUnavailable.String() + ", so that"
	}
	return "it says nothing, so that"
}

// failed is why the disruption controller could not compute it.
func (b *budget) failed() string {
	c := meta.FindStatusCondition(b.Status.Conditions, policyv1.DisruptionAllowedCondition)
	if c != nil && c.Status == metav1.ConditionFalse && c.Reason == policyv1.SyncFailedReason {
		return c.Message
	}
	return ""
}
