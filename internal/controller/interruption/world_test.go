package interruption

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/status"
	"github.com/lifeboat-dev/lifeboat/internal/controller/lifecyclehook"
	"github.com/lifeboat-dev/lifeboat/internal/corroborate"
	"github.com/lifeboat-dev/lifeboat/internal/kube/budgetcache"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// start is when every test begins: the notice is received.
var start = time.Date(2026, 5, 11, 8, 14, 2, 0, time.UTC)

const instance = "i-0a1b2c3d4e5f60718"

// world is an in-memory cluster with a controller, whose clock the test moves. It also simulates
// the kubelets: see stopped.
type world struct {
	t       *testing.T
	mu      sync.Mutex // the controller evicts several pods concurrently
	client  client.Client
	loop    *Controller
	now     time.Time
	unknown bool // the pod list has not arrived yet
	stale   bool // it has, and later changes are not delivered
	lagging bool // the pod watch is behind: it shows no pod as terminating
	watched int  // how many nodes are drained
	// askedFor counts the calls that request the delivery of changes.
	askedFor int
	// evictions are the pods for which an eviction was requested, in order.
	evictions []string
	// deletions are the pods that were deleted, with their grace.
	deletions map[string]int64
	// asked is when pods were asked to stop, and grace what they were given.
	asked map[string]time.Time
	grace map[string]int64
	// refuse is the API server's answer to evictions.
	refuse error
	// failPatch is its answer to the next status patch.
	failPatch error
	// refuses is what the API server refuses, each time.
	refuses *apiRefusal
	// lives is how many writes the process makes before it is killed; nil: it is not killed.
	lives *int
	// informed are the versions that the barrier has seen.
	informed map[string]*v1beta1.Interruption
	// ec2 are the instances whose state or name at EC2 is not that of their node; described
	// counts the questions about instances, and descriptions is why EC2 does not answer.
	ec2         map[string]cloud.Instance
	described   int
	undescribed error
	// wake is when the last pass wants the next one.
	wake time.Duration
	// hooks is the controller of lifecycle hooks; nil: there is none.
	hooks *lifecyclehook.Controller
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	knowKarpenter(scheme)
	w := &world{t: t, now: start, refuses: &apiRefusal{}, deletions: map[string]int64{}, asked: map[string]time.Time{}, grace: map[string]int64{}}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&v1beta1.Interruption{}).WithIndex(&corev1.Pod{}, "spec.nodeName", nodeOfPod).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourceCreate: w.evict, Delete: w.delete, SubResourcePatch: w.patch, Create: w.create, Patch: w.change, List: w.list,
		}).Build()
	metrics, err := status.NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	w.loop = New(Options{
		Client: w.client, Nodes: w, Pods: w, Budgets: budgetcache.ListWith(w.client), Metrics: metrics, Events: events.NewFakeRecorder(1000),
		Clock: func() time.Time { return w.now }, Margin: 10 * time.Second, TTL: time.Hour, Cloud: &fakeTerminator{world: w},
	})
	return w
}

// describe simulates EC2: an instance runs and has the name of its node.
func (w *world) describe(id string) (*cloud.Instance, error) {
	w.described++
	if w.undescribed != nil {
		return nil, w.undescribed
	}
	i := cloud.Instance{ID: id, State: "running", SpotStatus: "marked-for-termination"}
	if node, _ := w.NodeByInstance(context.Background(), id); node != nil {
		i.DNSName = node.Name + ".ec2.internal"
	}
	if other, ok := w.ec2[id]; ok {
		i.State = cmp.Or(other.State, i.State)
		i.DNSName = cmp.Or(other.DNSName, i.DNSName)
		i.SpotStatus = cmp.Or(other.SpotStatus, i.SpotStatus)
	}
	return &i, nil
}

func (w *world) evict(ctx context.Context, c client.Client, _ string, o, _ client.Object, _ ...client.SubResourceCreateOption) error {
	if err := w.dies(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var records v1beta1.InterruptionList
	if err := c.List(ctx, &records); err != nil {
		return err
	}
	if !slices.ContainsFunc(records.Items, func(in v1beta1.Interruption) bool {
		return slices.ContainsFunc(record.Pending(record.Drain(&in.Status)), func(left v1beta1.PodStatus) bool { return left.Name == o.GetName() })
	}) && w.refuses.status == 0 {
		w.t.Errorf("%s is asked to stop before the record lists it", o.GetName())
	}
	if err := w.refuses.of("evict", o); err != nil {
		return err
	}
	if w.refuse != nil {
		return w.refuse
	}
	w.evictions = append(w.evictions, o.GetName())
	w.asked[o.GetName()], w.grace[o.GetName()] = w.now, 30
	spent := &policyv1.PodDisruptionBudget{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: "default", Name: "web"}, spent); err != nil {
		return client.IgnoreNotFound(err)
	}
	spent.Status.DisruptionsAllowed--
	return c.Status().Update(ctx, spent)
}

func (w *world) delete(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
	if err := w.dies(); err != nil {
		return err
	}
	if err := w.refuses.of("delete", o); err != nil {
		return err
	}
	if _, ok := o.(*corev1.Pod); !ok {
		return c.Delete(ctx, o)
	}
	options := client.DeleteOptions{}
	options.ApplyOptions(opts)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deletions[o.GetName()] = -1
	if options.GracePeriodSeconds != nil {
		w.deletions[o.GetName()] = *options.GracePeriodSeconds
	}
	w.asked[o.GetName()], w.grace[o.GetName()] = w.now, w.deletions[o.GetName()]
	return nil
}

func (w *world) patch(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	if err := w.failPatch; err != nil {
		w.failPatch = nil
		return err
	}
	if err := w.refuses.of("patch "+sub, o); err != nil {
		return err
	}
	if err := w.dies(); err != nil {
		return err
	}
	return c.SubResource(sub).Patch(ctx, o, p, opts...)
}

// dies reports whether the process is killed: from then on every request fails.
func (w *world) dies() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lives == nil {
		return nil
	}
	if *w.lives--; *w.lives < 0 {
		return errKilled
	}
	return nil
}

// NodeByInstance and Pods simulate the index and the watch.
func (w *world) NodeByInstance(ctx context.Context, id string) (*corev1.Node, error) {
	var nodes corev1.NodeList
	if err := w.client.List(ctx, &nodes); err != nil {
		return nil, err
	}
	var of []*corev1.Node
	for i := range nodes.Items {
		if nodeindex.InstanceID(&nodes.Items[i]) == id {
			of = append(of, &nodes.Items[i])
		}
	}
	return corroborate.Current(id, of)
}

func (w *world) Pods(ctx context.Context, node string) ([]*corev1.Pod, bool, error) {
	var list corev1.PodList
	if err := w.client.List(ctx, &list); err != nil {
		return nil, false, err
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		pod := &list.Items[i]
		if asked, ok := w.asked[pod.Name]; ok && !w.lagging {
			grace := w.grace[pod.Name]
			at := metav1.NewTime(asked.Add(time.Duration(grace) * time.Second))
			pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &at, &grace
		}
		if pod.Spec.NodeName == node {
			pods = append(pods, pod)
		}
	}
	return pods, !w.unknown, nil
}

func (w *world) Await(context.Context, string) {}
func (w *world) Current(node string) bool {
	w.askedFor++
	return node != "" && !w.stale
}
func (w *world) Watched() int  { return w.watched }
func (w *world) Forget(string) {}

// pass reconciles once, after some time.
func (w *world) pass(after time.Duration) error {
	w.t.Helper()
	w.now = w.now.Add(after)
	in := w.record()
	if in == nil {
		return nil
	}
	var all v1beta1.InterruptionList
	if err := w.client.List(w.t.Context(), &all); err != nil {
		w.t.Fatal(err)
	}
	for i := range all.Items {
		w.inform(&all.Items[i])
	}
	var result reconcile.Result
	result, err := w.loop.Reconcile(w.t.Context(), in)
	w.wake = result.RequeueAfter
	if err != nil || w.hooks == nil {
		return err
	}
	w.wake, err = w.callHooks(in.Name, w.wake)
	return err
}

// callHooks reconciles the lifecycle hooks of an Interruption once. It returns when the next pass
// is due: wake, or earlier. A write triggers one.
func (w *world) callHooks(name string, wake time.Duration) (time.Duration, error) {
	w.t.Helper()
	var in, after v1beta1.Interruption
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Name: name}, &in); err != nil {
		return wake, client.IgnoreNotFound(err)
	}
	result, err := w.hooks.Reconcile(w.t.Context(), in.DeepCopy())
	if w.client.Get(w.t.Context(), client.ObjectKey{Name: name}, &after) == nil && after.ResourceVersion != in.ResourceVersion {
		return time.Millisecond, err
	}
	if result.RequeueAfter > 0 && (wake == 0 || result.RequeueAfter < wake) {
		wake = result.RequeueAfter
	}
	return wake, err
}

// inform updates the barrier as the informer does: once for each version.
func (w *world) inform(in *v1beta1.Interruption) {
	was, known := w.informed[in.Name]
	if known && was.ResourceVersion == in.ResourceVersion {
		return
	}
	if w.informed == nil {
		w.informed = map[string]*v1beta1.Interruption{}
	}
	w.informed[in.Name] = in.DeepCopy()
	if known {
		w.loop.barrier.observe(was, in, w.now)
	} else {
		w.loop.barrier.observe(nil, in, w.now)
	}
}

// settle reconciles until nothing changes any more.
func (w *world) settle(after time.Duration) {
	w.t.Helper()
	for range 10 {
		before := w.record()
		if err := w.pass(after); err != nil {
			w.t.Fatalf("reconciling: %v", err)
		}
		after = 0
		if now := w.record(); now == nil || now.ResourceVersion == before.ResourceVersion {
			return
		}
	}
	w.t.Fatalf("the record does not settle:\n%+v", w.record().Status)
}

// record is the Interruption of the test; nil once it is deleted.
func (w *world) record() *v1beta1.Interruption {
	w.t.Helper()
	in := &v1beta1.Interruption{}
	err := w.client.Get(w.t.Context(), types.NamespacedName{Name: instance}, in)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return in
}

func (w *world) node() *corev1.Node {
	w.t.Helper()
	node, err := w.NodeByInstance(w.t.Context(), instance)
	if err != nil {
		w.t.Fatal(err)
	}
	return node
}

// stopped simulates the kubelet: the pods have stopped and are gone.
func (w *world) stopped(names ...string) {
	w.t.Helper()
	for _, name := range names {
		pod := &corev1.Pod{}
		key := types.NamespacedName{Namespace: "default", Name: name}
		if err := w.client.Get(w.t.Context(), key, pod); err != nil {
			w.t.Fatal(err)
		}
		w.remove(pod)
	}
}

// finish simulates the kubelet: the pod's containers have exited.
func (w *world) finish(name string, phase corev1.PodPhase) {
	w.t.Helper()
	pod := &corev1.Pod{}
	if err := w.client.Get(w.t.Context(), types.NamespacedName{Namespace: "default", Name: name}, pod); err != nil {
		w.t.Fatal(err)
	}
	pod.Status.Phase = phase
	if err := w.client.Status().Update(w.t.Context(), pod); err != nil {
		w.t.Fatal(err)
	}
}

// remove deletes an object without the interceptor.
func (w *world) remove(o client.Object) {
	w.t.Helper()
	inner, ok := w.client.(client.WithWatch)
	if !ok {
		w.t.Fatal("the fake client does not watch")
	}
	o.SetFinalizers(nil)
	if pod, ok := o.(*corev1.Pod); ok {
		pod.Spec.NodeName = "elsewhere"
		if err := inner.Update(w.t.Context(), pod); err != nil {
			w.t.Fatal(err)
		}
		return
	}
	if err := inner.Delete(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

// setBudget simulates the disruption controller.
func (w *world) setBudget(allowed int32) {
	w.t.Helper()
	web := &policyv1.PodDisruptionBudget{}
	if err := w.client.Get(w.t.Context(), types.NamespacedName{Namespace: "default", Name: "web"}, web); err != nil {
		w.t.Fatal(err)
	}
	web.Status.DisruptionsAllowed = allowed
	if err := w.client.Status().Update(w.t.Context(), web); err != nil {
		w.t.Fatal(err)
	}
}

// addNotices adds notices to the record, as intake does.
func (w *world) addNotices(notices ...v1beta1.Notice) {
	w.t.Helper()
	in := w.record()
	for _, n := range notices {
		in.Spec.Notices, _ = notice.Join(in.Spec.Notices, n)
	}
	if err := w.client.Update(w.t.Context(), in); err != nil {
		w.t.Fatal(err)
	}
}

// Objects of the tests.

func recordOf(notices ...v1beta1.Notice) *v1beta1.Interruption {
	return &v1beta1.Interruption{
		ObjectMeta: metav1.ObjectMeta{Name: instance},
		Spec:       v1beta1.InterruptionSpec{InstanceID: instance, NodeName: "a", Notices: notices},
	}
}

func spot() v1beta1.Notice {
	return v1beta1.Notice{
		ID: "spot-1", Kind: notice.KindSpotInterruption, Source: "sqs", Time: metav1.NewTime(start),
		ReceivedTime: metav1.NewMicroTime(start), InstanceAction: "terminate",
		Deadline: notice.At(start.Add(2*time.Minute), v1beta1.DeadlineHard),
	}
}

func rebalance() v1beta1.Notice {
	return v1beta1.Notice{
		ID: "rebalance-1", Kind: notice.KindRebalanceRecommendation, Source: "sqs",
		Time: metav1.NewTime(start), ReceivedTime: metav1.NewMicroTime(start),
	}
}

func stateChange(state string, at time.Time) v1beta1.Notice {
	return v1beta1.Notice{
		ID: "state-" + state, Kind: notice.KindInstanceStateChange, Source: "sqs", InstanceState: state,
		Time: metav1.NewTime(at), ReceivedTime: metav1.NewMicroTime(at),
		Deadline: notice.At(at, v1beta1.DeadlineHard),
	}
}

func node(name, id string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}},
		Spec:       corev1.NodeSpec{ProviderID: "aws:///us-east-1a/" + id},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

func pod(name string) *corev1.Pod {
	grace, controller := int64(30), true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: "rs", Controller: &controller}},
		},
		Spec: corev1.PodSpec{NodeName: "a", TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{{Name: "c"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue},
		}},
	}
}

func budget(allowed int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Generation: 1},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		Status: policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: 1, DisruptionsAllowed: allowed, CurrentHealthy: 2, DesiredHealthy: 2 - allowed, ExpectedPods: 2,
		},
	}
}
