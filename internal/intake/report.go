package intake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=list

// Report is an AWS event that is not about an instance: Lifeboat takes no action, but the owner
// of the affected object must see it.
type Report struct {
	// ID is the same for repeats.
	ID string
	// Volumes are the affected EBS volumes; none: the cluster as a whole.
	Volumes []string
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
	about := notice.Notice{Notice: v1beta1.Notice{ID: report.ID, Kind: "Report", Time: metav1.NewTime(report.Time)},
		InstanceID: strings.Join(report.Volumes, " "), Account: report.Account, Region: report.Region}
	if r.refuses(ctx, &about) {
		return Foreign, nil
	}
	regarding := []corev1.ObjectReference{{APIVersion: "v1", Kind: "Namespace", Name: metav1.NamespaceSystem}}
	if len(report.Volumes) > 0 {
		var err error
		if regarding, err = r.usersOf(ctx, report.Volumes); err != nil {
			return "", fmt.Errorf("finding who uses %d volumes: %w", len(report.Volumes), err)
		}
	}
	if len(regarding) == 0 {
		return Foreign, nil
	}
	outcome := Foreign
	for i := range regarding {
		err := r.client.Create(ctx, r.event(&report, &regarding[i]))
		switch {
		case err == nil:
			outcome = Recorded
		case isNamespaceGone(err): // a released volume still names its claim
		case apierrors.IsAlreadyExists(err):
			if outcome == Foreign {
				outcome = Repeated
			}
		default:
			return "", fmt.Errorf("writing the event about %s %s: %w", regarding[i].Kind, regarding[i].Name, err)
		}
	}
	if outcome == Recorded {
		log.FromContext(ctx).Info("reported", "volumes", len(report.Volumes), "message", report.Message)
	}
	return outcome, nil
}

// isNamespaceGone reports whether an object was refused because its namespace is deleted, or is being
// deleted.
func isNamespaceGone(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// usersOf finds the claims of EBS volumes and the pods that use them. Such events are rare, so it
// reads from the API server instead of caching all volumes: once, however many volumes there are,
// and the pods once for each namespace.
func (r *Recorder) usersOf(ctx context.Context, ids []string) ([]corev1.ObjectReference, error) {
	var volumes corev1.PersistentVolumeList
	if err := r.o.Live.List(ctx, &volumes); err != nil {
		return nil, fmt.Errorf("listing persistent volumes: %w", err)
	}
	affected := map[string]bool{}
	for _, id := range ids {
		affected[id] = true
	}
	var users []corev1.ObjectReference
	claims := map[string]map[string]bool{} // names by namespace
	for i := range volumes.Items {
		claim := volumes.Items[i].Spec.ClaimRef
		if claim == nil || !affected[volumeID(&volumes.Items[i])] || claims[claim.Namespace][claim.Name] {
			continue
		}
		if claims[claim.Namespace] == nil {
			claims[claim.Namespace] = map[string]bool{}
		}
		claims[claim.Namespace][claim.Name] = true
		users = append(users, corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID})
	}
	for _, namespace := range slices.Sorted(maps.Keys(claims)) {
		pods, err := r.podsWith(ctx, namespace, claims[namespace])
		if err != nil {
			return nil, err
		}
		users = append(users, pods...)
	}
	return users, nil
}

// volumeID is the EBS volume of a persistent volume: the CSI driver's handle, or the end of the
// path with a zone of in-tree volumes. It is empty for other kinds.
func volumeID(v *corev1.PersistentVolume) string {
	switch {
	case v.Spec.CSI != nil:
		return v.Spec.CSI.VolumeHandle
	case v.Spec.AWSElasticBlockStore != nil:
		path := v.Spec.AWSElasticBlockStore.VolumeID
		return path[strings.LastIndexByte(path, '/')+1:]
	}
	return ""
}

// podsWith returns the pods of a namespace that use one of the claims.
func (r *Recorder) podsWith(ctx context.Context, namespace string, claims map[string]bool) ([]corev1.ObjectReference, error) {
	var pods corev1.PodList
	if err := r.o.Live.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	var users []corev1.ObjectReference
	for i := range pods.Items {
		pod := &pods.Items[i]
		if slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && claims[v.PersistentVolumeClaim.ClaimName]
		}) {
			users = append(users, corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID})
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
		Action: "Report", Reason: v1beta1.ReasonReported, Regarding: *about, Note: shorten(report.Message), Type: corev1.EventTypeWarning,
	}
}

// maxDescription is the bound on Notice.Description in the CRD, in characters.
const maxDescription = 1024

// shorten cuts a description to what the CRD takes.
func shorten(s string) string {
	if utf8.RuneCountInString(s) <= maxDescription {
		return s
	}
	return string([]rune(s)[:maxDescription-1]) + "…"
}
