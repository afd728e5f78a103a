package simulate

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// settleOwners copies the owners as if their controllers had observed the
// latest generation. It also schedules the readiness of successors that already
// surged pods wait for.
func (w *world) settleOwners(all drain.Owners) {
	w.Owners.ReplicaSets, w.Owners.Deployments = nil, nil
	for _, d := range all.Deployments {
		if d != nil {
			d = d.DeepCopy()
			d.Status.ObservedGeneration = d.Generation
			w.Owners.Deployments = append(w.Owners.Deployments, d)
		}
	}
	missing := map[types.UID]int32{}
	for _, set := range all.ReplicaSets {
		if set == nil {
			continue
		}
		set = set.DeepCopy()
		set.Status.ObservedGeneration = set.Generation
		w.Owners.ReplicaSets = append(w.Owners.ReplicaSets, set)
		wanted := int32(1) // the default (k8s.io/api/apps/v1)
		if set.Spec.Replicas != nil {
			wanted = *set.Spec.Replicas
		}
		missing[set.UID] = wanted - set.Status.ReadyReplicas
	}
	for _, pod := range w.Pods {
		origin, ok := drain.SurgedFrom(pod)
		if _, back := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; !ok || back {
			continue
		}
		pod.OwnerReferences, origin.Seen = nil, ""
		pod.Annotations[v1beta1.AnnotationSurgeOrigin] = origin.String()
		if missing[origin.UID] > 0 {
			missing[origin.UID]--
			w.expect(pod, w.set(origin.UID))
		}
	}
}

func (w *world) set(uid types.UID) *appsv1.ReplicaSet {
	i := slices.IndexFunc(w.Owners.ReplicaSets, func(set *appsv1.ReplicaSet) bool { return set.UID == uid })
	if i < 0 {
		return nil
	}
	return w.Owners.ReplicaSets[i]
}

// expect schedules the readiness of a surged pod's successor, for its
// ReplicaSet and its budgets.
func (w *world) expect(pod *corev1.Pod, set *appsv1.ReplicaSet) {
	at := w.Now.Add(w.replaced)
	if set != nil {
		w.returns = append(w.returns, budgetRelease{at: at, set: set})
	}
	for _, b := range w.Budgets {
		if b.Covers(pod) {
			w.returns = append(w.returns, budgetRelease{at: at, budget: b})
		}
	}
}

// surge detaches a pod from its ReplicaSet, which has one more pod elsewhere
// after a while. Budgets count both.
func (w *world) surge(v drain.Verdict) {
	pod := v.Pod
	pod.OwnerReferences = nil
	pod.Labels, pod.Annotations = maps.Clone(pod.Labels), maps.Clone(pod.Annotations)
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	delete(pod.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	pod.Labels[v1beta1.LabelSurged] = v.Origin.ReplicaSet
	origin := *v.Origin
	origin.Seen = "" // the simulated ReplicaSet is already up to date
	pod.Annotations[v1beta1.AnnotationSurgeOrigin] = origin.String()
	set := w.set(origin.UID)
	if set != nil {
		set.Status.ReadyReplicas = max(set.Status.ReadyReplicas-1, 0)
	}
	w.expect(pod, set)
}

// lose lowers the ReplicaSet's ready count until the replacement is ready.
func (w *world) lose(pod *corev1.Pod) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return
	}
	if set := w.set(owner.UID); set != nil {
		set.Status.ReadyReplicas = max(set.Status.ReadyReplicas-1, 0)
		w.returns = append(w.returns, budgetRelease{at: w.Now.Add(w.replaced), set: set})
	}
}
