package nodegroup

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/groupcache"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
)

var start = time.Date(2026, 5, 11, 8, 14, 2, 0, time.UTC)

// world is the controller with one group and a fake AWS.
type world struct {
	t      *testing.T
	client client.Client
	loop   *Controller
	now    time.Time
	events *events.FakeRecorder
	writes atomic.Int32 // of status

	// The fake AWS: the group and the calls.
	at      nodegroup.Observed
	looks   int
	steps   []string
	lookErr error
	actErr  error
	idle    bool // steps change nothing
	// The state of the watch and the tracker.
	watched map[string]groupcache.Group
	hints   int
	actions []v1beta1.LifecycleAction
	boots   *v1beta1.BootTimes
	failed  int32
	seeded  bool
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, now: start, events: events.NewFakeRecorder(100), seeded: true, watched: map[string]groupcache.Group{}}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1beta1.NodeGroup{}).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			w.writes.Add(1)
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		}}).Build()
	w.start()
	return w
}

// start starts a controller without memory.
func (w *world) start() {
	w.t.Helper()
	loop, err := New(Options{
		Client: w.client, Nodes: w, Watch: w, AWS: w, Tracker: w, Events: w.events, Cluster: "prod",
		Clock: func() time.Time { return w.now }, Registerer: prometheus.NewRegistry(),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.loop = loop
}

// The dependencies of the controller.

func (w *world) NodeByInstance(ctx context.Context, id string) (*corev1.Node, error) {
	var all corev1.NodeList
	err := w.client.List(ctx, &all)
	for i := range all.Items {
		if strings.HasSuffix(all.Items[i].Spec.ProviderID, id) {
			return &all.Items[i], err
		}
	}
	return nil, err
}

func (w *world) Group(name string) (groupcache.Group, bool) { g, ok := w.watched[name]; return g, ok }

func (w *world) Member(id string) (groupcache.Member, bool, time.Time) {
	for _, g := range w.watched {
		for _, m := range g.Members {
			if m.InstanceID == id {
				return m, true, g.At
			}
		}
	}
	return groupcache.Member{}, false, time.Time{}
}

func (w *world) RequestRefreshHooks(string) { w.hints++ }

func (w *world) Observe(_ context.Context, name string, now time.Time) (nodegroup.Observed, error) {
	w.looks++
	o := w.at
	o.Name, o.At = name, now
	o.Hooks, o.Instances = slices.Clone(o.Hooks), slices.Clone(o.Instances)
	return o, w.lookErr
}

// Apply performs the relevant part of a step.
func (w *world) Apply(_ context.Context, want nodegroup.Wanted, s nodegroup.Step) error {
	if w.actErr != nil {
		return w.actErr
	}
	w.steps = append(w.steps, s.String())
	if w.idle {
		return nil
	}
	switch s.Verb {
	case nodegroup.CreateGroup:
		w.at = healthy()
		w.at.Instances = nil
	case nodegroup.PutHook:
		h := want.Launch
		if s.Object == want.Terminate.Name {
			h = want.Terminate
		}
		w.at.Hooks = append(slices.DeleteFunc(w.at.Hooks, func(o nodegroup.Hook) bool { return o.Name == h.Name }), h)
	case nodegroup.PutPool:
		w.at.Pool = want.Pool
	case nodegroup.DropPool:
		w.at.Pool = nil
	case nodegroup.DeleteGroup:
		w.at = nodegroup.Observed{}
	}
	return nil
}

func (w *world) Actions(string) []v1beta1.LifecycleAction { return slices.Clone(w.actions) }
func (w *world) Boots(string) *v1beta1.BootTimes          { return w.boots }
func (w *world) Seeded() bool                             { return w.seeded }
func (w *world) Failures(string) (int32, []v1beta1.GroupFailure) {
	if w.failed == 0 {
		return 0, nil
	}
	return w.failed, []v1beta1.GroupFailure{{Time: metav1.NewTime(start), InstanceID: "i-9", Message: "abandoned"}}
}

// declared is a NodeGroup.
func declared(change ...func(*v1beta1.NodeGroup)) *v1beta1.NodeGroup {
	one, five := int32(1), int32(5)
	g := &v1beta1.NodeGroup{
		ObjectMeta: metav1.ObjectMeta{Name: "workers", Generation: 1, CreationTimestamp: metav1.NewTime(start.Add(-time.Hour))},
		Spec: v1beta1.NodeGroupSpec{
			Management: v1beta1.ManageAll, LaunchTemplate: &v1beta1.LaunchTemplate{Name: "workers", Version: "3"},
			MinSize: &one, MaxSize: &five, Subnets: []string{"subnet-a"},
		},
	}
	for _, c := range change {
		c(g)
	}
	return g
}

func manage(m v1beta1.Management) func(*v1beta1.NodeGroup) {
	return func(g *v1beta1.NodeGroup) { g.Spec.Management = m }
}

func deleting(g *v1beta1.NodeGroup) { g.Spec.DeletionPolicy = v1beta1.DeleteGroup }

// healthy is a group that matches the spec.
func healthy() nodegroup.Observed {
	return nodegroup.Observed{
		Exists: true, Name: "workers", ARN: "arn:workers", Min: 1, Max: 5, Desired: 1, HooksKnown: true, PoolKnown: true,
		Tags: map[string]string{nodegroup.TagObject: "workers", "kubernetes.io/cluster/prod": "owned"},
		Hooks: []nodegroup.Hook{
			{Name: v1beta1.LaunchHook, Timeout: 10 * time.Minute, Abandons: true},
			{Name: v1beta1.TerminateHook, Terminating: true, Timeout: 5 * time.Minute},
		},
		Instances: []nodegroup.Instance{member("i-1", "InService")},
		Settings:  &nodegroup.Settings{Template: &v1beta1.LaunchTemplate{Name: "workers", Version: "3"}, Current: "3", Subnets: []string{"subnet-a"}},
	}
}

func member(id, state string) nodegroup.Instance {
	return nodegroup.Instance{ID: id, State: state, At: lifecycle.Read(state), TemplateVersion: "3"}
}

// watch updates the watch to the current group.
func (w *world) watch() {
	o := w.at
	g := groupcache.Group{Name: o.Name, ARN: o.ARN, Operator: o.Operator, Min: o.Min, Max: o.Max, Desired: o.Desired, Tags: o.Tags, Pool: o.Pool != nil, HooksKnown: true, At: w.now}
	for _, h := range o.Hooks {
		g.Hooks = append(g.Hooks, groupcache.Hook{Name: h.Name, Terminating: h.Terminating, Timeout: h.Timeout, Global: h.Global, Abandons: h.Abandons})
	}
	for _, i := range o.Instances {
		g.Members = append(g.Members, groupcache.Member{InstanceID: i.ID, Group: o.Name, State: i.State, At: i.At, LaunchTemplateVersion: i.TemplateVersion})
	}
	w.watched[o.Name] = g
}

// pass reconciles once.
func (w *world) pass() reconcile.Result {
	w.t.Helper()
	again, err := w.loop.reconcile(w.t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "workers"}})
	if err != nil {
		w.t.Fatal(err)
	}
	return again
}

// rest reconciles until no requeue is due soon.
func (w *world) rest() *v1beta1.NodeGroup {
	w.t.Helper()
	for range 20 {
		again := w.pass()
		if again.RequeueAfter == 0 || again.RequeueAfter > patience/4 {
			break
		}
		w.now = w.now.Add(again.RequeueAfter)
	}
	return w.object()
}

func (w *world) object() *v1beta1.NodeGroup {
	w.t.Helper()
	var g v1beta1.NodeGroup
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Name: "workers"}, &g); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		w.t.Fatal(err)
	}
	return &g
}

// wants checks a condition.
func wants(t *testing.T, g *v1beta1.NodeGroup, condition string, status metav1.ConditionStatus, reason, message string) {
	t.Helper()
	c := meta.FindStatusCondition(g.Status.Conditions, condition)
	if c == nil || c.Status != status || c.Reason != reason || !strings.Contains(c.Message, message) {
		t.Errorf("condition %s: %+v, want %s, %s: %q", condition, c, status, reason, message)
	}
}

// newEvents returns the Events so far.
func (w *world) newEvents() []string {
	var all []string
	for {
		select {
		case e := <-w.events.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}
