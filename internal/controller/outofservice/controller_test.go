package outofservice

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

const (
	instance = "i-0a1b2c3d4e5f60718"
	nodeName = "ip-10-0-1-5.ec2.internal"
)

var start = time.Date(2026, 5, 11, 8, 14, 2, 0, time.UTC)

// world is a dead node of an instance that EC2 says is terminated, with its Interruption.
type world struct {
	enabled  bool
	node     *corev1.Node
	others   []client.Object
	record   *v1beta1.Interruption
	instance *cloud.Instance
	err      error
	refuse   func(client.Object) error // of a patch
	asked    int
	events   *events.FakeRecorder

	client client.Client
	loop   *Controller
}

func (w *world) Describe(_ context.Context, id string) (*cloud.Instance, error) {
	w.asked++
	if id != instance {
		return nil, errors.New("asked for " + id)
	}
	return w.instance, w.err
}

func dead(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec: corev1.NodeSpec{
			ProviderID: "aws:///us-east-1a/" + instance,
			Taints:     []corev1.Taint{{Key: "node.kubernetes.io/unreachable", Effect: corev1.TaintEffectNoExecute}},
		},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}},
	}
}

func ready(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionTrue }

func newWorld() *world {
	return &world{
		enabled: true, node: dead(nodeName), instance: &cloud.Instance{ID: instance, State: "terminated"}, events: events.NewFakeRecorder(10),
		record: &v1beta1.Interruption{
			ObjectMeta: metav1.ObjectMeta{Name: instance},
			Spec: v1beta1.InterruptionSpec{InstanceID: instance, NodeName: nodeName, Notices: []v1beta1.Notice{{
				ID: "a", Kind: notice.KindSpotInterruption, Source: notice.SourceQueue, ReceivedTime: metav1.NewMicroTime(start),
			}}},
		},
	}
}

func (w *world) begin(t *testing.T) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	objects := append(slices.Clone(w.others), w.node)
	if w.record != nil {
		objects = append(objects, w.record)
	}
	refuse := func(o client.Object) error {
		if w.refuse == nil {
			return nil
		}
		return w.refuse(o)
	}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1beta1.Interruption{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				if err := refuse(o); err != nil {
					return err
				}
				return c.Patch(ctx, o, p, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				if err := refuse(o); err != nil {
					return err
				}
				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			},
		}).Build()
	w.loop = New(Options{
		Client: w.client, Live: w.client, Nodes: nodeindex.ListWith(w.client), Cloud: w, Events: w.events,
		Clock: func() time.Time { return start }, Enabled: w.enabled,
	})
	return w
}

// settle reconciles as often as a change would.
func (w *world) settle(t *testing.T) (last reconcile.Result) {
	t.Helper()
	for range 3 {
		var err error
		if last, err = w.loop.Reconcile(t.Context(), request()); err != nil {
			t.Fatal(err)
		}
	}
	return last
}

func request() reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: nodeName}}
}

// tainted reports whether the node has the taint, and checks that the others' taints stay.
func (w *world) tainted(t *testing.T) bool {
	t.Helper()
	var n corev1.Node
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: nodeName}, &n); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(n.Spec.Taints, func(x corev1.Taint) bool { return x.Key == "node.kubernetes.io/unreachable" }) {
		t.Error("the taint of another is gone")
	}
	return slices.ContainsFunc(n.Spec.Taints, func(x corev1.Taint) bool {
		return x.Key == corev1.TaintNodeOutOfService && x.Value == "nodeshutdown" && x.Effect == corev1.TaintEffectNoExecute
	})
}

func (w *world) condition(t *testing.T) string {
	t.Helper()
	var in v1beta1.Interruption
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: instance}, &in); err != nil {
		t.Fatal(err)
	}
	c := meta.FindStatusCondition(in.Status.Conditions, v1beta1.ConditionOutOfService)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason
}

// Of all worlds only those of a dead Node whose instance EC2 itself says is off get the taint.
func TestTaintOnlyWhatEC2SaysIsOff(t *testing.T) {
	t.Parallel()
	pause := func(stops v1beta1.PauseScope) *v1beta1.Pause {
		return &v1beta1.Pause{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: v1beta1.PauseSpec{
			Stops: stops, StartTime: metav1.NewTime(start.Add(-time.Minute)), Until: metav1.NewTime(start.Add(time.Hour)),
		}}
	}
	for name, tc := range map[string]struct {
		change func(*world)
		want   bool
		silent bool // EC2 is not asked
	}{
		"terminated":                   {func(*world) {}, true, false},
		"stopped, and its name agrees": {func(w *world) { w.instance.State, w.instance.DNSName = "stopped", nodeName }, true, false},
		"a finished record": {func(w *world) {
			at := metav1.NewMicroTime(start)
			w.record.Status.CompletionTime = &at
		}, true, false},
		"a drill beside a real notice": {func(w *world) {
			w.record.Spec.Notices = append(w.record.Spec.Notices, v1beta1.Notice{ID: "b", Drill: true})
		}, true, false},
		"a pause of what can wait": {func(w *world) { w.others = append(w.others, pause(v1beta1.PauseDeferrable)) }, true, false},

		"the option is off":           {func(w *world) { w.enabled = false }, false, true},
		"running":                     {func(w *world) { w.instance.State = "running" }, false, false},
		"shutting down":               {func(w *world) { w.instance.State = "shutting-down" }, false, false},
		"stopping":                    {func(w *world) { w.instance.State = "stopping" }, false, false},
		"EC2 does not know it":        {func(w *world) { w.instance = nil }, false, false},
		"EC2 does not answer":         {func(w *world) { w.err = errors.New("throttled") }, false, false},
		"the Node is Ready":           {func(w *world) { ready(w.node) }, false, true},
		"two Nodes state it":          {func(w *world) { w.others = append(w.others, dead("other")) }, false, true},
		"stopped, with another name":  {func(w *world) { w.instance.State, w.instance.DNSName = "stopped", "ip-10-0-1-6.ec2.internal" }, false, false},
		"stopped, without a name":     {func(w *world) { w.instance.State = "stopped" }, false, false},
		"no record":                   {func(w *world) { w.record = nil }, false, true},
		"a drill alone":               {func(w *world) { w.record.Spec.Notices[0].Drill = true }, false, true},
		"a withdrawn notice":          {func(w *world) { w.record.Spec.Notices[0].Withdrawn = true }, false, true},
		"no instance":                 {func(w *world) { w.node.Spec.ProviderID = "" }, false, true},
		"policy says Ignore":          {func(w *world) { w.record.Status.Decision = &v1beta1.Decision{Action: v1beta1.ActionIgnore} }, false, true},
		"a person holds it":           {func(w *world) { w.record.Spec.Hold = &v1beta1.UserAction{By: "ana", Time: metav1.NewMicroTime(start)} }, false, true},
		"a pause stops everything":    {func(w *world) { w.others = append(w.others, pause(v1beta1.PauseEverything)) }, false, true},
		"Ready by the API server now": {func(w *world) { w.others = append(w.others, freshNode()) }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			tc.change(w)
			live := slices.IndexFunc(w.others, func(o client.Object) bool { return o.GetName() == "fresh" })
			if live >= 0 {
				w.others = slices.Delete(w.others, live, live+1)
			}
			w.begin(t)
			if live >= 0 { // the cache is behind the API server
				n := w.node.DeepCopy()
				ready(n)
				w.loop.Live = fake.NewClientBuilder().WithObjects(n).Build()
			}
			w.settle(t)
			if got := w.tainted(t); got != tc.want {
				t.Errorf("tainted: %t, want %t", got, tc.want)
			}
			if tc.silent != (w.asked == 0) {
				t.Errorf("EC2 was asked %d times", w.asked)
			}
			if w.record != nil && (w.condition(t) == "True OutOfService") != tc.want {
				t.Errorf("condition %q", w.condition(t))
			}
			if got := len(w.events.Events); (got == 1) != tc.want {
				t.Errorf("%d Events", got)
			}
		})
	}
}

func freshNode() *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "fresh"}} }

// EC2 decides, not only the kubelet: a DaemonSet's pod that does not tolerate the taint could
// keep the Node from becoming Ready.
func TestTaintEndsWhenTheInstanceReturns(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*testing.T, *world)
		stays  bool
	}{
		"EC2 says it starts":   {func(_ *testing.T, w *world) { w.instance.State = "pending" }, false},
		"its kubelet is Ready": {func(t *testing.T, w *world) { w.edit(t, ready) }, false},
		"the option is off":    {func(_ *testing.T, w *world) { w.loop.Enabled = false }, false},
		"another instance": {func(t *testing.T, w *world) {
			w.edit(t, func(n *corev1.Node) { n.Spec.ProviderID = "aws:///a/i-0ffffffffffffffff" })
		}, false},
		"EC2 has forgotten it":  {func(_ *testing.T, w *world) { w.instance = nil }, true},
		"EC2 does not answer":   {func(_ *testing.T, w *world) { w.err = errors.New("throttled") }, true},
		"nothing has changed":   {func(*testing.T, *world) {}, true},
		"the record is deleted": {func(t *testing.T, w *world) { w.deleteRecord(t) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld().begin(t)
			w.settle(t)
			if !w.tainted(t) {
				t.Fatal("not tainted")
			}
			tc.change(t, w)
			last := w.settle(t)
			if got := w.tainted(t); got != tc.stays {
				t.Errorf("tainted: %t, want %t", got, tc.stays)
			}
			if tc.stays && last.RequeueAfter == 0 {
				t.Error("the controller does not look again")
			}
			if name == "EC2 says it starts" && w.condition(t) != "False BackInService" {
				t.Errorf("condition %q", w.condition(t))
			}
		})
	}
}

func (w *world) edit(t *testing.T, change func(*corev1.Node)) {
	t.Helper()
	var n corev1.Node
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: nodeName}, &n); err != nil {
		t.Fatal(err)
	}
	change(&n)
	status := n.Status
	if err := w.client.Update(t.Context(), &n); err != nil {
		t.Fatal(err)
	}
	n.Status = status
	if err := w.client.Status().Update(t.Context(), &n); err != nil {
		t.Fatal(err)
	}
}

func (w *world) deleteRecord(t *testing.T) {
	t.Helper()
	if err := w.client.Delete(t.Context(), w.record); err != nil {
		t.Fatal(err)
	}
}

// A person who sets the taint removes it too.
func TestTaintOfAPersonStays(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.node.Spec.Taints = append(w.node.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute})
	w.begin(t)
	w.settle(t)
	w.edit(t, ready)
	w.settle(t)
	if !w.tainted(t) || w.asked > 0 {
		t.Errorf("tainted %t, asked %d times", w.tainted(t), w.asked)
	}
}

// After a kill or a conflict at each write, the next passes complete what was begun.
func TestEveryWriteCanFail(t *testing.T) {
	t.Parallel()
	conflict := apierrors.NewConflict(v1beta1.GroupVersion.WithResource("x").GroupResource(), "x", errors.New("changed"))
	for _, err := range []error{conflict, errors.New("the API server is away")} {
		for broken := range 4 {
			w := newWorld().begin(t)
			writes := 0
			w.refuse = func(client.Object) error {
				writes++
				if writes == broken+1 {
					return err
				}
				return nil
			}
			pass := func() {
				for range 6 {
					_, _ = w.loop.Reconcile(t.Context(), request()) // an error is retried
				}
			}
			pass()
			if !w.tainted(t) || w.condition(t) != "True OutOfService" {
				t.Errorf("write %d, %v: tainted %t, condition %q", broken, err, w.tainted(t), w.condition(t))
			}
			w.instance.State = "running"
			pass()
			if w.tainted(t) || w.condition(t) != "False BackInService" {
				t.Errorf("write %d, %v: tainted %t, condition %q at the end", broken, err, w.tainted(t), w.condition(t))
			}
		}
	}
}

func TestHeartbeatsWakeNothing(t *testing.T) {
	t.Parallel()
	n := dead(nodeName)
	beat := n.DeepCopy()
	beat.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(start)
	back := n.DeepCopy()
	ready(back)
	if signature(n) != signature(beat) || signature(n) == signature(back) || signature(back) != (nodeState{ready: true}) {
		t.Error("the predicate of Nodes")
	}
	in := newWorld().record
	if got := nodeOf(t.Context(), in); len(got) != 1 || !strings.HasPrefix(got[0].Name, "ip-") {
		t.Errorf("requests %v", got)
	}
}
