// Package polltest is a fake cluster for tests of polling sources. It counts
// its calls, and can be made unreachable.
package polltest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/record/recordtest"
)

// ErrAway is the error of all calls while the API server is unreachable.
var ErrAway = errors.New("connection refused")

// World is a cluster with its own clock, log and metrics.
type World struct {
	Kube     client.WithWatch
	Metrics  *intake.Metrics
	Registry *prometheus.Registry

	t testing.TB

	mu            sync.Mutex
	now           time.Time // zero: the real time
	reads, writes int
	away, lax     bool
	lines         []string
}

// New returns an empty cluster. Its clock is the real one until Set.
func New(t testing.TB) *World {
	t.Helper()
	w := &World{t: t, Registry: prometheus.NewRegistry()}
	var err error
	if w.Metrics, err = intake.NewMetrics(w.Registry); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w.Kube = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1beta1.Interruption{}, &v1beta1.NodeNotice{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				return w.call(&w.reads, func() error { return c.Get(ctx, key, o, opts...) })
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				return w.call(nil, func() error { return c.List(ctx, list, opts...) }) // caches answer these
			},
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				return w.call(&w.writes, func() error { return c.Create(ctx, o, opts...) })
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				return w.call(&w.writes, func() error { return c.Patch(ctx, o, p, opts...) })
			},
		}).Build()
	return w
}

func (w *World) call(count *int, do func() error) error {
	w.mu.Lock()
	away := w.away
	if count != nil {
		*count++
	}
	w.mu.Unlock()
	if away {
		return ErrAway
	}
	return do()
}

// AgentClient returns a client that an admission policy limits to the NodeNotices of the nodes
// that exist, unless Lax.
func (w *World) AgentClient() client.Client {
	return interceptor.NewClient(w.Kube, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			w.mu.Lock()
			lax := w.lax
			w.mu.Unlock()
			if err := c.Get(ctx, client.ObjectKey{Name: o.GetName()}, &corev1.Node{}); err == nil || w.isAway() {
				return c.Create(ctx, o, opts...)
			}
			w.mu.Lock()
			w.reads--
			w.mu.Unlock()
			if lax {
				return nil // as in a dry run
			}
			return apierrors.NewForbidden(schema.GroupResource{Group: "lifeboat.dev", Resource: "nodenotices"}, o.GetName(),
				errors.New("ValidatingAdmissionPolicy 'lifeboat-agent' with binding 'lifeboat-agent' denied request"))
		},
	})
}

// Lax puts the admission policy of the agents out of force, or in force.
func (w *World) Lax(lax bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lax = lax
}

func (w *World) isAway() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.away
}

// NodeName is the name of the node of an instance.
func NodeName(id string) string { return "node-" + id }

// Written returns what the agent of an instance's node has written.
func (w *World) Written(id string) []v1beta1.MetadataNotice {
	w.t.Helper()
	var list v1beta1.NodeNoticeList
	if err := w.Kube.List(context.Background(), &list); err != nil {
		w.t.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].Spec.InstanceID == id {
			return list.Items[i].Spec.Notices
		}
	}
	return nil
}

// Recorder returns the product's own recorder on this cluster.
func (w *World) Recorder() *intake.Recorder {
	return intake.NewRecorder(w.Kube, w, intake.Options{Clock: w.Clock, Metrics: w.Metrics})
}

// AddNode creates the node of an instance, without a creation time; labels are
// pairs.
func (w *World) AddNode(id string, labels ...string) {
	w.t.Helper()
	w.addNode(id, time.Time{}, labels)
}

// RegisterAgain deletes the node of an instance and creates it now.
func (w *World) RegisterAgain(id string) {
	w.t.Helper()
	w.RemoveNode(id)
	w.addNode(id, w.Clock(), nil)
}

func (w *World) addNode(id string, created time.Time, labels []string) {
	w.t.Helper()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: NodeName(id), UID: types.UID("uid-" + id + created.Format(time.RFC3339)),
			Labels: map[string]string{}, CreationTimestamp: metav1.NewTime(created),
		},
		Spec: corev1.NodeSpec{ProviderID: "aws:///eu-west-1a/" + id},
	}
	for pair := range slices.Chunk(labels, 2) {
		node.Labels[pair[0]] = pair[1]
	}
	if err := w.Kube.Create(context.Background(), node); err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes--
}

// RemoveNode deletes the node of an instance, if there is one.
func (w *World) RemoveNode(id string) {
	w.t.Helper()
	if err := w.Kube.Delete(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: NodeName(id)}}); client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
}

// PermitDrill permits a drill of an instance in the cluster.
func (w *World) PermitDrill(id, instance string) {
	w.t.Helper()
	value, err := intake.DrillValue(intake.DrillPermit{Instances: []string{instance}, Expires: w.Clock().Add(time.Hour)})
	if err == nil {
		err = w.Kube.Create(w.t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: intake.DrillNamespace, Name: intake.DrillLease, Annotations: map[string]string{intake.DrillAnnotation(id): value},
		}})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// NodeByInstance makes the world an intake.NodeIndex.
func (w *World) NodeByInstance(ctx context.Context, id string) (*corev1.Node, error) {
	var nodes corev1.NodeList
	if err := w.Kube.List(ctx, &nodes); err != nil {
		return nil, err
	}
	for i := range nodes.Items {
		if nodeindex.InstanceID(&nodes.Items[i]) == id {
			return &nodes.Items[i], nil
		}
	}
	return nil, nil //nolint:nilnil // as intake.NodeIndex has it
}

// Clock returns the world's time.
func (w *World) Clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.now.IsZero() {
		return time.Now()
	}
	return w.now
}

// Set sets the clock and stops it.
func (w *World) Set(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = now
}

// Pass advances a clock that was set.
func (w *World) Pass(d time.Duration) { w.Set(w.Clock().Add(d)) }

// Away makes the API server unreachable, or reachable again.
func (w *World) Away(away bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.away = away
}

// Spent returns the reads of single objects and the writes since the last call.
func (w *World) Spent() (reads, writes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	reads, writes = w.reads, w.writes
	w.reads, w.writes = 0, 0
	return reads, writes
}

// Notices returns the recorded notices of an instance.
func (w *World) Notices(id string) []v1beta1.Notice {
	w.t.Helper()
	var list v1beta1.InterruptionList
	if err := w.Kube.List(context.Background(), &list); err != nil {
		w.t.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].Name == id {
			return list.Items[i].Spec.Notices
		}
	}
	return nil
}

// IDs returns the ids of the recorded notices of an instance.
func (w *World) IDs(id string) []string {
	w.t.Helper()
	var ids []string
	for _, n := range w.Notices(id) {
		ids = append(ids, n.ID)
	}
	return ids
}

// Finish completes the record of an instance, as the controller would.
func (w *World) Finish(id string) {
	w.t.Helper()
	record := &v1beta1.Interruption{}
	if err := w.Kube.Get(context.Background(), client.ObjectKey{Name: id}, record); err != nil {
		w.t.Fatal(err)
	}
	recordtest.Complete(record, w.Clock(), w.IDs(id)...)
	if err := w.Kube.Status().Update(context.Background(), record); err != nil {
		w.t.Fatal(err)
	}
}

// Logger returns a logger whose lines Said counts.
func (w *World) Logger() logr.Logger {
	return funcr.New(func(_, args string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.lines = append(w.lines, args)
	}, funcr.Options{})
}

// Said counts the log lines that contain all the parts.
func (w *World) Said(parts ...string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	count := 0
	for _, line := range w.lines {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			count++
		}
	}
	return count
}

// Log returns what was logged.
func (w *World) Log() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.lines, "\n")
}

// Until waits for a condition, in real time.
func (w *World) Until(what string, holds func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("waited too long until %s; log:\n%s", what, w.Log())
		}
	}
}
