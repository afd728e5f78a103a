package workloads

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// checkBudgets reports PodDisruptionBudgets that block drains permanently.
func (s *Survey) checkBudgets() []sizedFinding {
	var all []sizedFinding
	for _, namespace := range slices.Sorted(maps.Keys(s.budgets)) {
		for _, b := range s.budgets[namespace] {
			if f, found := b.check(); found {
				all = append(all, sizedFinding{Finding: f, namespace: namespace, pods: int(b.Status.ExpectedPods)})
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.overlaps)) {
		o := s.overlaps[key]
		all = append(all, sizedFinding{namespace: o.namespace, pods: o.pods, Finding: finding.Finding{
			Severity: finding.Warning, ID: BudgetsOverlap,
			Object: fmt.Sprintf("PodDisruptionBudgets %s in namespace %s", strings.Join(o.names, " and "), o.namespace),
			Problem: fmt.Sprintf("both cover %s, for example %s: the API server refuses to evict a pod with more than one budget, so Lifeboat waits until shortly before the deadline and deletes the pod",
				somePods(o.pods), o.example),
			Fix: fmt.Sprintf("kubectl -n %s delete pdb %s, or narrow its selector", o.namespace, o.names[len(o.names)-1]),
		}})
	}
	return all
}

// check reports a problem of a single budget.
func (b *budget) check() (finding.Finding, bool) {
	f := finding.Finding{Severity: finding.Warning, Object: "PodDisruptionBudget " + b.Namespace + "/" + b.Name}
	const waits = "Lifeboat waits until shortly before the deadline and then deletes its pods; a drain without a hard deadline never ends"
	fix := fmt.Sprintf(`kubectl -n %s patch pdb %s --type merge -p '{"spec":{"minAvailable":null,"maxUnavailable":1}}'`, b.Namespace, b.Name)
	why := b.blockingField()
	seen := b.Status.ObservedGeneration >= b.Generation && b.Status.ObservedGeneration > 0
	switch {
	case b.selector == nil:
		f.ID, f.Problem, f.Fix = BudgetUnreadable, "its selector is invalid, so it protects no pod", "correct spec.selector"
	case why != "" && (!seen || b.Status.ExpectedPods > 0):
		f.ID, f.Problem, f.Fix = BudgetNeverAllows, why+": it never allows an eviction. "+waits, fix
	case !seen:
		return f, false
	case b.syncError() != "":
		f.ID, f.Fix = BudgetNotComputed, "select only pods of controllers with a scale subresource; for other pods use minAvailable with a number"
		f.Problem = "the disruption controller cannot compute it (" + b.syncError() + "), so it allows no eviction. " + waits
	case b.Status.ExpectedPods == 0:
		f.Severity, f.ID = finding.Info, BudgetMatchesNone
		f.Problem, f.Fix = "its selector matches no pod, so it protects nothing", "correct spec.selector, or delete it"
	case b.Status.DesiredHealthy >= b.Status.ExpectedPods:
		f.ID, f.Fix = BudgetNeverAllows, fix
		f.Problem = fmt.Sprintf("%s it needs %d healthy of %d pods: it never allows an eviction. %s", b.describe(), b.Status.DesiredHealthy, b.Status.ExpectedPods, waits)
	default:
		return f, false
	}
	return f, true
}

// blockingField returns the field for which the budget never allows an eviction,
// whatever the state of the pods.
func (b *budget) blockingField() string {
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

// describe returns the beginning of a sentence about the budget's requirement.
func (b *budget) describe() string {
	switch {
	case b.Spec.MinAvailable != nil:
		return "minAvailable is " + b.Spec.MinAvailable.String() + ", so"
	case b.Spec.MaxUnavailable != nil:
		return "maxUnavailable is " + b.Spec.MaxUnavailable.String() + ", so"
	}
	return "it has no minAvailable or maxUnavailable, so"
}

// syncError returns the reason for which the disruption controller could not compute
// the budget.
func (b *budget) syncError() string {
	c := meta.FindStatusCondition(b.Status.Conditions, policyv1.DisruptionAllowedCondition)
	if c != nil && c.Status == metav1.ConditionFalse && c.Reason == policyv1.SyncFailedReason {
		return c.Message
	}
	return ""
}
