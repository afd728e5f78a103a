package drain

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	kindReplicaSet = "ReplicaSet"
	kindDeployment = "Deployment"
)

// owners are the Owners of the facts, by what pods call them.
type owners struct {
	sets        map[types.UID]*appsv1.ReplicaSet
	deployments map[types.UID]*appsv1.Deployment
	claims      map[types.NamespacedName]*corev1.PersistentVolumeClaim
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

// fitness says whether a pod may run twice: as long as both not and unsettled
// are empty.
type fitness struct {
	set        *appsv1.ReplicaSet
	deployment string
	// not says why it must not, or why nobody would start its successor.
	not string
	// unsettled says what has to be counted anew before anybody knows.
	unsettled string
}

// fitnessOf looks at the pod, and then at what controls it.
func (o owners) fitnessOf(pod *corev1.Pod) fitness {
	if why := o.unfit(pod); why != "" {
		return fitness{not: why}
	}
	ref := metav1.GetControllerOfNoCopy(pod)
	switch {
	case ref == nil:
		return fitness{not: "nothing controls it"}
	case ref.Kind != kindReplicaSet:
		return fitness{not: fmt.Sprintf("%s %s controls it, not a Deployment", ref.Kind, ref.Name)}
	}
	set := o.sets[ref.UID]
	switch {
	case set == nil:
		return fitness{not: fmt.Sprintf("ReplicaSet %s is not known", ref.Name)}
	case set.DeletionTimestamp != nil:
		return fitness{not: fmt.Sprintf("ReplicaSet %s is being deleted", ref.Name)}
	case !tellsApart(set, pod):
		return fitness{not: fmt.Sprintf("ReplicaSet %s does not select by the label %s", ref.Name, appsv1.DefaultDeploymentUniqueLabelKey)}
	}
	above := metav1.GetControllerOfNoCopy(set)
	if above == nil || above.Kind != kindDeployment {
		return fitness{not: fmt.Sprintf("no Deployment controls ReplicaSet %s", ref.Name)}
	}
	d := o.deployments[above.UID]
	if d == nil {
		return fitness{not: fmt.Sprintf("Deployment %s is not known", above.Name)}
	}
	f := fitness{set: set, deployment: d.Name}
	f.not, f.unsettled = standing(d, set)
	return f
}

// unfit says what of the pod itself forbids that it runs twice.
func (o owners) unfit(pod *corev1.Pod) string {
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
			if why := o.bound(pod.Namespace, v.PersistentVolumeClaim.ClaimName); why != "" {
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

// bound says why a claim keeps its pods on one node.
func (o owners) bound(namespace, name string) string {
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

// tellsApart reports whether the ReplicaSet lets go of the pod once its label
// pod-template-hash is gone. Deployments put it into their ReplicaSets'
// selectors (Kubernetes documentation, "Deployments").
func tellsApart(set *appsv1.ReplicaSet, pod *corev1.Pod) bool {
	if set.Spec.Selector == nil {
		return false
	}
	hash, ok := set.Spec.Selector.MatchLabels[appsv1.DefaultDeploymentUniqueLabelKey]
	return ok && hash == pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
}

// standing says why a Deployment's pods of that ReplicaSet are not to be
// surged, or what its controllers have to count before anybody knows. A rollout
// is under way as long as pods of another ReplicaSet are there or this one has
// not its full size. Pods that are missing are no sign of one: they were
// surged or evicted a moment ago, as on the other nodes that go down too.
func standing(d *appsv1.Deployment, set *appsv1.ReplicaSet) (string, string) {
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
	case d.Status.UpdatedReplicas != d.Status.Replicas, wanted(d.Spec.Replicas) != wanted(set.Spec.Replicas):
		return fmt.Sprintf("Deployment %s is in the middle of a rollout", d.Name), ""
	}
	return "", ""
}

// wanted is how many pods are asked for: one, where nothing is said
// (k8s.io/api/apps/v1, ReplicaSetSpec.replicas).
func wanted(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}
