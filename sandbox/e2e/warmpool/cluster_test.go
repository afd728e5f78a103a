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

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/groupcache"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/asg/ratelimit"
	cloudaws "github.com/lifeboat-dev/lifeboat/internal/cloud/aws"
	"github.com/lifeboat-dev/lifeboat/internal/controller/instancelaunch"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

const (
	// registersIn and joinsIn are the times from a kubelet's start to its node's registration and
	// to its Ready condition.
	registersIn, joinsIn = 4 * time.Second, 12 * time.Second
	// beatsEvery is the interval of a kubelet's status reports when nothing changes (Kubernetes
	// documentation, "Node status").
	beatsEvery = 5 * time.Minute
	// missedAfter is the time after a kubelet's last report at which its node becomes Unknown.
	missedAfter = 40 * time.Second
)

// newKube is a fake API server without controllers.
func newKube() client.Client {
	scheme := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(scheme) // fails only for invalid constants
	_ = v1beta1.AddToScheme(scheme)
	return fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&corev1.Node{}, &v1beta1.NodeGroup{}, &v1beta1.Interruption{}).Build()
}

// control runs lifeboatd's loops that bring instances into service, until ctx is done.
func (w *world) control(ctx context.Context) {
	w.t.Helper()
	config, limit := w.config(&network{w: w, handler: w.cloud.Handler()}), ratelimit.New(0, 0)
	groups, err := groupcache.New(groupcache.Options{
		API: groupcache.NewAPI(config), Reader: w.kube, Quota: limit,
		Names: func(ctx context.Context) ([]string, error) {
			var list v1beta1.NodeGroupList
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
	w.running.Go(func() { _ = groups.Start(ctx) }) // Start returns nil when ctx is done
	w.running.Go(func() { _ = sweep.Start(ctx) })
}

func (m *machine) nodeName() string { return "node-of-" + m.id }

// live simulates a kubelet until ctx is done.
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

// await waits for the network; false if ctx ended first.
func (m *machine) await(ctx context.Context) bool {
	for m.cloud.isDown() && sleep.For(ctx, time.Second) {
	}
	return ctx.Err() == nil
}

// silence simulates the cluster's controllers after a kubelet stops: the node becomes NotReady
// after a while, and is deleted with its instance.
func (m *machine) silence(ctx context.Context, forGood bool) {
	if !sleep.For(ctx, missedAfter) || m.hasKubelet() {
		return
	}
	if forGood {
		_ = m.w.kube.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.nodeName()}}) // the node may not exist
		return
	}
	m.report(ctx, corev1.ConditionUnknown)
}

// register creates the node, or takes over the existing one.
func (m *machine) register(ctx context.Context) {
	in, _ := m.w.cloud.States.EC2.Instance(m.id)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: m.nodeName(), CreationTimestamp: metav1.Now()},
		Spec: corev1.NodeSpec{
			ProviderID: "aws:///" + in.Zone + "/" + m.id,
			Taints:     []corev1.Taint{{Key: v1beta1.TaintNotInService, Effect: corev1.TaintEffectNoSchedule}},
		},
	}
	_ = m.w.kube.Create(ctx, node) // the node may exist
	m.report(ctx, corev1.ConditionFalse)
}

// report writes the node's Ready condition.
func (m *machine) report(ctx context.Context, ready corev1.ConditionStatus) {
	var node corev1.Node
	if m.w.kube.Get(ctx, client.ObjectKey{Name: m.nodeName()}, &node) != nil {
		return // the node was deleted
	}
	now := metav1.Now()
	c := corev1.NodeCondition{Type: corev1.NodeReady, Status: ready, LastHeartbeatTime: now, LastTransitionTime: now}
	if len(node.Status.Conditions) == 1 {
		if node.Status.Conditions[0].Status == ready {
			c.LastTransitionTime = node.Status.Conditions[0].LastTransitionTime
		}
		if ready == corev1.ConditionUnknown { // set by the node lifecycle controller, not by the kubelet
			c.LastHeartbeatTime = node.Status.Conditions[0].LastHeartbeatTime
		}
	}
	node.Status.Conditions = []corev1.NodeCondition{c}
	_ = m.w.kube.Status().Update(ctx, &node) // the next report repeats it
}
