package interruption

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/groupcache"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/controller/lifecyclehook"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

const (
	hookTimeout = 5 * time.Minute
	token       = "87654321-4321-4321-4321-210987654321"
)

// scaledGroup is a fake Auto Scaling group for a world. The test moves its instances, except for
// what the controller causes.
type scaledGroup struct {
	*world
	group  groupcache.Group
	states map[string]string // by instance: the current lifecycle states
	// lag is the age of the state that the controller sees; seen has the states by age.
	seen  groupcache.Group
	token string
	// held is since when hooks hold the instance, and expires is when they time out.
	held, expires time.Time
	// waits are the hooks that hold the instance.
	waits map[string]bool
	// The calls that the controller made, in order.
	beats     []time.Time
	completed []string
	detached  []time.Time
	ended     []string
	hints     int
	// refuse is the error of the next calls, and refusedCalls counts those that got it.
	refuse       error
	refusedCalls int
	// mayNot is the cloud's answer to MayTerminate, and tried are the instances it was called
	// for.
	mayNot error
	tried  []string
	// behind stops updates of what the controller sees.
	behind bool
}

func withGroup(t *testing.T, objects ...client.Object) *scaledGroup {
	t.Helper()
	a := node("a", instance)
	a.CreationTimestamp, a.UID = metav1.NewTime(start.Add(-time.Hour)), "uid-a"
	g := &scaledGroup{
		world: newWorld(t, append(objects, a)...),
		group: groupcache.Group{Name: "workers", HooksKnown: true, Desired: 1, Max: 9, Hooks: []groupcache.Hook{
			{Name: "lifeboat-terminate", Terminating: true, Timeout: hookTimeout, Global: 100 * hookTimeout},
		}},
		states: map[string]string{instance: "InService"}, token: token,
	}
	g.restart()
	g.look()
	return g
}

// restart replaces the controller with a new one.
func (g *scaledGroup) restart() {
	o := g.loop.Options
	o.Groups, o.Detacher, o.Cloud, o.Live, o.Hooks = g, g, g, g.client, []string{"lifeboat-*"}
	g.loop, g.lives = New(o), nil
	g.hooks = lifecyclehook.New(lifecyclehook.Options{
		Client: g.client, Nodes: g, Members: g.loop.members(), Hooks: g, Events: o.Events, Clock: o.Clock,
	})
}

// look updates what the controller sees.
func (g *scaledGroup) look() {
	g.seen = g.group
	g.seen.At = g.now
	g.seen.Members = nil
	for _, id := range slices.Sorted(maps.Keys(g.states)) {
		state := g.states[id]
		g.seen.Members = append(g.seen.Members, groupcache.Member{InstanceID: id, Group: g.group.Name, State: state, At: lifecycle.Read(state)})
	}
}

func (g *scaledGroup) Member(id string) (groupcache.Member, bool, time.Time) {
	for _, m := range g.seen.Members {
		if m.InstanceID == id {
			return m, true, g.seen.At
		}
	}
	return groupcache.Member{}, false, time.Time{}
}

func (g *scaledGroup) Group(name string) (groupcache.Group, bool) {
	return g.seen, name == g.group.Name && !g.seen.At.IsZero()
}

func (g *scaledGroup) RequestRefresh(string) { g.hints++ }

// hold makes the group's hooks hold the instance.
func (g *scaledGroup) hold(state string) {
	g.states[instance], g.held, g.expires, g.waits = state, g.now, g.now.Add(hookTimeout), map[string]bool{}
	for _, h := range g.group.Hooks {
		if h.Terminating {
			g.waits[h.Name] = true
		}
	}
}

// answers checks a call and returns its error.
func (g *scaledGroup) answers(a cloud.Action) error {
	if err := g.dies(); err != nil {
		return err
	}
	if err := g.refuse; err != nil {
		g.refusedCalls++
		return err
	}
	if a.Group != g.group.Name || a.InstanceID != instance {
		g.t.Errorf("answered for %+v", a)
	}
	if !strings.HasSuffix(g.states[instance], ":Wait") || !g.waits[a.Hook] || a.Token != "" && a.Token != g.token || !g.now.Before(g.expires) {
		return fmt.Errorf("No active Lifecycle Action found: %w", cloud.ErrNoAction)
	}
	return nil
}

func (g *scaledGroup) Heartbeat(_ context.Context, a cloud.Action) error {
	if err := g.answers(a); err != nil {
		return err
	}
	g.beats = append(g.beats, g.now)
	g.expires = g.now.Add(hookTimeout)
	return nil
}

func (g *scaledGroup) Complete(_ context.Context, a cloud.Action, r cloud.Result) error {
	if err := g.answers(a); err != nil {
		return err
	}
	if r != cloud.Continue {
		g.t.Errorf("%s is answered with %s", a.Hook, r)
	}
	g.completed = append(g.completed, a.Hook)
	delete(g.waits, a.Hook)
	g.proceed()
	return nil
}

// proceed moves the instance on once no hook holds it.
func (g *scaledGroup) proceed() {
	if len(g.waits) == 0 {
		g.states[instance] = strings.Replace(g.states[instance], ":Wait", ":Proceed", 1)
	}
}

func (g *scaledGroup) Detach(_ context.Context, group, id string) error {
	if err := g.dies(); err != nil {
		return err
	}
	if err := g.refuse; err != nil {
		g.refusedCalls++
		return err
	}
	switch state, in := g.states[id]; {
	case group != g.group.Name || id != instance:
		g.t.Errorf("%s is taken out of %s", id, group)
	case !in:
		return nil
	case state != "InService":
		return errors.New("it is not in service")
	}
	in := g.record()
	if s := record.Drain(&in.Status).Replacement; s == nil || s.Group != group || s.Phase != v1beta1.ReplacementOrdered {
		g.t.Errorf("it is taken out before that is written down: %+v", s)
	}
	delete(g.states, id)
	g.detached = append(g.detached, g.now)
	return nil
}

func (g *scaledGroup) Terminate(_ context.Context, id string) error {
	if err := g.dies(); err != nil {
		return err
	}
	if err := g.refuse; err != nil {
		g.refusedCalls++
		return err
	}
	g.ended = append(g.ended, id)
	return nil
}

func (g *scaledGroup) Describe(_ context.Context, id string) (*cloud.Instance, error) {
	return g.describe(id)
}

func (g *scaledGroup) MayTerminate(_ context.Context, id string) error {
	g.tried = append(g.tried, id)
	return g.mayNot
}

// launch adds an instance to the group.
func (g *scaledGroup) launch(id, state string) { g.states[id] = state }

// boot creates the node of an instance.
func (g *scaledGroup) boot(name, id string, taints ...corev1.Taint) {
	g.t.Helper()
	n := node(name, id)
	n.CreationTimestamp, n.UID, n.Spec.Taints = metav1.NewTime(g.now), types.UID("uid-"+name), taints
	if err := g.client.Create(g.t.Context(), n); err != nil {
		g.t.Fatal(err)
	}
}

// run advances the time in steps and reconciles when due, and refreshes the group every 30 s.
// others simulates the rest of the cluster.
func (g *scaledGroup) run(d time.Duration, others func()) {
	g.t.Helper()
	end, step := g.now.Add(d), time.Second
	if d > 10*time.Minute {
		step = 3 * time.Second
	}
	wake, looked, pods := g.now, g.now, g.podsThere()
	for !g.now.After(end) {
		if others != nil {
			others()
		}
		if there := g.podsThere(); there != pods {
			pods, wake = there, g.now // as the pod watch would report it
		}
		if g.hints > 0 && g.now.Sub(looked) >= 2*time.Second || g.now.Sub(looked) >= 30*time.Second {
			if !g.behind {
				g.look()
			}
			looked, g.hints, wake = g.now, 0, g.now
		}
		if !g.now.Before(wake) {
			if err := g.pass(0); err != nil {
				g.t.Fatal(err)
			}
			wake = g.now.Add(max(g.wake, time.Second))
			if g.wake == 0 {
				wake = end.Add(time.Hour)
			}
		}
		if strings.HasSuffix(g.states[instance], ":Wait") && g.now.After(g.expires) {
			g.t.Fatalf("the hook's time ran out at %s: %+v", g.now.Sub(start), g.record().Status.LifecycleHooks)
		}
		g.now = g.now.Add(step)
	}
}

func (g *scaledGroup) podsThere() int {
	g.t.Helper()
	pods, _, err := g.Pods(g.t.Context(), "a")
	if err != nil {
		g.t.Fatal(err)
	}
	return len(pods)
}

func terminating(source string) v1beta1.Notice {
	n := v1beta1.Notice{
		ID: "autoscaling-" + source, Kind: notice.KindAutoScalingTermination, Source: source, Subject: "workers/" + instance,
		Time: metav1.NewTime(start), ReceivedTime: metav1.NewMicroTime(start), InstanceAction: notice.ActionTerminate,
		LifecycleHook: &v1beta1.LifecycleHookInvocation{Group: "workers"},
	}
	if source == notice.SourceQueue {
		n.ID, n.Subject, n.LifecycleHook.Name, n.LifecycleHook.Token = token, token, "lifeboat-terminate", token
	}
	return n
}

func (g *scaledGroup) answerStatus() v1beta1.LifecycleHooksStatus {
	g.t.Helper()
	if s := g.record().Status.LifecycleHooks; s != nil {
		return *s
	}
	return v1beta1.LifecycleHooksStatus{}
}

func (g *scaledGroup) gone(name string) {
	var p corev1.Pod
	if g.client.Get(g.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &p) == nil && p.Spec.NodeName == "a" {
		g.stopped(name)
	}
}

// allowed is how many disruptions the budget allows now.
func (w *world) allowed() int32 {
	w.t.Helper()
	web := &policyv1.PodDisruptionBudget{}
	if err := w.client.Get(w.t.Context(), types.NamespacedName{Namespace: "default", Name: "web"}, web); err != nil {
		w.t.Fatal(err)
	}
	return web.Status.DisruptionsAllowed
}
