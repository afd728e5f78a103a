package mutate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=list;patch;delete
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=get

// Surge takes a pod from its ReplicaSet, which starts a successor. The pod keeps serving,
// because Services do not select by the label that it loses. A pod that was already surged is
// Asked. The zero Answer means that nothing was done: the pod has changed since it was read, is
// gone, or no ReplicaSet controls it. The watch of the pod then starts the next pass. seen is the ReplicaSet's cached resourceVersion: while
// it is unchanged, the ReplicaSet's status does not reflect the surge.
func Surge(ctx context.Context, c client.Client, pod *corev1.Pod, now time.Time, seen string) (Answer, error) {
	if _, ok := pod.Labels[v1beta1.LabelSurged]; ok {
		return Answer{Asked: true}, nil
	}
	owner := metav1.GetControllerOf(pod)
	hash, ok := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	if owner == nil || owner.Kind != "ReplicaSet" || !ok {
		return Answer{}, nil
	}
	origin := drain.Origin{ReplicaSet: owner.Name, UID: owner.UID, Hash: hash, Time: now.UTC(), Seen: seen}
	surged := origin.String()
	value := labelValue(owner.Name)
	err := change(ctx, c, pod, map[string]*string{
		appsv1.DefaultDeploymentUniqueLabelKey: nil,
		v1beta1.LabelSurged:                    &value,
	}, map[string]*string{v1beta1.AnnotationSurgeOrigin: &surged})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return Answer{}, nil
	}
	return answer(err, "surging", pod)
}

// UndoSurges returns the surged pods of a restored node to their ReplicaSets. Each ReplicaSet
// then has one pod too many and stops one, preferably one that is not Ready (Kubernetes docs,
// "ReplicaSet", scaling). A pod whose ReplicaSet is gone is deleted with its own grace, as it
// would have been with its ReplicaSet. UndoSurges returns the number of these pods. An error for
// one pod does not stop the others; another call does the rest.
//
// live must not be a cache: a pod that was just surged must be visible.
func UndoSurges(ctx context.Context, c client.Client, live client.Reader, node string) (int, error) {
	var pods corev1.PodList
	err := live.List(ctx, &pods, client.MatchingFields{"spec.nodeName": node}, client.HasLabels{v1beta1.LabelSurged})
	if err != nil {
		return 0, fmt.Errorf("listing the surged pods of node %s: %w", node, err)
	}
	undone, errs := 0, []error(nil)
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.DeletionTimestamp != nil {
			continue
		}
		if err := undoSurge(ctx, c, live, pod); err != nil {
			errs = append(errs, fmt.Errorf("undoing the surge of pod %s/%s: %w", pod.Namespace, pod.Name, err))
			continue
		}
		undone++
	}
	return undone, errors.Join(errs...)
}

func undoSurge(ctx context.Context, c client.Client, live client.Reader, pod *corev1.Pod) error {
	owner, err := origin(ctx, live, pod)
	if err != nil {
		return err
	}
	if owner == nil {
		answer, err := Delete(ctx, c, pod, nil)
		if err == nil && !answer.Asked {
			err = errors.New(cmp.Or(answer.Refused, "the API server is busy"))
		}
		return err
	}
	hash := owner.Spec.Selector.MatchLabels[appsv1.DefaultDeploymentUniqueLabelKey]
	return client.IgnoreNotFound(change(ctx, c, pod, map[string]*string{
		appsv1.DefaultDeploymentUniqueLabelKey: &hash,
		v1beta1.LabelSurged:                    nil,
	}, map[string]*string{v1beta1.AnnotationSurgeOrigin: nil}))
}

// origin returns the ReplicaSet that would adopt a surged pod again, or nil. One that is being
// deleted adopts no pods. If the annotation cannot be parsed, the label is used: in the worst
// case a pod that has a successor is deleted.
func origin(ctx context.Context, live client.Reader, pod *corev1.Pod) (*appsv1.ReplicaSet, error) {
	from, known := drain.SurgedFrom(pod)
	if !known {
		from.ReplicaSet = pod.Labels[v1beta1.LabelSurged]
	}
	owner := &appsv1.ReplicaSet{}
	err := live.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: from.ReplicaSet}, owner)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading ReplicaSet %s: %w", from.ReplicaSet, err)
	case known && owner.UID != from.UID, owner.DeletionTimestamp != nil, owner.Spec.Selector == nil:
		return nil, nil
	}
	return owner, nil
}

// change sets labels and annotations of the pod at the version that was read; nil removes one.
// It writes nothing else, so the pod may be incomplete.
func change(ctx context.Context, c client.Client, pod *corev1.Pod, labels, annotations map[string]*string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "resourceVersion": pod.ResourceVersion, "labels": labels, "annotations": annotations,
	}})
	if err != nil {
		return err
	}
	return c.Patch(ctx, pod.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
}

// labelValue truncates a name to a valid label value, which ends with a letter or digit
// (Kubernetes docs, "Labels and Selectors").
func labelValue(name string) string {
	return strings.TrimRight(name[:min(len(name), validation.LabelValueMaxLength)], "-_.")
}
