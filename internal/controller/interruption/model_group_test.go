package interruption

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/groupcache"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/model"
)

// modelGroup is an Auto Scaling group that has all nodes of a run.
type modelGroup struct {
	*modelRun
	timeout time.Duration
	desired int
	serial  int
	members map[string]*modelMember // including former ones

	beats, answers, lapses, detaches, launches, returns int
	refusedCalls, checkedPods                           int
}

// modelMember is an instance of the group.
type modelMember struct {
	id, node, state string // no state: it has left the group
	token           string
	held, expires   time.Time
	firing          int
	detached        time.Time
	beats           int
	tries           int
	// failures are the heartbeats in a row that were refused, and endKnown is since when they tell the end of
	// the instance.
	failures int
	endKnown time.Time
}

func (g *modelGroup) member(id string) *modelMember {
	m := g.members[id]
	if m == nil {
		m = &modelMember{id: id}
		g.members[id] = m
	}
	return m
}

// setUp creates the group's nodes and workloads.
func (g *modelGroup) setUp() {
	g.timeout = pick(g.modelRun, time.Minute, 3*time.Minute, 5*time.Minute)
	for i := range 3 + g.c.Rand.IntN(3) {
		name, id := fmt.Sprintf("n%d", i), fmt.Sprintf("i-%d", i)
		n := node(name, id)
		n.CreationTimestamp = metav1.NewTime(g.c.Now().Add(-time.Hour))
		n.Status.NodeInfo.BootID = "first"
		g.AddNode(n)
		*g.member(id) = modelMember{id: id, node: name, state: "InService"}
		g.desired++
	}
	nodes := g.nodeNames()
	for i := range 1 + g.c.Rand.IntN(4) {
		a := g.drawApp(fmt.Sprintf("app%d", i))
		on := slices.Clone(nodes[1:])
		g.c.Rand.Shuffle(len(on), func(i, j int) { on[i], on[j] = on[j], on[i] })
		g.Run(a, on[:1+g.c.Rand.IntN(len(on))])
		if a.Kind == "ReplicaSet" || a.Kind == "StatefulSet" {
			g.Protect(fmt.Sprintf("pdb%d", i), a, pick(g.modelRun, 0, 1, 1, 2))
		}
	}
}

// scheduleEvents draws what the group, EC2 and people do.
func (g *modelGroup) scheduleEvents() {
	for i := range g.desired - 2 {
		s := &instanceScenario{modelRun: g.modelRun, node: fmt.Sprintf("n%d", i+2), instance: fmt.Sprintf("i-%d", i+2), at: g.c.Now().Add(g.c.Between(0, 40*time.Second))}
		switch g.c.Rand.IntN(6) {
		case 0, 1:
			g.leave(s, "Terminating", notice.ActionTerminate)
		case 2:
			g.leave(s, "Warmed:Pending", notice.ActionReturn)
		case 3:
			s.planned()
		default:
			s.spot()
		}
		if g.c.Chance(.3) {
			g.request(s)
		}
	}
	for _, n := range g.nodeNames()[2:] {
		if g.c.Chance(.1) {
			g.c.At(g.c.Now().Add(g.c.Between(0, 3*time.Minute)), "a user", func() { g.bookkeeping.uncordon(n) })
		}
	}
	g.every(5*time.Second, "group", g.tick)
}

// leave moves an instance out of service, to termination or into the warm pool.
func (g *modelGroup) leave(s *instanceScenario, state, action string) {
	m := g.member(s.instance)
	g.c.At(s.at, "group", func() {
		if m.state != "InService" {
			return
		}
		g.move(m, state)
		hold := g.c.Between(0, 40*time.Second) // load balancer deregistration
		announce := func(after time.Duration, source string) {
			n := s.notice(notice.KindAutoScalingTermination, g.c.Now())
			n.Source, n.InstanceAction, n.LifecycleHook = source, action, &v1beta1.LifecycleHookInvocation{Group: "workers"}
			n.Subject = "workers/" + m.id
			if source == notice.SourceQueue {
				n.LifecycleHook.Name, n.LifecycleHook.Token, n.Subject = "lifeboat-terminate", m.token, m.token
			}
			s.send(n, g.c.Now().Add(after))
		}
		if g.c.Chance(.7) {
			announce(g.c.Between(time.Second, 25*time.Second), notice.SourceAutoScaling)
		}
		g.c.After(hold, "hook", func() {
			if m.state != state {
				return
			}
			m.firing++
			m.failures, m.endKnown = 0, time.Time{}
			m.token, m.held, m.expires = fmt.Sprintf("token-%s-%d", m.id, m.firing), g.c.Now(), g.c.Now().Add(g.timeout)
			g.move(m, state+":Wait")
			announce(g.c.Between(time.Second, 20*time.Second), pick(g.modelRun, notice.SourceQueue, notice.SourceAutoScaling))
		})
	})
	s.until(s.at.Add(90 * time.Minute))
}

// request is a person who drains the node, before or while the group takes its instance away, and who ends that.
func (g *modelGroup) request(of *instanceScenario) {
	s := &instanceScenario{modelRun: g.modelRun, node: of.node, instance: of.instance, at: g.c.Now().Add(g.c.Between(0, 5*time.Minute))}
	id := s.request()
	end := s.at.Add(g.c.Between(time.Minute, time.Hour))
	g.c.At(end, "a user", func() { g.bookkeeping.withdrawRequest(s.instance, id) })
	s.until(end)
}

func (g *modelGroup) move(m *modelMember, state string) {
	g.note("%s is %s", m.id, state)
	m.state = state
}

// tick is what the group does on its own.
func (g *modelGroup) tick() {
	serving := 0
	for _, id := range slices.Sorted(maps.Keys(g.members)) {
		m := g.members[id]
		switch {
		case strings.HasSuffix(m.state, ":Wait") && !g.c.Now().Before(m.expires):
			g.hookTimedOut(m)
		case m.state != "" && m.node != "" && g.Off(m.node) && instanceIs(g.Node(m.node), m.id) && !strings.HasPrefix(m.state, "Warmed"):
			g.move(m, "")
		}
		if m.state == "InService" || m.state == "Pending" {
			serving++
		}
	}
	if serving < g.desired && g.c.Chance(.3) {
		g.launch()
	}
}

func instanceIs(n *corev1.Node, id string) bool { return n != nil && instanceOf(n) == id }

// hookTimedOut is the hook's timeout. It must not happen without a fault.
func (g *modelGroup) hookTimedOut(m *modelMember) {
	refused := g.refused(m.node, m.expires.Add(-g.timeout), writeHeartbeat, writeComplete)
	undisturbed := !refused && !slices.ContainsFunc(g.bookkeeping.troubles, func(t disturbance) bool { return t.to.After(m.expires.Add(-g.timeout)) })
	if undisturbed && g.life != nil && len(g.bookkeeping.inst(m.id).accepted) > 0 && g.bookkeeping.inst(m.id).deletedAt.IsZero() {
		g.fail("the hook of %s ran out: %+v", m.id, g.bookkeeping.recordOf(m.id).Status.LifecycleHooks)
	}
	g.lapses++
	g.proceed(m)
}

// proceed moves on an instance whose hook is completed.
func (g *modelGroup) proceed(m *modelMember) {
	if strings.HasPrefix(m.state, "Warmed") {
		g.move(m, "Warmed:Pending:Proceed")
		g.c.After(2*time.Second, "warm", func() { g.move(m, "Warmed:Stopped") })
		g.returns++
		if g.Node(m.node) != nil { // it was not drained in time
			g.c.After(3*time.Second, "power", func() { g.bookkeeping.powerOff(m.node, m.id) })
			g.removeInstance(m)
		}
		return
	}
	g.move(m, "Terminating:Proceed")
	g.c.After(2*time.Second, "end", func() {
		g.move(m, "")
		g.bookkeeping.powerOff(m.node, m.id)
	})
	g.removeInstance(m)
}

func (g *modelGroup) removeInstance(m *modelMember) {
	g.c.After(g.c.Between(45*time.Second, 3*time.Minute), "node", func() {
		if instanceIs(g.Node(m.node), m.id) {
			g.RemoveNode(m.node)
		}
	})
}

// launch launches an instance, or fails.
func (g *modelGroup) launch() {
	g.serial++
	g.launches++
	m := g.member(fmt.Sprintf("i-g%d", g.serial))
	m.node = fmt.Sprintf("g%d", g.serial)
	g.move(m, "Pending")
	g.c.After(g.c.Between(5*time.Second, 60*time.Second), "boot", func() {
		if g.c.Chance(.15) {
			g.move(m, "")
			return
		}
		n := node(m.node, m.id)
		n.CreationTimestamp = metav1.NewTime(g.c.Now())
		g.AddNode(n)
		g.c.After(g.c.Between(0, 5*time.Second), "in service", func() { g.move(m, "InService") })
	})
}

// answers checks a call for a hook.
func (g *modelGroup) checkHookCall(a cloud.Action) (*modelMember, error) {
	m := g.member(a.InstanceID)
	if a.Group != "workers" || a.Hook != "lifeboat-terminate" {
		g.fail("%+v is not a hook that Lifeboat may answer", a)
	}
	if !strings.HasSuffix(m.state, ":Wait") || a.Token != "" && a.Token != m.token || !g.c.Now().Before(m.expires) {
		return nil, cloud.ErrNoAction
	}
	return m, nil
}

// checkDrained checks that a hook is completed only when no pod must leave or the time is over.
func (g *modelGroup) checkDrained(m *modelMember, what string) {
	d, ok := g.bookkeeping.decision(m.id)
	if ok && d.deadline != nil && !g.c.Now().Before(d.deadline.Time.Time) || mayKeepPods(d) {
		return
	}
	for _, p := range g.Pods(model.On(m.node)) {
		page := g.bookkeeping.pods[p.UID]
		if !isStaying(p) && page.instance == m.id && g.c.Now().Sub(page.bound) > behind {
			g.fail("%s of %s, and pod %s is on its node: %v", what, m.id, p.Name, d.deadline)
		}
	}
}

// Heartbeat, Complete and Detach simulate AWS.
func (l *controllerProcess) Heartbeat(ctx context.Context, a cloud.Action) error {
	return l.Call(ctx, "heartbeat", model.Key{Kind: "Member", Name: a.InstanceID}, func() error {
		m, err := l.run.group.checkHookCall(a)
		if err != nil {
			return err
		}
		l.run.group.beats++
		m.beats++
		m.failures, m.endKnown = 0, time.Time{}
		m.expires = l.run.c.Now().Add(l.run.group.timeout)
		return nil
	})
}

func (l *controllerProcess) Complete(ctx context.Context, a cloud.Action, r cloud.Result) error {
	return l.Call(ctx, "complete", model.Key{Kind: "Member", Name: a.InstanceID}, func() error {
		g := l.run.group
		g.member(a.InstanceID).tries++
		m, err := g.checkHookCall(a)
		if err != nil {
			return err
		}
		if r != cloud.Continue {
			g.fail("%+v is answered with %s", a, r)
		}
		g.checkDrained(m, "the hook is answered")
		if strings.HasPrefix(m.state, "Warmed") && instanceIs(g.Node(m.node), m.id) && !g.bookkeeping.inst(m.id).uncordoned {
			if d, _ := g.bookkeeping.decision(m.id); d.deadline == nil || g.c.Now().Before(d.deadline.Time.Time) {
				g.fail("%s goes back to its pool, and its node is there", m.id)
			}
		}
		g.answers++
		g.proceed(m)
		return nil
	})
}

func (l *controllerProcess) Detach(ctx context.Context, group, id string) error {
	return l.Call(ctx, "detach", model.Key{Kind: "Member", Name: id}, func() error {
		g := l.run.group
		m := g.member(id)
		switch {
		case m.state == "":
			return nil
		case m.state != "InService":
			return errors.New("it is not in service")
		case !m.detached.IsZero():
			g.fail("%s is taken out of its group again", id)
		}
		if in := g.bookkeeping.recordOf(id); in == nil || record.Drain(&in.Status).Replacement == nil || record.Drain(&in.Status).Replacement.Group != group {
			g.fail("%s is taken out of its group before that is written down", id)
		}
		g.move(m, "")
		m.detached = g.c.Now()
		g.detaches++
		return nil
	})
}

// takenOut reports whether an instance was detached from its group, or its record says so.
func (g *modelGroup) takenOut(id string) bool {
	in := g.bookkeeping.recordOf(id)
	return !g.member(id).detached.IsZero() || in != nil && replacement.IsDetached(record.Drain(&in.Status).Replacement)
}

// checkTermination checks that an instance is terminated only if it was detached and is drained.
func (g *modelGroup) checkTermination(q *model.Request, id string) {
	if in := g.bookkeeping.recordOf(id); in == nil || record.Drain(&in.Status).Replacement == nil {
		g.fail("%s: its record does not say that it was taken out", q)
	}
	m := g.member(id)
	m.node = g.bookkeeping.inst(id).node
	g.checkDrained(m, "the termination")
}

// checkNodeRequest checks that only the drained node of an instance that returns to its pool is deleted.
func (g *modelGroup) checkNodeRequest(q *model.Request) func(error) {
	n := g.Node(q.Key.Name)
	if q.Stop.UID == nil {
		g.fail("%s: not tied to a UID", q)
	}
	if n == nil || q.Stop.UID == nil {
		return func(error) {}
	}
	m := g.member(instanceOf(n))
	if *q.Stop.UID == n.UID {
		if !strings.HasPrefix(m.state, "Warmed") {
			g.fail("%s: its instance is %s", q, m.state)
		}
		g.checkDrained(m, "the node is deleted")
	}
	return func(error) {}
}

// writes is how many additional writes of a record hooks and replacements may cause, per
// interruption.
func (g *modelGroup) writes(id string) int {
	m := g.member(id)
	n := 2*m.beats + 2*m.tries
	m.beats, m.tries = 0, 0
	return n
}

// checkEnd checks the group at the end of the run.
func (g *modelGroup) checkEnd() {
	counted := map[string]string{}
	g.Each("Interruption", func(o client.Object) {
		in, ok := o.(*v1beta1.Interruption)
		if !ok || record.Drain(&in.Status).Replacement == nil || record.Drain(&in.Status).Replacement.InstanceID == "" {
			return
		}
		id := record.Drain(&in.Status).Replacement.InstanceID
		if other := counted[id]; other != "" {
			g.fail("%s and %s use the same replacement %s", other, in.Name, id)
		}
		counted[id] = in.Name
	})
	for id, m := range g.members {
		if i := g.bookkeeping.inst(id); !m.detached.IsZero() && i.terminated.IsZero() && i.off.IsZero() && i.deletedAt.IsZero() {
			g.fail("%s was detached from its group and is not terminated", id)
		}
	}
}

// refreshGroup refreshes a life's view of the group.
func (l *controllerProcess) refreshGroup() {
	g := l.run.group
	seen := groupcache.Group{Name: "workers", HooksKnown: true, Desired: int32(g.desired), At: l.run.c.Now(), Reuse: true, Hooks: []groupcache.Hook{
		{Name: "lifeboat-terminate", Terminating: true, Timeout: g.timeout, Global: 100 * g.timeout},
	}}
	for _, id := range slices.Sorted(maps.Keys(g.members)) {
		if m := g.members[id]; m.state != "" {
			seen.Members = append(seen.Members, groupcache.Member{InstanceID: id, Group: "workers", State: m.state, At: lifecycle.Read(m.state)})
		}
	}
	l.run.mu.Lock()
	l.seen, l.hinted = seen, false
	l.run.mu.Unlock()
	if l.loop != nil && l.leads {
		concerned := l.loop.ofGroup(l.Context, "workers")
		l.enqueue(concerned)
		for _, name := range slices.Sorted(maps.Keys(concerned)) {
			l.add("hooks "+name, l.run.c.Now())
		}
	}
}

// refreshPeriodically refreshes the view of the group every 30 s, while this life lasts.
func (l *controllerProcess) refreshPeriodically() {
	if l.Dead() {
		return
	}
	l.refreshGroup()
	l.run.c.After(30*time.Second, "look", l.refreshPeriodically)
}

func (l *controllerProcess) Member(id string) (groupcache.Member, bool, time.Time) {
	l.run.mu.Lock()
	defer l.run.mu.Unlock()
	for _, m := range l.seen.Members {
		if m.InstanceID == id {
			return m, true, l.seen.At
		}
	}
	return groupcache.Member{}, false, time.Time{}
}

func (l *controllerProcess) Group(name string) (groupcache.Group, bool) {
	l.run.mu.Lock()
	defer l.run.mu.Unlock()
	return l.seen, name == "workers"
}

// RequestRefresh refreshes the view of the group some seconds later.
func (l *controllerProcess) RequestRefresh(string) {
	l.run.mu.Lock()
	defer l.run.mu.Unlock()
	if !l.hinted {
		l.hinted = true
		l.run.hinted = append(l.run.hinted, l)
	}
}

// answerHints refreshes the groups for which that was requested.
func (r *modelRun) answerHints() {
	r.mu.Lock()
	hinted := r.hinted
	r.hinted = nil
	r.mu.Unlock()
	slices.SortFunc(hinted, func(a, b *controllerProcess) int { return strings.Compare(a.Name, b.Name) })
	for _, l := range hinted {
		r.c.After(2*time.Second, "hint", func() {
			if !l.Dead() {
				l.refreshGroup()
			}
		})
	}
}
