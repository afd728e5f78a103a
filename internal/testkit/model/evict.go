package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Evict answers as the Eviction API does (kubernetes
// pkg/registry/core/pod/storage/eviction.go).
func (s *Server) Evict(k Key, stop Stop) error {
	pod, ok := s.objects[k].(*corev1.Pod)
	switch {
	case !ok:
		return apierrors.NewNotFound(k.resource(), k.Name)
	case stop.UID != nil && *stop.UID != pod.UID:
		return apierrors.NewConflict(k.resource(), k.Name, errors.New("the UID in the precondition is another"))
	}
	if err := s.pay(pod); err != nil {
		return err
	}
	return s.Delete(k, stop)
}

// pay uses a disruption of the pod's budget, or refuses the eviction.
func (s *Server) pay(pod *corev1.Pod) error {
	budget, err := s.Allows(pod)
	if err != nil || budget == nil {
		return err
	}
	next := budget.DeepCopy()
	next.Status.DisruptionsAllowed--
	if next.Status.DisruptedPods == nil {
		next.Status.DisruptedPods = map[string]metav1.Time{}
	}
	next.Status.DisruptedPods[pod.Name] = metav1.NewTime(s.Now())
	s.Put(next)
	return nil
}

// Allows reports whether the pod may be evicted now, and which budget's disruption it uses; nil:
// none.
func (s *Server) Allows(pod *corev1.Pod) (*policyv1.PodDisruptionBudget, error) {
	if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
		return nil, nil //nolint:nilnil // no budget is used
	}
	budgets := s.BudgetsOf(pod)
	switch len(budgets) {
	case 0:
		return nil, nil //nolint:nilnil // no budget is used
	case 1:
	default:
		return nil, apierrors.NewInternalError(errors.New("this pod has more than one PodDisruptionBudget, which the eviction subresource does not support"))
	}
	b := budgets[0]
	if !IsReady(pod) {
		always := b.Spec.UnhealthyPodEvictionPolicy != nil && *b.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow
		if always || (b.Status.CurrentHealthy >= b.Status.DesiredHealthy && b.Status.DesiredHealthy > 0) {
			return nil, nil //nolint:nilnil // no budget is used
		}
	}
	switch {
	case b.Status.ObservedGeneration < b.Generation:
		return nil, refusal("The disruption budget is still being processed by the server.", b)
	case b.Status.DisruptionsAllowed < 1:
		return nil, refusal("Cannot evict pod as it would violate the pod's disruption budget.", b)
	}
	return b, nil
}

func refusal(text string, b *policyv1.PodDisruptionBudget) error {
	err := apierrors.NewTooManyRequests(text, 0)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: policyv1.DisruptionBudgetCause, Message: fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", b.Name, b.Status.DesiredHealthy, b.Status.CurrentHealthy),
	})
	return err
}

// BudgetsOf returns the budgets that cover a pod, by name.
func (s *Server) BudgetsOf(pod *corev1.Pod) []*policyv1.PodDisruptionBudget {
	var all []*policyv1.PodDisruptionBudget
	s.Each("PodDisruptionBudget", func(o client.Object) {
		if b, ok := o.(*policyv1.PodDisruptionBudget); ok && b.Namespace == pod.Namespace && covers(b, pod) {
			all = append(all, b)
		}
	})
	slices.SortFunc(all, func(a, b *policyv1.PodDisruptionBudget) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func covers(b *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(pod.Labels))
}

// IsReady reports whether a pod is Ready.
func IsReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
