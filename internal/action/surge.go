package action

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

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=list;patch;delete
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=get

// Surge takes a pod from its ReplicaSet, which starts a successor; the pod goes
// on serving, since Services do not select by the label that it loses. A pod
// that is gone, or was surged before, is Asked. The zero Answer means that
// nothing was done: the pod has changed since it was read, which its watch is
// about to tell, or no ReplicaSet controls it. seen is the resourceVersion that
// the ReplicaSet has, as far as is known: until it has another, its status does
// not tell of what this brings about.
func Surge(ctx context.Context, c client.Client, pod *corev1.Pod, now time.Time, seen string) (Answer, error) {
	if _, ok := pod.Labels[v1alpha1.LabelSurged]; ok {
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
		v1alpha1.LabelSurged:                   &value,
	}, map[string]*string{v1alpha1.AnnotationSurged: &surged})
	if apierrors.IsConflict(err) {
		return Answer{}, nil
	}
	return answer(err, "surging", pod)
}

// UndoSurges gives the surged pods of a node that lives back to their
// ReplicaSets, each of which then has one pod too many and stops one: one that
// is not Ready sooner than others (Kubernetes docs, "ReplicaSet", scaling). A
// pod whose ReplicaSet is gone is deleted, with its own grace, as it would have
// been with its ReplicaSet. It returns how many pods it did that for. What
// fails for one pod holds up no other; a further call does the rest.
//
// live must not be a cache: a pod that was surged a moment ago has to be seen.
func UndoSurges(ctx context.Context, c client.Client, live client.Reader, node string) (int, error) {
	var pods corev1.PodList
	err := live.List(ctx, &pods, client.MatchingFields{"spec.nodeName": node}, client.HasLabels{v1alpha1.LabelSurged})
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
		said, err := Delete(ctx, c, pod, nil)
		if err == nil && !said.Asked {
			err = errors.New(cmp.Or(said.Refused, "the API server is busy"))
		}
		return err
	}
	hash := owner.Spec.Selector.MatchLabels[appsv1.DefaultDeploymentUniqueLabelKey]
	return client.IgnoreNotFound(change(ctx, c, pod, map[string]*string{
		appsv1.DefaultDeploymentUniqueLabelKey: &hash,
		v1alpha1.LabelSurged:                   nil,
	}, map[string]*string{v1alpha1.AnnotationSurged: nil}))
}

// origin returns the ReplicaSet that would take a surged pod back, or nil. One
// that is being deleted takes no pods. Where the annotation is unreadable, the
// label's word is taken for it: at worst a pod that has a successor is deleted.
func origin(ctx context.Context, live client.Reader, pod *corev1.Pod) (*appsv1.ReplicaSet, error) {
	from, known := drain.SurgedFrom(pod)
	if !known {
		from.ReplicaSet = pod.Labels[v1alpha1.LabelSurged]
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

// change sets labels and annotations of this very pod, as it was read; nil
// takes one off. It writes nothing else, so that a pod of which a part was read
// may be given.
func change(ctx context.Context, c client.Client, pod *corev1.Pod, labels, annotations map[string]*string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "resourceVersion": pod.ResourceVersion, "labels": labels, "annotations": annotations,
	}})
	if err != nil {
		return err
	}
	return c.Patch(ctx, pod.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
}

// labelValue returns as much of a name as a label's value may have; it ends
// with a letter or digit (Kubernetes docs, "Labels and Selectors").
func labelValue(name string) string {
	return strings.TrimRight(name[:min(len(name), validation.LabelValueMaxLength)], "-_.")
}
