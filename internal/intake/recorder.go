package intake

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// StaleAfter is how long after its hard deadline a notice is still recorded.
// EventBridge tries to deliver for up to 24 hours (EventBridge User Guide,
// "How EventBridge retries delivering events"), and an instance that was
// stopped may long have been started again.
const StaleAfter = 10 * time.Minute

// ErrRefused is wrapped by errors of Record that trying again does not mend:
// the API server does not accept the record.
var ErrRefused = errors.New("the API server refused the record")

// errBehind says that the record is not what was read: read it again.
var errBehind = errors.New("the interruption changed meanwhile")

// maxDescription is the bound on Notice.Description in the CRD, in characters.
const maxDescription = 1024

// Options are what a Recorder can be told.
type Options struct {
	// Account and Region are those of this cluster: a notice that says it is
	// of another is refused. Empty is not checked, and a notice that does not
	// say is not refused. Give them wherever they are known: the account is
	// what keeps out messages that others send to the queue.
	Account, Region string
	// Cluster is this cluster's name: probes of others are passed over. Empty is
	// not checked.
	Cluster string
	// Alias reports whether another name is this cluster's too; nil: none is.
	Alias func(cluster string) bool
	// Live reads past a cache, after a write has shown that the cache is
	// behind. Nil: the client itself.
	Live client.Reader
	// Expect is called with the id of an instance before its record is made; nil: nobody
	// wants to know so early. It must not block.
	Expect func(instanceID string)
	// Ahead is told of a record that is about to be made and the node that it is of, where
	// a source says so (Recorder.Ahead), and reports whether it has done anything; nil: nobody
	// wants to know so early.
	Ahead func(ctx context.Context, record *v1alpha1.Interruption, node *corev1.Node) bool
	// Pods returns the pods that have to leave the node of a record that is about to be made,
	// where that is known without delay: the record then has them. Nil: nobody knows.
	Pods func(ctx context.Context, record *v1alpha1.Interruption, node *corev1.Node) []v1alpha1.PodFound
	// Metrics are counted in; nil: nobody reads them.
	Metrics *Metrics
	// Clock tells the time; nil: time.Now.
	Clock func() time.Time
}

// Recorder makes notices durable. It writes the spec of Interruptions and
// nothing else. It is safe for concurrent use, in one process and in many.
type Recorder struct {
	client   client.Client
	nodes    NodeIndex
	o        Options
	throttle *Throttle
}

// NewRecorder returns a Recorder that writes with c and finds nodes in nodes.
func NewRecorder(c client.Client, nodes NodeIndex, o Options) *Recorder {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Live == nil {
		o.Live = c
	}
	if o.Expect == nil {
		o.Expect = func(string) {}
	}
	if o.Pods == nil {
		o.Pods = func(context.Context, *v1alpha1.Interruption, *corev1.Node) []v1alpha1.PodFound { return nil }
	}
	o.Metrics = o.Metrics.OrUnread()
	return &Recorder{client: c, nodes: nodes, o: o, throttle: NewThrottle(o.Clock)}
}

// Record adds the notice to the Interruption of its instance, which it makes
// where there is none. An error means that the notice is not durable: do not
// acknowledge it. Errors that wrap ErrRefused come again with the next try.
func (r *Recorder) Record(ctx context.Context, n notice.Notice) (Outcome, error) {
	now := r.o.Clock()
	n.ReceivedTime = receivedAt(&n, now)
	n.Description = shorten(n.Description)
	if r.refuses(ctx, &n) {
		return Foreign, nil
	}
	if isStale(&n, now) {
		r.explainStale(ctx, &n)
		return Stale, nil
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

// store reads and writes until the write meets what was read. The first read
// may come from a cache; once that has shown to be behind, reads are live.
func (r *Recorder) store(ctx context.Context, n *notice.Notice) (Outcome, error) {
	var outcome Outcome
	var reader client.Reader = r.client
	again := func(err error) bool { return errors.Is(err, errBehind) && ctx.Err() == nil }
	pauses := wait.Backoff{Steps: 12, Duration: 10 * time.Millisecond, Factor: 1.5, Jitter: 0.5} // two seconds in all
	err := retry.OnError(pauses, again, func() error {
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
	var record v1alpha1.Interruption
	err := reader.Get(ctx, client.ObjectKey{Name: n.InstanceID}, &record)
	switch {
	case apierrors.IsNotFound(err):
		return r.create(ctx, n)
	case err != nil:
		return "", fmt.Errorf("reading the interruption: %w", err)
	case !record.DeletionTimestamp.IsZero():
		return "", fmt.Errorf("%w: it is being deleted", errBehind)
	}
	return r.join(ctx, &record, n)
}

// create makes the record, if the instance is a node of this cluster.
func (r *Recorder) create(ctx context.Context, n *notice.Notice) (Outcome, error) {
	node, err := r.nodes.NodeByInstance(ctx, n.InstanceID)
	if err != nil {
		return "", fmt.Errorf("finding the node: %w", err)
	}
	if node == nil && (n.Withdrawn || saysGone(n)) {
		r.explainUnknown(ctx, n)
		return Foreign, nil // what is gone will not register, and what is over need not be known
	}
	if node == nil {
		return NotYetKnown, nil
	}
	if isOfEarlierLife(n, node) {
		r.explainEarlier(ctx, n)
		return Stale, nil
	}
	r.o.Expect(n.InstanceID)
	record := newRecord(node, n)
	record.Spec.Pods = r.o.Pods(ctx, record, node)
	// Where the CRD lacks a field, a patch that joins has the API server say so.
	err = r.client.Create(ctx, record, client.FieldValidation(metav1.FieldValidationIgnore))
	if apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("%w: %w", errBehind, err)
	}
	if err != nil {
		return "", fmt.Errorf("creating the interruption: %w", err)
	}
	log.FromContext(ctx).Info("recorded interruption", describe(n, "node", node.Name)...)
	return Recorded, nil
}

func newRecord(node *corev1.Node, n *notice.Notice) *v1alpha1.Interruption {
	return &v1alpha1.Interruption{
		ObjectMeta: metav1.ObjectMeta{Name: n.InstanceID},
		Spec: v1alpha1.InterruptionSpec{
			InstanceID: n.InstanceID,
			NodeName:   node.Name,
			NodeUID:    node.UID,
			Notices:    []v1alpha1.Notice{n.Notice},
		},
	}
}

// join adds the notice to a record, whose node may be gone and whose work may
// be finished: the controller begins anew for notices received since.
func (r *Recorder) join(ctx context.Context, record *v1alpha1.Interruption, n *notice.Notice) (Outcome, error) {
	notices, changed := notice.Join(record.Spec.Notices, n.Notice)
	if !changed {
		log.FromContext(ctx).V(1).Info("heard notice again", describe(n, "node", record.Spec.NodeName)...)
		return Repeated, nil
	}
	if hasLives(n) {
		node, err := r.nodes.NodeByInstance(ctx, n.InstanceID)
		if err != nil {
			return "", fmt.Errorf("finding the node: %w", err)
		}
		if isOfEarlierLife(n, node) {
			r.explainEarlier(ctx, n)
			return Stale, nil
		}
	}
	// The lock makes this write fail if anybody wrote since: the patch carries
	// the whole list.
	patch := client.MergeFromWithOptions(record.DeepCopy(), client.MergeFromWithOptimisticLock{})
	record.Spec.Notices = notices
	err := r.client.Patch(ctx, record, patch)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return "", fmt.Errorf("%w: %w", errBehind, err)
	}
	if err != nil {
		return "", fmt.Errorf("joining the interruption: %w", err)
	}
	log.FromContext(ctx).Info("joined notice to interruption", describe(n, "node", record.Spec.NodeName)...)
	return Joined, nil
}

// isStale reports whether the notice's firm deadline was over long ago.
func isStale(n *notice.Notice, now time.Time) bool {
	return notice.IsFirm(n.Deadline) && now.Sub(n.Deadline.Time.Time) > StaleAfter
}

// receivedAt is when the notice was received: now, where its source does not say.
func receivedAt(n *notice.Notice, now time.Time) metav1.MicroTime {
	if n.ReceivedTime.IsZero() {
		return metav1.NewMicroTime(now)
	}
	return n.ReceivedTime
}

// shorten cuts a description to what the CRD takes.
func shorten(s string) string {
	if utf8.RuneCountInString(s) <= maxDescription {
		return s
	}
	return string([]rune(s)[:maxDescription-1]) + "…"
}
