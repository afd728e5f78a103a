package drain

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	kindReplicaSet = "ReplicaSet"
	kindDeployment = "Deployment"
)

// owners indexes the Owners of the facts by the references that pods have to them.
type owners struct {
	sets        map[types.UID]*appsv1.ReplicaSet
	deployments map[types.UID]*appsv1.Deployment
	claims      map[types.NamespacedName]*corev1.PersistentVolumeClaim
	waves       map[types.UID]*waves // by ReplicaSet
}

func indexOwners(all Owners) owners {
	o := owners{
		sets:        make(map[types.UID]*appsv1.ReplicaSet, len(all.ReplicaSets)),
		deployments: make(map[types.UID]*appsv1.Deployment, len(all.Deployments)),
		claims:      make(map[types.NamespacedName]*corev1.PersistentVolumeClaim, len(all.Claims)),
	}
	for _, set := range all.ReplicaSets {
		if set != nil {
			o.sets[set.UID] = set
		}
	}
	for _, d := range all.Deployments {
		if d != nil {
			o.deployments[d.UID] = d
		}
	}
	for _, claim := range all.Claims {
		if claim != nil {
			o.claims[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}] = claim
		}
	}
	return o
}

// surgeEligibility says whether a pod may run twice: it may if both not and unsettled are empty.
type surgeEligibility struct {
	set        *appsv1.ReplicaSet
	deployment *appsv1.Deployment
	// not is why it must not run twice, or why no controller would start its successor.
	not string
	// unsettled is the count that a controller must update before the answer is known.
	unsettled string
}

// eligibilityOf checks the pod, then its controllers.
func (o owners) eligibilityOf(pod *corev1.Pod) surgeEligibility {
	if why := o.podObstacle(pod); why != "" {
		return surgeEligibility{not: why}
	}
	ref := metav1.GetControllerOfNoCopy(pod)
	switch {
	case ref == nil:
		return surgeEligibility{not: "nothing controls it"}
	case ref.Kind != kindReplicaSet:
		return surgeEligibility{not: fmt.Sprintf("%s %s controls it, not a Deployment", ref.Kind, ref.Name)}
	}
	set := o.sets[ref.UID]
	switch {
	case set == nil:
		return surgeEligibility{not: fmt.Sprintf("ReplicaSet %s is not known", ref.Name)}
	case set.DeletionTimestamp != nil:
		return surgeEligibility{not: fmt.Sprintf("ReplicaSet %s is being deleted", ref.Name)}
	case !selectsByTemplateHash(set, pod):
		return surgeEligibility{not: fmt.Sprintf("ReplicaSet %s does not select by the label %s", ref.Name, appsv1.DefaultDeploymentUniqueLabelKey)}
	}
	above := metav1.GetControllerOfNoCopy(set)
	if above == nil || above.Kind != kindDeployment {
		return surgeEligibility{not: fmt.Sprintf("no Deployment controls ReplicaSet %s", ref.Name)}
	}
	d := o.deployments[above.UID]
	if d == nil {
		return surgeEligibility{not: fmt.Sprintf("Deployment %s is not known", above.Name)}
	}
	f := surgeEligibility{set: set, deployment: d}
	f.not, f.unsettled = workloadObstacle(d, set)
	return f
}

// podObstacle says why the pod itself must not run twice.
func (o owners) podObstacle(pod *corev1.Pod) string {
	switch {
	case !IsReady(pod):
		return "it is not Ready"
	case pod.Spec.HostNetwork:
		return "it is on the host's network"
	case usesHostPort(pod.Spec.Containers), usesHostPort(pod.Spec.InitContainers):
		return "it has a port of the host"
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		switch {
		case v.Ephemeral != nil:
			return fmt.Sprintf("its volume %s is its own alone", v.Name)
		case v.PersistentVolumeClaim != nil:
			if why := o.claimObstacle(pod.Namespace, v.PersistentVolumeClaim.ClaimName); why != "" {
				return why
			}
		}
	}
	return ""
}

func usesHostPort(containers []corev1.Container) bool {
	for i := range containers {
		for _, p := range containers[i].Ports {
			if p.HostPort != 0 {
				return true
			}
		}
	}
	return false
}

// claimObstacle says why a claim binds its pods to one node.
func (o owners) claimObstacle(namespace, name string) string {
	claim := o.claims[types.NamespacedName{Namespace: namespace, Name: name}]
	if claim == nil {
		return fmt.Sprintf("its claim %s is not known", name)
	}
	for _, mode := range claim.Spec.AccessModes {
		if mode != corev1.ReadWriteMany && mode != corev1.ReadOnlyMany {
			return fmt.Sprintf("its claim %s is %s", name, mode)
		}
	}
	if len(claim.Spec.AccessModes) == 0 {
		return fmt.Sprintf("its claim %s has no access mode", name)
	}
	return ""
}

// selectsByTemplateHash reports whether the ReplicaSet releases the pod when its label pod-template-hash is
// removed. Deployments add that label to the selectors of their ReplicaSets (Kubernetes
// documentation, "Deployments").
func selectsByTemplateHash(set *appsv1.ReplicaSet, pod *corev1.Pod) bool {
	if set.Spec.Selector == nil {
		return false
	}
	hash, ok := set.Spec.Selector.MatchLabels[appsv1.DefaultDeploymentUniqueLabelKey]
	return ok && hash == pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
}

// workloadObstacle says why pods of a Deployment's ReplicaSet must not be surged, or which controller
// must count first. A rollout is in progress while another ReplicaSet has pods or this one has
// not its full size. Missing pods are no sign of a rollout: they may just have been surged or
// evicted here or on other nodes.
func workloadObstacle(d *appsv1.Deployment, set *appsv1.ReplicaSet) (string, string) {
	switch {
	case d.DeletionTimestamp != nil:
		return fmt.Sprintf("Deployment %s is being deleted", d.Name), ""
	case d.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType:
		return fmt.Sprintf("Deployment %s has the strategy %s", d.Name, d.Spec.Strategy.Type), ""
	case d.Status.ObservedGeneration < d.Generation:
		return "", fmt.Sprintf("Deployment %s has changed, and its controller has not looked at it yet", d.Name)
	case set.Status.ObservedGeneration < set.Generation:
		return "", fmt.Sprintf("ReplicaSet %s has changed, and its controller has not looked at it yet", set.Name)
	case wanted(set.Spec.Replicas) == 0:
		return fmt.Sprintf("ReplicaSet %s is scaled to zero", set.Name), ""
	case rolloutSetting(d, wanted(set.Spec.Replicas), true) == 0:
		return fmt.Sprintf("Deployment %s has maxSurge 0", d.Name), ""
	case d.Status.UpdatedReplicas != d.Status.Replicas, wanted(d.Spec.Replicas) != wanted(set.Spec.Replicas):
		return fmt.Sprintf("Deployment %s is in the middle of a rollout", d.Name), ""
	}
	return "", ""
}

// wanted returns the number of replicas, which is one by default (k8s.io/api/apps/v1,
// ReplicaSetSpec.replicas).
func wanted(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}

// withoutNil returns the elements that are not nil.
func withoutNil[T any](all []*T) []*T {
	return slices.DeleteFunc(slices.Clone(all), func(one *T) bool { return one == nil })
}
