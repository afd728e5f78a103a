package mutate

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/kube/rejection"
)

// Answer is the API server's answer to a request to stop a pod.
type Answer struct {
	// Asked is true if the pod was asked to stop, or no longer exists.
	Asked bool
	// Refused says why a PodDisruptionBudget, or something else such as an admission webhook,
	// refuses the request; empty otherwise.
	Refused string
	// RetryAfter is how long a busy API server asks to wait; zero otherwise.
	RetryAfter time.Duration
}

// Evict evicts a pod with the Eviction API, which honours PodDisruptionBudgets. grace, in
// seconds, replaces the pod's own unless nil. A refusal, for example by a budget, and a busy
// server are answers, not errors. So is a pod that is gone, or was recreated under the same
// name.
func Evict(ctx context.Context, c client.Client, pod *corev1.Pod, grace *int64) (Answer, error) {
	eviction := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: deleteOptions(pod, grace),
	}
	err := c.SubResource("eviction").Create(ctx, pod.DeepCopy(), eviction)
	return answer(err, "evicting", pod)
}

// Delete deletes a pod without regard to PodDisruptionBudgets, with its own grace period or the
// given one, in seconds.
func Delete(ctx context.Context, c client.Client, pod *corev1.Pod, grace *int64) (Answer, error) {
	opts := deleteOptions(pod, grace)
	err := c.Delete(ctx, pod.DeepCopy(), &client.DeleteOptions{
		GracePeriodSeconds: opts.GracePeriodSeconds, Preconditions: opts.Preconditions,
	})
	return answer(err, "deleting", pod)
}

// deleteOptions sets the pod's UID as a precondition: the next pod of a StatefulSet has the same
// name and must not be stopped instead.
func deleteOptions(pod *corev1.Pod, grace *int64) *metav1.DeleteOptions {
	return &metav1.DeleteOptions{
		GracePeriodSeconds: grace,
		Preconditions:      metav1.NewUIDPreconditions(string(pod.UID)),
	}
}

// answer classifies the API server's error. A refusal by a budget and a busy server are both 429
// and differ by the DisruptionBudget cause; a pod with several budgets gets a 500 (Kubernetes
// docs, "API-initiated Eviction"). Admission may deny with any code, including those of other
// answers.
func answer(err error, doing string, pod *corev1.Pod) (Answer, error) {
	switch {
	case err == nil:
		return Answer{Asked: true}, nil
	case apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause), rejection.ByAdmission(err):
		return Answer{Refused: err.Error()}, nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return Answer{Asked: true}, nil
	case apierrors.IsTooManyRequests(err):
		seconds, _ := apierrors.SuggestsClientDelay(err)
		return Answer{RetryAfter: max(time.Duration(seconds)*time.Second, time.Second)}, nil
	case rejection.Is(err):
		return Answer{Refused: err.Error()}, nil
	}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok && seconds > 0 {
		return Answer{RetryAfter: time.Duration(seconds) * time.Second}, nil
	}
	return Answer{}, fmt.Errorf("%s pod %s/%s: %w", doing, pod.Namespace, pod.Name, err)
}
