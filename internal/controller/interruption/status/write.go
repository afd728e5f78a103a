package status

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
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
	if d := u.after.Status.Drain; d != nil && equality.Semantic.DeepEqual(*d, v1alpha1.DrainStatus{}) {
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
func (w *Writer) patch(ctx context.Context, in *v1alpha1.Interruption, status *v1alpha1.InterruptionStatus) (version string, err error) {
	patch, err := json.Marshal([]any{
		map[string]any{"op": "replace", "path": "/metadata/resourceVersion", "value": in.ResourceVersion}, // else: a conflict
		map[string]any{"op": "add", "path": "/status", "value": status},
	})
	if err != nil {
		return "", fmt.Errorf("writing the status as JSON: %w", err)
	}
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: in.Name}}
	answer.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Interruption"))
	if err := w.Client.Status().Patch(ctx, answer, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return "", err
	}
	return answer.ResourceVersion, nil
}
