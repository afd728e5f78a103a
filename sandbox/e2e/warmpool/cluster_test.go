package warmpool

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/groupcache"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/asg/ratelimit"
	cloudaws "github.com/lifeboat-dev/lifeboat/internal/cloud/aws"
	"github.com/lifeboat-dev/lifeboat/internal/controller/instancelaunch"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

const (
	// registersIn and joinsIn are how long a kubelet takes, from its start, to
	// register its node and to make it Ready.
	registersIn, joinsIn = 4 * time.Second, 12 * time.Second
	// beatsEvery is how often a kubelet reports where nothing has changed
	// (Kubernetes documentation, "Node status").
	beatsEvery = 5 * time.Minute
	// missedAfter is when a node whose kubelet is silent is not Ready any more.
	missedAfter = 40 * time.Second
)

// newKube is an API server that holds objects and does nothing automatically.
func newKube() client.Client {
	scheme := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(scheme) // of constants
	_ = v1alpha1.AddToScheme(scheme)
	return fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&corev1.Node{}, &v1alpha1.NodeGroup{}, &v1alpha1.Interruption{}).Build()
}

// control runs what of lifeboatd's controller sees instances into service, until
// ctx is done.
func (w *world) control(ctx context.Context) {
	w.t.Helper()
	config, limit := w.config(&network{w: w, handler: w.cloud.Handler()}), ratelimit.New(0, 0)
	groups, err := groupcache.New(groupcache.Options{
		API: groupcache.NewAPI(config), Reader: w.kube, Quota: limit,
		Names: func(ctx context.Context) ([]string, error) {
			var list v1alpha1.NodeGroupList
			err := w.kube.List(ctx, &list)
			names := make([]string, 0, len(list.Items))
			for i := range list.Items {
				names = append(names, nodegroup.Name(&list.Items[i]))
			}
			return names, err
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	sweep, err := instancelaunch.New(instancelaunch.Options{
		Client: w.kube, Pods: w.kube, Groups: groups, Lifecycle: cloudaws.NewLifecycle(config, limit), Events: &events.FakeRecorder{},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	groups.Subscribe(sweep.News)
	w.running.Go(func() { _ = groups.Start(ctx) }) // they return nil, when ctx is done
	w.running.Go(func() { _ = sweep.Start(ctx) })
}

func (m *machine) nodeName() string { return "node-of-" + m.id }

// live is the life of a kubelet, until ctx is done.
func (m *machine) live(ctx context.Context) {
	if !sleep.For(ctx, registersIn) {
		return
	}
	if m.await(ctx) {
		m.register(ctx)
	}
	if !sleep.For(ctx, joinsIn-registersIn) {
		return
	}
	for m.await(ctx) {
		m.report(ctx, corev1.ConditionTrue)
		sleep.For(ctx, beatsEvery)
	}
}

// await waits for the network; false: ctx was done before.
func (m *machine) await(ctx context.Context) bool {
	for m.cloud.isDown() && sleep.For(ctx, time.Second) {
	}
	return ctx.Err() == nil
}

// silence has the node lose its readiness some time after the kubelet was last
// heard, and go with its instance, as the cluster's own controllers do.
func (m *machine) silence(ctx context.Context, forGood bool) {
	if !sleep.For(ctx, missedAfter) || m.hasKubelet() {
		return
	}
	if forGood {
		_ = m.w.kube.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.nodeName()}}) // it may never have been
		return
	}
	m.report(ctx, corev1.ConditionUnknown)
}

// register makes the node, or takes over what is left of it.
func (m *machine) register(ctx context.Context) {
	in, _ := m.w.cloud.States.EC2.Instance(m.id)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: m.nodeName(), CreationTimestamp: metav1.Now()},
		Spec: corev1.NodeSpec{
			ProviderID: "aws:///" + in.Zone + "/" + m.id,
			Taints:     []corev1.Taint{{Key: v1alpha1.TaintNotInService, Effect: corev1.TaintEffectNoSchedule}},
		},
	}
	_ = m.w.kube.Create(ctx, node) // it may be there
	m.report(ctx, corev1.ConditionFalse)
}

// report says how the node is.
func (m *machine) report(ctx context.Context, ready corev1.ConditionStatus) {
	var node corev1.Node
	if m.w.kube.Get(ctx, client.ObjectKey{Name: m.nodeName()}, &node) != nil {
		return // somebody has deleted it
	}
	now := metav1.Now()
	c := corev1.NodeCondition{Type: corev1.NodeReady, Status: ready, LastHeartbeatTime: now, LastTransitionTime: now}
	if len(node.Status.Conditions) == 1 {
		if node.Status.Conditions[0].Status == ready {
			c.LastTransitionTime = node.Status.Conditions[0].LastTransitionTime
		}
		if ready == corev1.ConditionUnknown { // it is not the kubelet who says so
			c.LastHeartbeatTime = node.Status.Conditions[0].LastHeartbeatTime
		}
	}
	node.Status.Conditions = []corev1.NodeCondition{c}
	_ = m.w.kube.Status().Update(ctx, &node) // it is said again
}
