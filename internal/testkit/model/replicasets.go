package model

import (
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	hashLabel = appsv1.DefaultDeploymentUniqueLabelKey
	hash      = "5d4f8c7b9"
)

// deploy adds the ReplicaSet of a workload, and its Deployment if it has one.
func (k *Cluster) deploy(a *App) {
	replicas := int32(a.Replicas)
	labels := map[string]string{"app": a.Name}
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: a.Name, UID: types.UID("app-" + a.Name)},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": a.Name, hashLabel: hash}},
		},
		Status: appsv1.ReplicaSetStatus{Replicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas, ObservedGeneration: 1},
	}
	if a.Deployed {
		yes := true
		d := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: a.Name},
			Spec: appsv1.DeploymentSpec{
				Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
				Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType},
			},
			Status: appsv1.DeploymentStatus{Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas, ObservedGeneration: 1},
		}
		made := k.must(k.Create(d))
		set.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: a.Name, UID: made.GetUID(), Controller: &yes}}
	}
	k.must(k.Create(set))
}

// replicateSet simulates the ReplicaSet controller (kubernetes pkg/controller/replicaset): it
// releases pods that its selector no longer matches, adopts those that it matches, creates
// missing pods and deletes excess ones.
func (k *Cluster) replicateSet(a *App) {
	mine := k.claim(a)
	for missing := a.Replicas - len(mine); missing > 0; missing-- {
		k.launch(a, 0)
	}
	slices.SortStableFunc(mine, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), b.CreationTimestamp.Compare(a.CreationTimestamp.Time))
	})
	for i := range len(mine) - a.Replicas {
		k.stop(mine[i], nil)
	}
	k.countSet(a, mine)
}

// claim releases and adopts pods, and returns the ReplicaSet's pods that are not terminating.
func (k *Cluster) claim(a *App) []*corev1.Pod {
	var mine []*corev1.Pod
	for _, p := range k.Pods(func(p *corev1.Pod) bool { return p.Namespace == a.Namespace && p.Labels["app"] == a.Name }) {
		owner, matches := metav1.GetControllerOf(p), p.Labels[hashLabel] == hash
		owned := owner != nil && owner.UID == types.UID("app-"+a.Name)
		switch {
		case owned && !matches:
			k.setPod(p, func(p *corev1.Pod) { p.OwnerReferences = nil })
		case owner == nil && matches && p.DeletionTimestamp == nil:
			k.setPod(p, func(p *corev1.Pod) { p.OwnerReferences = a.owns() })
			mine = append(mine, p)
		case owned && p.DeletionTimestamp == nil:
			mine = append(mine, p)
		}
	}
	return mine
}

func rank(p *corev1.Pod) int {
	if IsReady(p) {
		return 1
	}
	return 0
}

// countSet writes the status of a ReplicaSet and its Deployment.
func (k *Cluster) countSet(a *App, mine []*corev1.Pod) {
	set, ok := k.Get(Key{"ReplicaSet", a.Namespace, a.Name}).(*appsv1.ReplicaSet)
	if !ok {
		return
	}
	var ready int32
	for _, p := range mine {
		ready += int32(rank(p))
	}
	if set.Status.ReadyReplicas == ready && set.Status.Replicas == int32(len(mine)) {
		return
	}
	set = set.DeepCopy()
	set.Status.Replicas, set.Status.ReadyReplicas = int32(len(mine)), ready
	k.Put(set)
	if d, ok := k.Get(Key{"Deployment", a.Namespace, a.Name}).(*appsv1.Deployment); ok {
		d = d.DeepCopy()
		d.Status.ReadyReplicas = set.Status.ReadyReplicas
		k.Put(d)
	}
}
