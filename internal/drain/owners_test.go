package drain_test

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// hashOf is the label pod-template-hash of a ReplicaSet's pods.
func hashOf(set string) string { return "hash-of-" + set }

func setUID(set string) types.UID { return types.UID("set/" + set) }

func controlledBy(kind, name string, uid types.UID) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{Kind: kind, Name: name, UID: uid, Controller: &yes}}
}

func (s setIn) objects() (*appsv1.ReplicaSet, *appsv1.Deployment) {
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: s.Name, UID: setUID(s.Name), Generation: 3, ResourceVersion: s.Version},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &s.Replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: hashOf(s.Name)}},
		},
		Status: appsv1.ReplicaSetStatus{Replicas: s.Replicas, ReadyReplicas: s.Ready, ObservedGeneration: 3},
	}
	if s.Stale {
		rs.Status.ObservedGeneration = 2
	}
	if s.Gone {
		at := metav1.NewTime(noon)
		rs.DeletionTimestamp = &at
	}
	if s.Deployment == "-" {
		return rs, nil
	}
	name, size := orDefault(s.Deployment, s.Name), s.Replicas
	if s.Wanted != nil {
		size = *s.Wanted
	}
	rs.OwnerReferences = controlledBy("Deployment", name, types.UID("deployment/"+name))
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("deployment/" + name), Generation: 5},
		Spec: appsv1.DeploymentSpec{
			Replicas: &size, Paused: s.Paused,
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.DeploymentStrategyType(orDefault(s.Strategy, "RollingUpdate"))},
		},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 5, Replicas: s.Replicas + s.Others, UpdatedReplicas: s.Replicas, ReadyReplicas: s.Ready},
	}
	if s.Unobserved {
		d.Status.ObservedGeneration = 4
	}
	return rs, d
}

// own makes the pod one of its ReplicaSet, or surged from it, and adds what may prevent it from
// running twice.
func (p podIn) own(pod *corev1.Pod) {
	if p.Set != "" {
		if pod.Labels == nil {
			pod.Labels = map[string]string{}
		}
		pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hashOf(p.Set)
		pod.OwnerReferences = controlledBy("ReplicaSet", p.Set, setUID(p.Set))
	}
	if s := p.Surged; s != nil {
		origin := drain.Origin{ReplicaSet: p.Set, UID: setUID(p.Set), Hash: hashOf(p.Set), Time: noon.Add(-s.Ago.Duration), Seen: s.Seen}
		surge(pod, origin)
		if !s.Unreleased {
			pod.OwnerReferences = nil
		}
		if s.Unreadable {
			pod.Annotations[v1beta1.AnnotationSurgeOrigin] = "{"
		}
	}
	pod.Spec.HostNetwork = p.HostNetwork
	if p.HostPort != 0 {
		pod.Spec.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{{HostPort: p.HostPort}}}}
	}
	if p.Claim != "" {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: p.Claim},
		}})
	}
	if p.Ephemeral {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{
			Ephemeral: &corev1.EphemeralVolumeSource{},
		}})
	}
}

// surge changes a pod as the surge patch does.
func surge(pod *corev1.Pod, o drain.Origin) {
	delete(pod.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	pod.Labels[v1beta1.LabelSurged] = o.ReplicaSet
	annotations := map[string]string{v1beta1.AnnotationSurgeOrigin: o.String()}
	for k, v := range pod.Annotations {
		annotations[k] = v
	}
	annotations[v1beta1.AnnotationSurgeOrigin] = o.String()
	pod.Annotations = annotations
}

// second is the nth second of a test sequence.
func second(n int) time.Time { return noon.Add(time.Duration(n) * time.Second) }
