package forecast

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// surge takes a pod from its ReplicaSet, which has one more elsewhere after a
// while. Budgets count both.
func (w *world) surge(v drain.Verdict) {
	pod := v.Pod
	w.lose(pod)
	pod.OwnerReferences = nil
	pod.Labels, pod.Annotations = maps.Clone(pod.Labels), maps.Clone(pod.Annotations)
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	delete(pod.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	pod.Labels[v1alpha1.LabelSurged] = v.Origin.ReplicaSet
	origin := *v.Origin
	origin.Seen = "" // the ReplicaSet has counted already
	pod.Annotations[v1alpha1.AnnotationSurged] = origin.String()
	for _, b := range w.Budgets {
		if covers(b, pod) {
			w.returns = append(w.returns, refund{at: w.Now.Add(w.replaced), budget: b})
		}
	}
}

// lose has the ReplicaSet of a Ready pod count one less, until it has another.
func (w *world) lose(pod *corev1.Pod) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return
	}
	i := slices.IndexFunc(w.Owners.ReplicaSets, func(set *appsv1.ReplicaSet) bool { return set.UID == owner.UID })
	if i < 0 {
		return
	}
	set := w.Owners.ReplicaSets[i]
	set.Status.ReadyReplicas = max(set.Status.ReadyReplicas-1, 0)
	w.returns = append(w.returns, refund{at: w.Now.Add(w.replaced), set: set})
}
