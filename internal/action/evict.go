package action

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/refusal"
)

// Answer is what the API server said to a request to stop a pod.
type Answer struct {
	// Asked is true where the pod was asked to stop, or is no longer there.
	Asked bool
	// Taken is true where the API server has done as it was asked, so that there is
	// nothing to repeat.
	Taken bool
	// Refused says why a PodDisruptionBudget holds the pod, or what else refuses
	// the request, such as an admission webhook; empty otherwise.
	Refused string
	// RetryAfter is how long the API server, being busy, wants to be left
	// alone; zero otherwise.
	RetryAfter time.Duration
}

// Evict asks for a pod's eviction with the Eviction API, which honours
// PodDisruptionBudgets. grace, in seconds, replaces the pod's own unless nil.
// What refuses it, such as a budget, and a server that is busy are answers, not
// errors; so is a pod that is gone, or gone and come back under its name.
func Evict(ctx context.Context, c client.Client, pod *corev1.Pod, grace *int64) (Answer, error) {
	eviction := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: deleteOptions(pod, grace),
	}
	err := c.SubResource("eviction").Create(ctx, pod.DeepCopy(), eviction)
	return answer(err, "evicting", pod)
}

// Delete deletes a pod whatever a PodDisruptionBudget says, with its own grace
// period or the one given, in seconds.
func Delete(ctx context.Context, c client.Client, pod *corev1.Pod, grace *int64) (Answer, error) {
	opts := deleteOptions(pod, grace)
	err := c.Delete(ctx, pod.DeepCopy(), &client.DeleteOptions{
		GracePeriodSeconds: opts.GracePeriodSeconds, Preconditions: opts.Preconditions,
	})
	return answer(err, "deleting", pod)
}

// deleteOptions ties the request to this very pod: a StatefulSet's next pod
// has the same name and must not be stopped in its place.
func deleteOptions(pod *corev1.Pod, grace *int64) *metav1.DeleteOptions {
	return &metav1.DeleteOptions{
		GracePeriodSeconds: grace,
		Preconditions:      metav1.NewUIDPreconditions(string(pod.UID)),
	}
}

// answer sorts what the API server says. A refusal by a budget and a busy
// server both come as 429 and are told apart by the DisruptionBudget cause; a
// pod under several budgets gets a 500 (Kubernetes docs, "API-initiated
// Eviction"). Admission may deny with any code, those of other answers too.
func answer(err error, doing string, pod *corev1.Pod) (Answer, error) {
	switch {
	case err == nil:
		return Answer{Asked: true, Taken: true}, nil
	case apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause), refusal.ByAdmission(err):
		return Answer{Refused: err.Error()}, nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return Answer{Asked: true}, nil
	case apierrors.IsTooManyRequests(err):
		seconds, _ := apierrors.SuggestsClientDelay(err)
		return Answer{RetryAfter: max(time.Duration(seconds)*time.Second, time.Second)}, nil
	case refusal.Is(err):
		return Answer{Refused: err.Error()}, nil
	}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok && seconds > 0 {
		return Answer{RetryAfter: time.Duration(seconds) * time.Second}, nil
	}
	return Answer{}, fmt.Errorf("%s pod %s/%s: %w", doing, pod.Namespace, pod.Name, err)
}
