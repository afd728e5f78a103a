package intake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=list

// Report is an AWS event that is not about an instance: Lifeboat takes no action, but the owner
// of the affected object must see it.
type Report struct {
	// ID is the same for repeats.
	ID string
	// Volume is the affected EBS volume; empty: the cluster as a whole.
	Volume string
	// Account and Region are the origin that the event names.
	Account, Region string
	// Time is when the cloud issued it.
	Time time.Time
	// Message is a sentence for people.
	Message string
}

// Report makes a report visible as Kubernetes Events: on the claim of the volume and the pods
// that use it, or on the namespace kube-system for the whole cluster. An error means that it is
// not durable.
func (r *Recorder) Report(ctx context.Context, report Report) (Outcome, error) {
	about := notice.Notice{Notice: v1alpha1.Notice{ID: report.ID, Kind: "Report", Time: metav1.NewTime(report.Time)},
		InstanceID: report.Volume, Account: report.Account, Region: report.Region}
	if r.refuses(ctx, &about) {
		return Foreign, nil
	}
	regarding := []corev1.ObjectReference{{APIVersion: "v1", Kind: "Namespace", Name: metav1.NamespaceSystem}}
	if report.Volume != "" {
		var err error
		if regarding, err = r.usersOf(ctx, report.Volume); err != nil {
			return "", fmt.Errorf("finding who uses volume %s: %w", report.Volume, err)
		}
	}
	if len(regarding) == 0 {
		return Foreign, nil
	}
	outcome := Repeated
	for i := range regarding {
		err := r.client.Create(ctx, r.event(&report, &regarding[i]))
		switch {
		case err == nil:
			outcome = Recorded
		case !apierrors.IsAlreadyExists(err):
			return "", fmt.Errorf("writing the event about %s %s: %w", regarding[i].Kind, regarding[i].Name, err)
		}
	}
	if outcome == Recorded {
		log.FromContext(ctx).Info("reported", "volume", report.Volume, "message", report.Message)
	}
	return outcome, nil
}

// usersOf finds the claim of an EBS volume and the pods that use it. Such events are rare, so it
// reads from the API server instead of caching all volumes.
func (r *Recorder) usersOf(ctx context.Context, volume string) ([]corev1.ObjectReference, error) {
	var volumes corev1.PersistentVolumeList
	if err := r.o.Live.List(ctx, &volumes); err != nil {
		return nil, fmt.Errorf("listing persistent volumes: %w", err)
	}
	for i := range volumes.Items {
		v := &volumes.Items[i]
		if claim := v.Spec.ClaimRef; claim != nil && isVolume(v, volume) {
			return r.usersOfClaim(ctx, claim)
		}
	}
	return nil, nil
}

// isVolume reports whether a persistent volume is the EBS volume: by the CSI driver's handle, or
// by the path with a zone of in-tree volumes.
func isVolume(v *corev1.PersistentVolume, id string) bool {
	switch {
	case v.Spec.CSI != nil:
		return v.Spec.CSI.VolumeHandle == id
	case v.Spec.AWSElasticBlockStore != nil:
		return strings.HasSuffix("/"+v.Spec.AWSElasticBlockStore.VolumeID, "/"+id)
	}
	return false
}

func (r *Recorder) usersOfClaim(ctx context.Context, claim *corev1.ObjectReference) ([]corev1.ObjectReference, error) {
	users := []corev1.ObjectReference{{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}}
	var pods corev1.PodList
	if err := r.o.Live.List(ctx, &pods, client.InNamespace(claim.Namespace)); err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		for _, v := range pod.Spec.Volumes {
			if v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim.Name {
				users = append(users, corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID})
				break
			}
		}
	}
	return users, nil
}

// event has a name derived from the report and its object, so that a repeat finds the existing
// Event.
func (r *Recorder) event(report *Report, about *corev1.ObjectReference) *eventsv1.Event {
	sum := sha256.Sum256([]byte(report.ID + "\n" + about.Kind + "/" + about.Name))
	namespace := about.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault // the namespace for Events about cluster-scoped objects
	}
	return &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: namespace, Name: "lifeboat-" + hex.EncodeToString(sum[:10])},
		EventTime:           metav1.NewMicroTime(r.o.Clock()),
		ReportingController: "lifeboat.dev/lifeboatd", ReportingInstance: "intake",
		Action: "Report", Reason: v1alpha1.ReasonReported, Regarding: *about, Note: shorten(report.Message), Type: corev1.EventTypeWarning,
	}
}
