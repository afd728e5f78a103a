//go:build e2e

package real

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/sandbox"
)

const (
	diskMount   = "/data" // in the container
	diskJournal = "journal.jsonl"
)

// database is a StatefulSet of one pod, which writes its journal on a disk. The disk, the claim and
// the pool of its node have its name.
type database struct {
	Name string
	// IgnoresSIGTERM: the pod ignores SIGTERM for two minutes, so that a kubelet cannot unmount its volume
	// in the moments before the power goes off.
	IgnoresSIGTERM bool
}

func (d database) pod() string { return d.Name + "-0" }

func (d database) objects() []client.Object {
	none, size := "", corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	once := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	labels, one := map[string]string{"app": d.Name}, int32(1)
	meta := metav1.ObjectMeta{Namespace: "default", Name: d.Name}
	return []client.Object{
		&corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: d.Name},
			Spec: corev1.PersistentVolumeSpec{
				AccessModes: once, Capacity: size,
				ClaimRef:               &corev1.ObjectReference{Namespace: meta.Namespace, Name: d.Name},
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: sandbox.DiskDriver, VolumeHandle: d.Name}},
			},
		},
		&corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: once, StorageClassName: &none, VolumeName: d.Name, Resources: corev1.VolumeResourceRequirements{Requests: size},
		}},
		&appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{
			Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: d.podSpec()},
		}},
	}
}

func (d database) podSpec() corev1.PodSpec {
	w := web{Name: d.Name, AtSIGTERM: "exit", Grace: 30}
	if d.IgnoresSIGTERM {
		w.AtSIGTERM, w.Grace = "ignore", 120
	}
	spec := w.podSpec()
	c := &spec.Containers[0]
	for i := range c.Env {
		if c.Env[i].Name == "WORKLOAD_JOURNAL" {
			c.Env[i].Value = diskMount + "/" + diskJournal
		}
	}
	c.VolumeMounts = []corev1.VolumeMount{{Name: "disk", MountPath: diskMount}}
	spec.Volumes = []corev1.Volume{{Name: "disk", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: d.Name},
	}}}
	return spec
}
