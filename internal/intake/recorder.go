package intake

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// StaleAfter is how long after its hard deadline a notice is still recorded. EventBridge
// retries a delivery for up to 24 hours (EventBridge User Guide, "How EventBridge retries
// delivering events"). An instance that was stopped may have been started since.
const StaleAfter = 10 * time.Minute

// ErrRefused is wrapped by errors of Record that a retry does not solve: the API server
// rejects the record.
var ErrRefused = errors.New("the API server refused the record")

// errStaleRead says that the record is not what was read: read it again.
var errStaleRead = errors.New("the interruption has changed since it was read")

// Recorder makes notices durable. It writes the spec of Interruptions and nothing else.
// It is safe for concurrent use, within a process and across replicas.
type Recorder struct {
	client   client.Client
	nodes    NodeIndex
	o        Options
	throttle *Throttle
	probes   *probes
	drills   drillReader
}

// NewRecorder returns a Recorder that writes with c and finds nodes in nodes.
func NewRecorder(c client.Client, nodes NodeIndex, o Options) *Recorder {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Live == nil {
		o.Live = c
	}
	o.Metrics = o.Metrics.OrUnread()
	return &Recorder{client: c, nodes: nodes, o: o, throttle: NewThrottle(o.Clock), probes: newProbes()}
}

// Record adds the notice to the Interruption of its instance, and creates that if there is
// none. An error means that the notice is not durable: do not acknowledge it. A retry
// cannot solve errors that wrap ErrRefused.
func (r *Recorder) Record(ctx context.Context, n notice.Notice) (Outcome, error) {
	now := r.o.Clock()
	n.ReceivedTime = receivedAt(&n, now)
	notice.Sanitize(&n.Notice)
	n.Description = shorten(n.Description)
	if r.refuses(ctx, &n) {
		return Foreign, nil
	}
	n.Time = issuedAt(&n, now)
	n.Deadline = ownDeadline(&n, now)
	if isImplausible(&n, now) {
		r.explainImplausible(ctx, &n)
		return Implausible, nil
	}
	if isStale(&n, now) {
		r.explainStale(ctx, &n)
		return Stale, nil
	}
	if n.Drill {
		if ok, err := r.permitted(ctx, &n, now); err != nil || !ok {
			return Unpermitted, err
		}
	}
	outcome, err := r.store(ctx, &n)
	if err != nil {
		return "", fmt.Errorf("recording %s of %s: %w", n.Kind, n.InstanceID, err)
	}
	if outcome == Recorded || outcome == Joined {
		r.o.Metrics.wrote(&n, r.o.Clock())
	}
	return outcome, nil
}

// store retries until a write is based on the current record. The first read may come from
// a cache; retries read live.
func (r *Recorder) store(ctx context.Context, n *notice.Notice) (Outcome, error) {
	var outcome Outcome
	var reader client.Reader = r.client
	retriable := func(err error) bool { return errors.Is(err, errStaleRead) && ctx.Err() == nil }
	pauses := wait.Backoff{Steps: 12, Duration: 10 * time.Millisecond, Factor: 1.5, Jitter: 0.5} // two seconds in all
	err := retry.OnError(pauses, retriable, func() error {
		var err error
		outcome, err = r.try(ctx, reader, n)
		reader = r.o.Live
		return err
	})
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err) {
		return "", fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return outcome, err
}

func (r *Recorder) try(ctx context.Context, reader client.Reader, n *notice.Notice) (Outcome, error) {
	var record v1beta1.Interruption
	err := reader.Get(ctx, client.ObjectKey{Name: n.InstanceID}, &record)
	switch {
	case apierrors.IsNotFound(err):
		return r.create(ctx, n)
	case err != nil:
		return "", fmt.Errorf("reading the interruption: %w", err)
	case !record.DeletionTimestamp.IsZero():
		return "", fmt.Errorf("%w: it is being deleted", errStaleRead)
	}
	return r.join(ctx, &record, n)
}

// create creates the record, if the instance is a node of this cluster.
func (r *Recorder) create(ctx context.Context, n *notice.Notice) (Outcome, error) {
	node, isKnown, err := r.nodeOf(ctx, n.InstanceID)
	if err != nil {
		return "", fmt.Errorf("finding the node: %w", err)
	}
	if !isKnown && (n.Withdrawn || saysGone(n)) {
		r.explainUnknown(ctx, n)
		return Foreign, nil // a terminated instance does not register, and a withdrawn notice needs no record
	}
	if !isKnown {
		return NotYetKnown, nil
	}
	if isOfEarlierLife(n, node) {
		r.explainEarlier(ctx, n)
		return Stale, nil
	}
	record := newRecord(node, n)
	// A CRD that is older than this release must not reject the notice.
	err = r.client.Create(ctx, record, client.FieldValidation(metav1.FieldValidationIgnore))
	if apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("%w: %w", errStaleRead, err)
	}
	if err != nil {
		return "", fmt.Errorf("creating the interruption: %w", err)
	}
	log.FromContext(ctx).Info("recorded interruption", describe(n, "node", record.Spec.NodeName)...)
	return Recorded, nil
}

func newRecord(node *corev1.Node, n *notice.Notice) *v1beta1.Interruption {
	in := &v1beta1.Interruption{
		ObjectMeta: metav1.ObjectMeta{Name: n.InstanceID},
		Spec:       v1beta1.InterruptionSpec{InstanceID: n.InstanceID, Notices: []v1beta1.Notice{n.Notice}},
	}
	if node != nil {
		in.Spec.NodeName, in.Spec.NodeUID = node.Name, node.UID
	}
	return in
}

// receivedAt returns when the notice was received: as its source says, else now. It is
// never in the future, so that a clock that was set back cannot reopen a record. It has the
// resolution that JSON keeps, so that comparisons hold after a round trip.
func receivedAt(n *notice.Notice, now time.Time) metav1.MicroTime {
	at := now
	if !n.ReceivedTime.IsZero() {
		at = notice.Received(&n.Notice, now)
	}
	return metav1.NewMicroTime(at.Truncate(time.Microsecond))
}
