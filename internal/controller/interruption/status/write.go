package status

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// Writer writes the status of Interruptions. Metrics and Expectations may be nil, the
// latter only without a FlushInterval.
type Writer struct {
	Client       client.Client
	Events       events.EventRecorder
	Metrics      *Metrics
	Expectations Expectations
	// FlushInterval is how long a transitional change may stay unwritten after the last
	// write; zero: every change is written at once.
	FlushInterval time.Duration
}

// Expectations remember the versions that this process replaced, which the cache may
// not show yet.
type Expectations interface {
	Replaced(name, version string, now time.Time)
	LastWrite(name string) time.Time
}

// Finish writes the status at the end of a pass if it changed. Only after the write
// succeeds does it emit Events, metrics and logs. It returns when to write a deferred
// change; zero: there is none.
func (w *Writer) Finish(ctx context.Context, u *Update) (flushAt time.Time, err error) {
	u.buildTimeline()
	if at := w.deferUntil(u); at.After(u.now) {
		u.Discard()
		flushAt = at
	} else {
		err = w.Write(ctx, u)
	}
	if !u.written {
		return flushAt, err
	}
	for _, e := range kubernetesEvents(u.writtenEvents) {
		log.FromContext(ctx).Info("reported", "reason", e.Reason, "message", e.Message)
		w.emit(u, e)
	}
	if w.Metrics != nil {
		w.Metrics.count(u)
	}
	return flushAt, err
}

// Write writes the status if it changed by more than a correction that can ride with
// the next change. No other function writes the status of an Interruption that is not
// finished.
func (w *Writer) Write(ctx context.Context, u *Update) error {
	u.buildTimeline()
	if d := u.after.Status.Drain; d != nil && equality.Semantic.DeepEqual(*d, v1beta1.DrainStatus{}) {
		u.after.Status.Drain = nil
	}
	if isNegligible(&u.before.Status, &u.after.Status) {
		return nil
	}
	version, err := w.patch(ctx, u.before, &u.after.Status)
	if err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	if version != u.before.ResourceVersion && w.Expectations != nil { // else the API server found no change
		w.Expectations.Replaced(u.before.Name, u.before.ResourceVersion, u.now)
	}
	u.before.ResourceVersion = version
	u.after.Status.DeepCopyInto(&u.before.Status)
	u.after, u.written, u.material = u.before.DeepCopy(), true, false
	u.writtenEvents, u.events = append(u.writtenEvents, u.events...), nil
	return nil
}

// patch writes the status of an Interruption that has not changed since it was read,
// and returns its new version. A JSON patch (RFC 6902) replaces the status as a whole,
// which costs the API server less than a merge patch. The response is metadata only.
func (w *Writer) patch(ctx context.Context, in *v1beta1.Interruption, status *v1beta1.InterruptionStatus) (version string, err error) {
	patch, err := json.Marshal([]any{
		map[string]any{"op": "replace", "path": "/metadata/resourceVersion", "value": in.ResourceVersion}, // else: a conflict
		map[string]any{"op": "add", "path": "/status", "value": status},
	})
	if err != nil {
		return "", fmt.Errorf("writing the status as JSON: %w", err)
	}
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: in.Name}}
	answer.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("Interruption"))
	if err := w.Client.Status().Patch(ctx, answer, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return "", err
	}
	return answer.ResourceVersion, nil
}

// FlushInterval is the default of Writer.FlushInterval. A status write costs the API
// server as much as several evictions (kubernetes issue 142223), and most nodes have
// many transitional changes in a drain.
const FlushInterval = 10 * time.Second

// deferUntil returns when a transitional change is written, and zero for a material
// one. It keeps nothing in memory: the pass at that time recomputes the change from
// the caches.
func (w *Writer) deferUntil(u *Update) time.Time {
	if w.FlushInterval == 0 {
		return time.Time{}
	}
	last := w.Expectations.LastWrite(u.before.Name)
	if last.IsZero() || u.material || u.written || !isTransitional(&u.before.Status, &u.after.Status) {
		return time.Time{}
	}
	at := last.Add(w.FlushInterval)
	if d := u.after.Status.Deadline; d != nil && d.Time.After(u.now) && d.Time.Time.Before(at) {
		return d.Time.Time // a pod that is gone after the deadline counts as lost
	}
	return at
}

// isTransitional reports whether two versions of a status differ only in counts,
// messages, the timeline and the state of pods that are listed already.
func isTransitional(was, is *v1beta1.InterruptionStatus) bool {
	return equality.Semantic.DeepEqual(materialPart(was), materialPart(is))
}

// materialPart returns the part of a status that is written at once.
func materialPart(s *v1beta1.InterruptionStatus) *v1beta1.InterruptionStatus {
	m := s.DeepCopy()
	m.Timeline, m.LastNoticeID = nil, ""
	if m.Decision != nil {
		m.Decision.Message = ""
	}
	for i := range m.Conditions {
		c := &m.Conditions[i]
		c.Message, c.ObservedGeneration, c.LastTransitionTime = "", 0, metav1.Time{}
	}
	if m.Drain == nil {
		return m
	}
	m.Drain.PodCounts = v1beta1.PodCounts{}
	m.Drain.Pods = nil
	if m.Drain.Replacement != nil {
		m.Drain.Replacement.Message = ""
	}
	if equality.Semantic.DeepEqual(*m.Drain, v1beta1.DrainStatus{}) {
		m.Drain = nil
	}
	return m
}

// maxCorrection is by how much the written eviction time of a pod may be wrong
// without a write for that alone.
const maxCorrection = 5 * time.Second

// isNegligible reports whether two versions of a status differ at most in the order of
// pods and in the second at which they were evicted. The next write corrects that.
func isNegligible(was, is *v1beta1.InterruptionStatus) bool {
	if was.Drain == nil || is.Drain == nil || len(was.Drain.Pods) != len(is.Drain.Pods) {
		return equality.Semantic.DeepEqual(was, is)
	}
	before, after := was.DeepCopy(), is.DeepCopy()
	before.Drain.Pods, after.Drain.Pods = byUID(before.Drain.Pods), byUID(after.Drain.Pods)
	for i := range after.Drain.Pods {
		before, left := &before.Drain.Pods[i], &after.Drain.Pods[i]
		if before.State != v1beta1.PodLeaving || before.EvictionTime == nil || left.EvictionTime == nil {
			continue
		}
		if left.EvictionTime.Sub(before.EvictionTime.Time).Abs() <= maxCorrection {
			left.EvictionTime, left.Reason, left.Message = before.EvictionTime, before.Reason, before.Message
		}
	}
	return equality.Semantic.DeepEqual(before, after)
}

// byUID returns pods in an order that does not depend on the plan.
func byUID(pods []v1beta1.PodStatus) []v1beta1.PodStatus {
	return slices.SortedFunc(slices.Values(pods), func(a, b v1beta1.PodStatus) int { return strings.Compare(string(a.UID), string(b.UID)) })
}

// emit emits one Kubernetes Event for a timeline entry, about the object that it
// concerns most: a pod, the node, or else the Interruption. It names a second object as
// related instead of emitting a second Event: Events are most requests for a notice.
func (w *Writer) emit(u *Update, e event) {
	typ := corev1.EventTypeNormal
	if reasons[e.Reason].warning {
		typ = corev1.EventTypeWarning
	}
	var about, related runtime.Object = u.after, nil
	switch {
	case e.pod != nil:
		about, related = e.pod, u.after
	case u.node != nil && reasons[e.Reason].ofNode:
		about, related = u.node, u.after
	case u.node != nil:
		related = u.node
	}
	w.Events.Eventf(about, related, typ, e.Reason, e.Reason, "%s", e.Message)
}
