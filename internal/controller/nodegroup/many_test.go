package nodegroup

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
	"github.com/lifeboat-dev/lifeboat/internal/asg/groupcache"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/asg/ratelimit"
)

// TestManyGroupsAreCreatedWithinTheLimit creates sixty declared groups with hooks and
// warm pools. AWS has one token bucket for all of these calls, with less than the
// controller's own rate. The controller is killed in the middle.
func TestManyGroupsAreCreatedWithinTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 60
		server, err := emulator.New(emulator.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := server.States.EC2.CreateTemplate("workers", "", "", ec2.TemplateData{ImageID: "ami-0abc", InstanceType: "m5.large"}, nil); err != nil {
			t.Fatal(err)
		}
		var objects []client.Object
		for i := range many {
			objects = append(objects, declared(func(g *v1beta1.NodeGroup) {
				var none int32
				g.Name, g.Spec.MinSize, g.Spec.WarmPool = fmt.Sprintf("workers-%03d", i), &none, &v1beta1.WarmPool{State: "Stopped"}
				g.Spec.LaunchTemplate.Version, g.Spec.Subnets = "$Latest", []string{server.States.EC2.Subnets()[0].ID}
			}))
		}
		var created, all, refused atomic.Int32
		third := make(chan struct{})
		server.Gate.Watch(func(r *wire.Request, failure *wire.Error) {
			all.Add(1)
			switch {
			case failure != nil:
				refused.Add(1)
			case r.Action == "CreateAutoScalingGroup":
				if created.Add(1) == many/3 {
					close(third)
				}
			}
		})
		server.Gate.Limit("autoscaling", wire.AnyAction, 4, 20)

		w := newWorld(t, objects...)
		w.events = events.NewFakeRecorder(20 * many)
		begun := time.Now()
		ctx, kill := context.WithCancel(t.Context())
		defer kill()
		var first sync.WaitGroup
		first.Go(func() { w.reconcileAll(ctx, server, objects) })
		<-third
		kill()
		first.Wait()
		if n := created.Load(); n >= many {
			t.Fatalf("%d groups were created before the kill", n)
		}
		w.reconcileAll(t.Context(), server, objects) // a new process: without memory, and with a full rate

		share := fmt.Sprintf("%d of %d calls were refused", refused.Load(), all.Load())
		t.Logf("after %s, %s", time.Since(begun), share)
		if created.Load() != many || refused.Load() == 0 || refused.Load() > all.Load()/4 {
			t.Errorf("%d groups were created; %s", created.Load(), share)
		}
		server.Gate.LiftAll()
		api := nodegroup.NewAPI(emulatortest.Config(server))
		for _, o := range objects {
			group, err := api.Observe(t.Context(), o.GetName(), time.Now())
			if err != nil || len(group.Hooks) != 2 || group.Pool == nil {
				t.Errorf("%s: %+v, %v", o.GetName(), group, err)
			}
			var g v1beta1.NodeGroup
			if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(o), &g); err != nil || !meta.IsStatusConditionTrue(g.Status.Conditions, v1beta1.ConditionReady) {
				t.Errorf("%s is not Ready: %+v, %v", o.GetName(), g.Status.Conditions, err)
			}
		}
	})
}

// unwatched is a watch that knows no group yet.
type unwatched struct{}

func (unwatched) Group(string) (groupcache.Group, bool) { return groupcache.Group{}, false }
func (unwatched) Member(string) (groupcache.Member, bool, time.Time) {
	return groupcache.Member{}, false, time.Time{}
}
func (unwatched) RequestRefreshHooks(string) {}

// reconcileAll runs a new controller with its limit of concurrent reconciles, until every
// group needs no attention soon or ctx ends.
func (w *world) reconcileAll(ctx context.Context, server *emulator.Server, objects []client.Object) {
	w.start()
	w.loop.Clock, w.loop.Watch = time.Now, unwatched{}
	w.loop.AWS = nodegroup.NewAPI(emulatortest.Config(server)).Share(ratelimit.New(0, 0))
	slots := make(chan struct{}, concurrency)
	var running sync.WaitGroup
	for _, o := range objects {
		running.Go(func() {
			for ctx.Err() == nil {
				slots <- struct{}{}
				again, err := w.loop.reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
				<-slots
				if err == nil && again.RequeueAfter >= patience {
					return
				}
				select {
				case <-ctx.Done():
				case <-time.After(max(again.RequeueAfter, time.Millisecond)):
				}
			}
		})
	}
	running.Wait()
}
