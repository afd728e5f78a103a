//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
	"github.com/lifeboat-dev/lifeboat/sandbox"
)

const (
	volumeDriver = "volumes.sandbox.lifeboat.dev"
	// volumeInUse is how the kubelet names the volume in status.volumesInUse (kubernetes
	// pkg/volume/csi, GetVolumeName).
	volumeInUse = corev1.UniqueVolumeName("kubernetes.io/csi/" + volumeDriver + "^data")
	// taintByPerson is the patch of `kubectl taint node NAME node.kubernetes.io/out-of-service=nodeshutdown:NoExecute`.
	taintByPerson = `[{"op":"add","path":"/spec/taints/-","value":{"key":"node.kubernetes.io/out-of-service","value":"nodeshutdown","effect":"NoExecute"}}]`
)

// TestOutOfServiceTaintDetachesVolumes stops the instance of a pod with a volume. The kubelet dies
// before it unmounts the volume. The real attach-detach controller would wait six minutes for it.
// With the option, the successor gets the volume at once. Without it, the volume stays attached
// until a person sets the taint.
func TestOutOfServiceTaintDetachesVolumes(t *testing.T) {
	t.Parallel()
	t.Run("with the option", func(t *testing.T) {
		t.Parallel()
		r := newRigWith(t, sandbox.Options{OutOfServiceTaint: true})
		dead := r.stopWithVolume()
		r.until("the volume to be attached to the successor's node", 2*time.Minute, func(ctx context.Context) (bool, error) {
			nodes := r.attachedTo(ctx)
			return len(nodes) == 1 && nodes[0] != dead.PrivateDNSName, fmt.Errorf("attached to %v", nodes)
		})
		r.until("the Interruption to say so", time.Minute, func(ctx context.Context) (bool, error) {
			in, err := r.record(ctx, dead.ID)
			return err == nil && meta.IsStatusConditionTrue(in.Status.Conditions, v1beta1.ConditionOutOfService), err
		})
	})
	t.Run("twin", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		dead := r.stopWithVolume()
		r.until("the attach-detach controller to refuse the successor", 2*time.Minute, func(ctx context.Context) (bool, error) {
			var events corev1.EventList
			err := r.client.List(ctx, &events, client.InNamespace("default"))
			return slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return strings.Contains(e.Message, "Multi-Attach error") }), err
		})
		if nodes := r.attachedTo(t.Context()); !slices.Equal(nodes, []string{dead.PrivateDNSName}) {
			t.Fatalf("the volume is attached to %v", nodes)
		}
		node, err := r.node(t.Context(), dead)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.client.Patch(t.Context(), node, client.RawPatch(types.JSONPatchType, []byte(taintByPerson))); err != nil {
			t.Fatal(err)
		}
		r.until("the volume to leave the dead node", 2*time.Minute, func(ctx context.Context) (bool, error) {
			nodes := r.attachedTo(ctx)
			return !slices.Contains(nodes, dead.PrivateDNSName), fmt.Errorf("attached to %v", nodes)
		})
	})
}

// stopWithVolume runs a pod with a volume, stops its instance, and waits for the successor.
func (r *rig) stopWithVolume() ec2.Instance {
	r.t.Helper()
	one := ec2.LaunchInput{ImageID: "ami-0123456789abcdef0", Type: "m5.xlarge", Min: 1, Max: 1}
	dead := r.launchAll(one)[0]
	r.apply(volumeOfPod()...)
	go r.attachVolumes()
	app := statefulSet("db", 1, 0)
	app.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}}
	app.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	r.apply(app)
	r.waitPods(dead, 1)
	r.until("the volume to be attached", time.Minute, func(ctx context.Context) (bool, error) {
		return len(r.attachedTo(ctx)) == 1, nil
	})
	r.mounts(dead)
	r.launchAll(one)
	if _, err := r.EC2().Stop([]string{dead.ID}); err != nil {
		r.t.Fatal(err)
	}
	r.until("the successor to be bound", 2*time.Minute, func(ctx context.Context) (bool, error) {
		var pod corev1.Pod
		err := r.client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "db-0"}, &pod)
		return err == nil && pod.Spec.NodeName != "" && pod.Spec.NodeName != dead.PrivateDNSName, err
	})
	return dead
}

// mounts reports the volume as mounted, as the kubelet of the node does. Simulated kubelets have no
// volumes.
func (r *rig) mounts(in ec2.Instance) {
	r.t.Helper()
	node, err := r.node(r.t.Context(), in)
	if err != nil {
		r.t.Fatal(err)
	}
	base := client.MergeFrom(node.DeepCopy())
	node.Status.VolumesInUse = []corev1.UniqueVolumeName{volumeInUse}
	if err := r.client.Status().Patch(r.t.Context(), node, base); err != nil {
		r.t.Fatal(err)
	}
}

// volumeOfPod returns a driver, and a volume with its claim.
func volumeOfPod() []client.Object {
	yes, none, size := true, "", corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	once := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	return []client.Object{
		&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: volumeDriver}, Spec: storagev1.CSIDriverSpec{AttachRequired: &yes}},
		&corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Spec: corev1.PersistentVolumeSpec{
				AccessModes: once, Capacity: size,
				ClaimRef:               &corev1.ObjectReference{Namespace: "default", Name: "data"},
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: volumeDriver, VolumeHandle: "data"}},
			},
		},
		&corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: once, StorageClassName: &none, VolumeName: "data", Resources: corev1.VolumeResourceRequirements{Requests: size},
			},
		},
	}
}

// attachVolumes attaches what the attach-detach controller wants attached, as an external-attacher
// does, until the test ends.
func (r *rig) attachVolumes() {
	for ctx := r.t.Context(); sleep.For(ctx, 100*time.Millisecond); {
		var all storagev1.VolumeAttachmentList
		if r.client.List(ctx, &all) != nil {
			continue // it repeats
		}
		for i := range all.Items {
			if a := &all.Items[i]; !a.Status.Attached {
				base := client.MergeFrom(a.DeepCopy())
				a.Status.Attached = true
				_ = r.client.Status().Patch(ctx, a, base) // it repeats
			}
		}
	}
}

// attachedTo returns the names of the nodes that the volume is attached to.
func (r *rig) attachedTo(ctx context.Context) []string {
	var all storagev1.VolumeAttachmentList
	if err := r.client.List(ctx, &all); err != nil {
		return []string{err.Error()}
	}
	var nodes []string
	for _, a := range all.Items {
		if a.Status.Attached {
			nodes = append(nodes, a.Spec.NodeName)
		}
	}
	return nodes
}
