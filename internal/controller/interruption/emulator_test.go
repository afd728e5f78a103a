package interruption

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator"
	emu "github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/internal/asg/groupcache"
	"github.com/lifeboat-dev/lifeboat/internal/asg/ratelimit"
	cloudaws "github.com/lifeboat-dev/lifeboat/internal/cloud/aws"
	"github.com/lifeboat-dev/lifeboat/internal/controller/lifecyclehook"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// region is an emulated region with a group named workers, whose instances are nodes of a world.
// It uses the time of the synctest bubble.
type region struct {
	*world
	server  *emulator.Server
	watcher *groupcache.Watcher
	due     map[string]time.Time // by record: when its next pass is due
	freed   map[string]bool      // pods whose successor is Ready

	mu      sync.Mutex
	changed bool
}

// inRegion runs play with a group whose instances are nodes with the given number of pods. away
// is how many pods of each budget may be away at a time.
func inRegion(t *testing.T, group emu.Group, pods int, away int32, play func(*region)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, err := emulator.New(emulator.Options{Account: "210987654321", Region: "eu-west-1"})
		if err != nil {
			t.Fatal(err)
		}
		r := &region{world: newWorld(t, budget(away)), server: server, due: map[string]time.Time{}, freed: map[string]bool{}}
		ctx, stop := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { server.States.EC2.Run(ctx) })
		running.Go(func() { server.States.AutoScaling.Run(ctx) })
		synctest.Wait()
		if _, err = server.States.EC2.CreateTemplate("workers", "", "", ec2.TemplateData{
			ImageID: "ami-0abc", InstanceType: "m5.large", UserData: base64.StdEncoding.EncodeToString([]byte("#!/bin/sh")),
		}, nil); err != nil {
			t.Fatal(err)
		}
		group.Name, group.Template, group.Max = "workers", ec2.TemplateRef{Name: "workers", Version: "$Latest"}, 100
		if err := server.States.AutoScaling.CreateGroup(group); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		r.join(pods)
		r.begin()
		running.Go(func() { _ = r.watcher.Start(ctx) })
		play(r)
		stop()
		running.Wait()
	})
}

// join creates the node of each instance.
func (r *region) join(pods int) {
	r.t.Helper()
	for i, m := range r.server.States.AutoScaling.Members() {
		n := node(fmt.Sprintf("n%02d", i), m.InstanceID)
		n.UID, n.CreationTimestamp = types.UID("uid-"+n.Name), metav1.Now()
		if in, ok := r.server.States.EC2.Instance(m.InstanceID); ok {
			n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: in.PrivateIP}}
		}
		if err := r.client.Create(r.t.Context(), n); err != nil {
			r.t.Fatal(err)
		}
		for j := range pods {
			p := pod(fmt.Sprintf("web-%02d-%d", i, j))
			p.Spec.NodeName = n.Name
			if err := r.client.Create(r.t.Context(), p); err != nil {
				r.t.Fatal(err)
			}
		}
	}
}

// begin starts the controller as a manager would, but without the queue.
func (r *region) begin() {
	r.t.Helper()
	config := emulatortest.Config(r.server)
	q := ratelimit.New(0, 0)
	var err error
	r.watcher, err = groupcache.New(groupcache.Options{
		API: groupcache.NewAPI(config), Reader: r.client, Quota: q,
		Names: func(context.Context) ([]string, error) { return []string{"workers"}, nil },
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.watcher.Subscribe(func(string, []string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.changed = true
	})
	o := r.loop.Options
	calls := cloudaws.NewLifecycle(config, q)
	o.Clock, o.Live, o.Groups, o.Detacher, o.Hooks = time.Now, r.client, r.watcher, calls, []string{"lifeboat-*"}
	o.Cloud = cloudaws.New(config)
	r.loop = New(o)
	r.hooks = lifecyclehook.New(lifecyclehook.Options{
		Client: r.client, Nodes: r, Members: r.loop.members(), Hooks: calls, Events: o.Events, Clock: o.Clock,
	})
}

// tick advances everything by two seconds.
func (r *region) tick() {
	r.t.Helper()
	time.Sleep(2 * time.Second)
	r.now = time.Now()
	r.mu.Lock()
	changed := r.changed
	r.changed = false
	r.mu.Unlock()
	if changed {
		r.sweep()
	}
	changed = r.kubelets() || changed
	var all v1beta1.InterruptionList
	if err := r.client.List(r.t.Context(), &all); err != nil {
		r.t.Fatal(err)
	}
	for i := range all.Items {
		in := &all.Items[i]
		r.inform(in)
		if notice.Finished(in) || !changed && r.now.Before(r.due[in.Name]) {
			continue
		}
		result, err := r.loop.Reconcile(r.t.Context(), in)
		if err != nil {
			r.t.Fatalf("%s: %v", in.Name, err)
		}
		wake, err := r.callHooks(in.Name, result.RequeueAfter)
		if err != nil {
			r.t.Fatalf("the hooks of %s: %v", in.Name, err)
		}
		r.due[in.Name] = r.now.Add(wake)
		if wake == 0 {
			r.due[in.Name] = r.now.Add(time.Hour)
		}
	}
}

// sweep records the instances that the group terminates, as intake does, and deletes the nodes
// of terminated instances.
func (r *region) sweep() {
	g, _ := r.watcher.Group("workers")
	there := map[string]bool{}
	for _, m := range g.Members {
		there[m.InstanceID] = true
		if !strings.HasPrefix(m.State, "Terminating") {
			continue
		}
		in := recordOf(terminating(notice.SourceAutoScaling))
		in.Name, in.Spec.InstanceID = m.InstanceID, m.InstanceID
		in.Spec.Notices[0].Subject, in.Spec.Notices[0].Time = "workers/"+m.InstanceID, metav1.Now()
		in.Spec.Notices[0].ReceivedTime = metav1.NowMicro()
		_ = r.client.Create(r.t.Context(), in) // it may be there
	}
	var nodes corev1.NodeList
	if err := r.client.List(r.t.Context(), &nodes); err != nil {
		r.t.Fatal(err)
	}
	for i := range nodes.Items {
		if id := instanceOf(&nodes.Items[i]); !there[id] {
			r.remove(&nodes.Items[i])
		}
	}
}

// kubelets stops pods 20 s after the request; their successors are Ready 10 s later.
func (r *region) kubelets() bool {
	changed := false
	for name, at := range r.asked {
		switch age := r.now.Sub(at); {
		case age >= 30*time.Second && !r.freed[name]:
			r.freed[name], changed = true, true
			r.setBudget(r.allowed() + 1)
		case age >= 20*time.Second:
			var p corev1.Pod
			if r.client.Get(r.t.Context(), types.NamespacedName{Namespace: "default", Name: name}, &p) == nil && p.Spec.NodeName != "elsewhere" {
				r.remove(&p)
				changed = true
			}
		}
	}
	return changed
}

// Thirty instances (18 in short mode) terminate at once, and a budget makes the drain last three times as long as
// the hook's timeout. All hooks must be completed in time, every pod must have its grace, and
// the number of calls is bounded.
func TestRace21ThirtyAtOnce(t *testing.T) {
	t.Parallel()
	const timeout = 2 * time.Minute
	instances := 30
	if testing.Short() {
		instances = 18
	}
	group := emu.Group{Desired: instances, DeregistrationDelay: 20 * time.Second, Hooks: []emu.Hook{
		{Name: "lifeboat-terminate", Transition: emu.Leaving, Heartbeat: timeout, DefaultResult: emu.Continue},
	}}
	inRegion(t, group, 3, 6, func(r *region) {
		if err := r.server.States.AutoScaling.SetDesired("workers", 0, false); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for range 1200 {
			r.tick()
			if r.over() {
				break
			}
		}
		took := time.Since(began)
		answered := 0
		for _, f := range r.server.States.AutoScaling.Firings() {
			if f.By != emu.ByAnswer || f.Result != emu.Continue {
				t.Errorf("%s: held for %s, and ended by %q", f.InstanceID, f.Ended.Sub(f.Held), f.By)
			}
			answered++
		}
		if answered != instances || len(r.asked) != 3*instances || len(r.deletions) > 0 {
			t.Errorf("%d hooks answered, %d pods asked to stop, deleted %v", answered, len(r.asked), r.deletions)
		}
		if took < 2*timeout {
			t.Errorf("it took only %s", took)
		}
		calls := r.server.Gate.AllCalls("autoscaling")
		t.Logf("%s: %v", took, calls)
		if most := instances * (3*int(took/timeout) + 3); calls["RecordLifecycleActionHeartbeat"] > most {
			t.Errorf("%d heartbeats, more than %d", calls["RecordLifecycleActionHeartbeat"], most)
		}
		if calls["CompleteLifecycleAction"] != instances {
			t.Errorf("%d answers", calls["CompleteLifecycleAction"])
		}
		if most := int(took/(3*time.Second)) + 10; calls["DescribeAutoScalingGroups"] > most || calls["DescribeAutoScalingInstances"] > 5 || calls["DescribeLifecycleHooks"] > 5 {
			t.Errorf("more than %d reads: %v", most, calls)
		}
	})
}

func (r *region) over() bool {
	var all v1beta1.InterruptionList
	if err := r.client.List(r.t.Context(), &all); err != nil {
		r.t.Fatal(err)
	}
	for i := range all.Items {
		if !notice.Finished(&all.Items[i]) {
			return false
		}
	}
	return len(all.Items) > 0
}
