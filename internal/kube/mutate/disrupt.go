package mutate

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/kube/rejection"
)

// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch

const (
	// reasonDeletion is the reason of the condition DisruptionTarget, named like those of the taint
	// manager and of PodGC.
	reasonDeletion = "DeletionByLifeboat"
	// disruptTimeout is how long the condition may delay the deletion of a pod that still runs.
	disruptTimeout = time.Second
)

// Disrupt deletes a pod as Delete does, and first says why in its status, as the taint manager and
// PodGC do (kubernetes pkg/controller/tainteviction, addConditionAndDeletePod; pkg/controller/podgc,
// markFailedAndDeletePod). A Job's podFailurePolicy then does not take it for a failure of the pod.
//
// A grace of 0 means that the instance is gone, and no kubelet ends the pod's phase. It becomes
// Failed, for which Jobs with podReplacementPolicy Failed wait. Only then is a failed request for
// the status repeated; a refused one never is. For a pod that still runs, no result delays the deletion.
func Disrupt(ctx context.Context, c client.Client, pod *corev1.Pod, grace *int64, why string, now time.Time) (Answer, error) {
	if gone := grace != nil && *grace == 0; gone {
		err := setDisrupted(ctx, c, pod, corev1.PodFailed, why, now)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !rejection.Is(err) {
			return answer(err, "failing", pod)
		}
	} else if !slices.ContainsFunc(pod.Status.Conditions, isDisruption) {
		limited, cancel := context.WithTimeout(ctx, disruptTimeout)
		_ = setDisrupted(limited, c, pod, "", why, now) // best effort: the pod's last call has come
		cancel()
	}
	return Delete(ctx, c, pod, grace)
}

func isDisruption(c corev1.PodCondition) bool {
	return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
}

// setDisrupted writes the condition and, unless empty, the phase. The UID is a precondition.
func setDisrupted(ctx context.Context, c client.Client, pod *corev1.Pod, phase corev1.PodPhase, why string, now time.Time) error {
	status := map[string]any{"conditions": []corev1.PodCondition{{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reasonDeletion, Message: "Lifeboat: " + why,
		LastTransitionTime: metav1.NewTime(now),
	}}}
	if phase != "" {
		status["phase"] = phase
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return err
	}
	return c.SubResource("status").Patch(ctx, pod.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, patch))
}
