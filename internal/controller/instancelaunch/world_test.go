package instancelaunch_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator"
	emu "github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/internal/asg/groupcache"
	"github.com/lifeboat-dev/lifeboat/internal/asg/ratelimit"
	cloudaws "github.com/lifeboat-dev/lifeboat/internal/cloud/aws"
	"github.com/lifeboat-dev/lifeboat/internal/controller/instancelaunch"
)

// world is an emulated region with machines, a cluster that they join, and the controller. It
// uses the time of the synctest bubble.
type world struct {
	*testing.T
	server *emulator.Server
	kube   client.WithWatch
	quota  *ratelimit.Limiter

	groups *groupcache.Watcher
	sweep  *instancelaunch.Sweep
	ends   func() // the controller

	mu       sync.Mutex
	machines map[string]*machine
	events   []string

	// Settings of the machines. boot is the time from power-on to the kubelet. agent starts
	// kubelets only for service, and completes the hook of warm instances. broken selects the
	// nodes that never become Ready.
	boot   time.Duration
	agent  bool
	broken func(id string) bool
}

// machine is the machine of an instance.
type machine struct {
	on       time.Time // zero: it is off
	kubelet  time.Time // when it started; zero: it does not run
	beat     time.Time
	reported bool // the agent has reported that it is done
}

// inWorld runs a test in a world with a group named workers.
func inWorld(t *testing.T, g emu.Group, o func(*world), test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		scheme := runtime.NewScheme()
		if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
			t.Fatal(err)
		}
		server, err := emulator.New(emulator.Options{Account: "210987654321", Region: "eu-west-1"})
		if err != nil {
			t.Fatal(err)
		}
		w := &world{
			T: t, server: server, quota: ratelimit.New(0, 0), machines: map[string]*machine{}, boot: time.Minute, broken: func(string) bool { return false },
			kube: fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1beta1.NodeGroup{}).
				WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string {
					pod, _ := o.(*corev1.Pod)
					return []string{pod.Spec.NodeName}
				}).Build(),
		}
		if o != nil {
			o(w)
		}
		ctx, stop := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { server.Work(ctx) })
		running.Go(func() { w.simulate(ctx) })
		synctest.Wait() // the region processes its instances from now on
		_, err = server.States.EC2.CreateTemplate("workers", "", "", ec2.TemplateData{
			ImageID: "ami-0abc", InstanceType: "m5.large", UserData: base64.StdEncoding.EncodeToString([]byte("#!/bin/sh")),
		}, nil)
		w.must(err)
		g.Name, g.Template, g.Max = "workers", ec2.TemplateRef{Name: "workers", Version: "$Latest"}, max(g.Max, 100)
		w.must(server.States.AutoScaling.CreateGroup(g))
		w.must(w.kube.Create(ctx, &v1beta1.NodeGroup{ObjectMeta: metav1.ObjectMeta{Name: "workers"}}))
		w.start()
		test(w)
		w.ends()
		stop()
		running.Wait()
	})
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// start starts a controller without memory.
func (w *world) start() {
	config := emulatortest.Config(w.server)
	var err error
	w.groups, err = groupcache.New(groupcache.Options{
		API: groupcache.NewAPI(config), Reader: w.kube, Quota: w.quota,
		Names: func(context.Context) ([]string, error) { return []string{"workers"}, nil },
	})
	w.must(err)
	w.sweep, err = instancelaunch.New(instancelaunch.Options{
		Client: w.kube, Pods: w.kube, Groups: w.groups, Lifecycle: cloudaws.NewLifecycle(config, w.quota), Events: recorder{w},
	})
	w.must(err)
	w.groups.Subscribe(w.sweep.News)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.must(w.groups.Start(ctx)) })
	running.Go(func() { w.must(w.sweep.Start(ctx)) })
	w.ends = func() { stop(); running.Wait() }
}

// recorder records Events.
type recorder struct{ *world }

// Eventf implements events.EventRecorder.
func (r recorder) Eventf(about, _ runtime.Object, typ, reason, _, note string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, fmt.Sprintf("%T %s %s: ", about, typ, reason)+fmt.Sprintf(note, args...))
}

// countEvents counts the Events that contain all parts.
func (w *world) countEvents(parts ...string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		if !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(e, p) }) {
			n++
		}
	}
	return n
}

// simulate simulates machines and kubelets, second by second.
func (w *world) simulate(ctx context.Context) {
	for {
		timer := time.NewTimer(time.Second)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		for _, m := range w.members() {
			w.machine(m)
		}
		w.deleteNodesOfGone()
	}
}

func (w *world) members() []emu.Member { return w.server.States.AutoScaling.Members() }

// machine simulates one machine.
func (w *world) machine(m emu.Member) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	box := w.machines[m.InstanceID]
	if box == nil {
		box = &machine{}
		w.machines[m.InstanceID] = box
	}
	in, _ := w.server.States.EC2.Instance(m.InstanceID)
	if in.State != ec2.Running {
		if !box.kubelet.IsZero() {
			w.node(m.InstanceID, func(n *corev1.Node) { ready(n, corev1.ConditionUnknown, box.beat) })
		}
		*box = machine{}
		return
	}
	if box.on.IsZero() {
		box.on = now
	}
	if now.Sub(box.on) < w.boot {
		return
	}
	warm := strings.HasPrefix(string(m.Target), "Warmed:")
	if w.agent && warm {
		if m.State == "Warmed:Pending:Wait" && !box.reported && box.kubelet.IsZero() {
			box.reported = true
			for _, a := range w.server.States.AutoScaling.Actions(m.InstanceID) {
				_ = w.server.States.AutoScaling.Complete(a.Ref, emu.Continue) // the test checks whether it is in time
			}
		}
		return
	}
	w.kubelet(m.InstanceID, box, now)
}

// kubelet simulates a kubelet: it registers once, and reports every five minutes.
func (w *world) kubelet(id string, box *machine, now time.Time) {
	status := corev1.ConditionTrue
	if w.broken(id) {
		status = corev1.ConditionFalse
	}
	switch {
	case box.kubelet.IsZero():
		box.kubelet, box.beat = now, now
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "node-" + id, UID: types.UID(fmt.Sprint(id, now.UnixNano())), CreationTimestamp: metav1.NewTime(now)},
			Spec: corev1.NodeSpec{
				ProviderID: "aws:///eu-west-1a/" + id,
				Taints:     []corev1.Taint{{Key: v1beta1.TaintNotInService, Effect: corev1.TaintEffectNoSchedule}},
			},
		}
		ready(node, status, now)
		if err := w.kube.Create(context.Background(), node); err != nil {
			w.node(id, func(n *corev1.Node) { ready(n, status, now) })
		}
		w.sweep.Touch()
	case now.Sub(box.beat) >= 5*time.Minute || statusOf(w.nodeOf(id)) == corev1.ConditionFalse && status == corev1.ConditionTrue:
		box.beat = now
		w.node(id, func(n *corev1.Node) { ready(n, status, now) })
	}
}

// node changes a node if it exists; a kubelet does not register again on its own.
func (w *world) node(id string, change func(*corev1.Node)) {
	n := w.nodeOf(id)
	if n == nil {
		return
	}
	change(n)
	if err := w.kube.Update(context.Background(), n); err == nil {
		w.sweep.Touch()
	}
}

func (w *world) nodeOf(id string) *corev1.Node {
	var n corev1.Node
	if err := w.kube.Get(context.Background(), client.ObjectKey{Name: "node-" + id}, &n); err != nil {
		return nil
	}
	return &n
}

// deleteNodesOfGone deletes the nodes of terminated instances, as the cloud controller manager does.
func (w *world) deleteNodesOfGone() {
	var nodes corev1.NodeList
	w.must(w.kube.List(context.Background(), &nodes))
	for i := range nodes.Items {
		id := strings.TrimPrefix(nodes.Items[i].Name, "node-")
		if in, ok := w.server.States.EC2.Instance(id); !ok || in.State == ec2.Terminated {
			w.must(client.IgnoreNotFound(w.kube.Delete(context.Background(), &nodes.Items[i])))
			w.sweep.Touch()
		}
	}
}

func ready(n *corev1.Node, status corev1.ConditionStatus, at time.Time) {
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastHeartbeatTime: metav1.NewTime(at)}}
}

func statusOf(n *corev1.Node) corev1.ConditionStatus {
	if n == nil || len(n.Status.Conditions) == 0 {
		return ""
	}
	return n.Status.Conditions[0].Status
}

// states counts the members by state: "2 InService, 1 Pending:Wait".
func (w *world) states() string {
	counts := map[string]int{}
	for _, m := range w.members() {
		counts[string(m.State)]++
	}
	var out []string
	for _, state := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%d %s", counts[state], state))
	}
	return strings.Join(out, ", ")
}

// until waits for a condition, and returns how long that took.
func (w *world) until(most time.Duration, what string, so func() bool) time.Duration {
	w.Helper()
	began := time.Now()
	for !so() {
		if time.Since(began) > most {
			w.Fatalf("not within %s: %s; %s\n%s", most, what, w.states(), w.history())
		}
		time.Sleep(time.Second) // in the bubble's time
		synctest.Wait()
	}
	return time.Since(began)
}

func (w *world) is(states string) func() bool {
	return func() bool { return w.states() == states }
}

// history returns what happened.
func (w *world) history() string {
	var out []string
	for _, c := range w.server.States.AutoScaling.Trace() {
		out = append(out, fmt.Sprintf("%s %s %s → %s (%s)", c.Time.Format(time.TimeOnly), c.InstanceID, c.From, c.To, c.Cause))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(append(out, w.events...), "\n")
}

// taintedNodes counts the nodes with the startup taint.
func (w *world) taintedNodes() (n int) {
	var nodes corev1.NodeList
	w.must(w.kube.List(context.Background(), &nodes))
	for _, node := range nodes.Items {
		for _, taint := range node.Spec.Taints {
			if taint.Key == v1beta1.TaintNotInService {
				n++
			}
		}
	}
	return n
}

func (w *world) nodes() int {
	var nodes corev1.NodeList
	w.must(w.kube.List(context.Background(), &nodes))
	return len(nodes.Items)
}

// launchHook and terminateHook are Lifeboat's hooks.
func launchHook() emu.Hook {
	return emu.Hook{Name: v1beta1.LaunchHook, Transition: emu.Launching, Heartbeat: 10 * time.Minute, DefaultResult: emu.Abandon}
}

func terminateHook() emu.Hook {
	return emu.Hook{Name: v1beta1.TerminateHook, Transition: emu.Leaving, Heartbeat: 5 * time.Minute, DefaultResult: emu.Continue}
}
