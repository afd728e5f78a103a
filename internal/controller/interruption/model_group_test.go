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

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/groupwatch"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/model"
)

// modelGroup is an Auto Scaling group, of which all nodes of a run are.
type modelGroup struct {
	*modelRun
	timeout time.Duration
	desired int
	serial  int
	members map[string]*modelMember // also those that are no more

	beats, answers, lapses, detaches, launches, returns int
}

// modelMember is an instance of it.
type modelMember struct {
	id, node, state string // no state: it is in the group no more
	token           string
	held, expires   time.Time
	firing          int
	detached        time.Time
	beats           int
	tries           int
}

func (g *modelGroup) member(id string) *modelMember {
	m := g.members[id]
	if m == nil {
		m = &modelMember{id: id}
		g.members[id] = m
	}
	return m
}

// stage is a group of some nodes with workloads on them.
func (g *modelGroup) stage() {
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

// script draws what the group, EC2 and people do.
func (g *modelGroup) script() {
	for i := range g.desired - 2 {
		s := &story{modelRun: g.modelRun, node: fmt.Sprintf("n%d", i+2), instance: fmt.Sprintf("i-%d", i+2), at: g.c.Now().Add(g.c.Between(0, 40*time.Second))}
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
	}
	for _, n := range g.nodeNames()[2:] {
		if g.c.Chance(.1) {
			g.c.At(g.c.Now().Add(g.c.Between(0, 3*time.Minute)), "somebody", func() { g.books.uncordon(n) })
		}
	}
	g.every(5*time.Second, "group", g.tick)
}

// leave has the group take an instance away: out of service, or into its pool.
func (g *modelGroup) leave(s *story, state, action string) {
	m := g.member(s.instance)
	g.c.At(s.at, "group", func() {
		if m.state != "InService" {
			return
		}
		g.move(m, state)
		hold := g.c.Between(0, 40*time.Second) // load balancers
		tell := func(after time.Duration, source string) {
			n := s.notice(notice.KindAutoScalingTermination, g.c.Now())
			n.Source, n.InstanceAction, n.Hook = source, action, &v1alpha1.HookFiring{Group: "workers"}
			n.Subject = "workers/" + m.id
			if source == notice.SourceQueue {
				n.Hook.Name, n.Hook.Token, n.Subject = "lifeboat-terminate", m.token, m.token
			}
			s.send(n, g.c.Now().Add(after))
		}
		if g.c.Chance(.7) {
			tell(g.c.Between(time.Second, 25*time.Second), notice.SourceAutoScaling)
		}
		g.c.After(hold, "hook", func() {
			if m.state != state {
				return
			}
			m.firing++
			m.token, m.held, m.expires = fmt.Sprintf("token-%s-%d", m.id, m.firing), g.c.Now(), g.c.Now().Add(g.timeout)
			g.move(m, state+":Wait")
			tell(g.c.Between(time.Second, 20*time.Second), pick(g.modelRun, notice.SourceQueue, notice.SourceAutoScaling))
		})
	})
	s.until(s.at.Add(90 * time.Minute))
}

func (g *modelGroup) move(m *modelMember, state string) {
	g.note("%s is %s", m.id, state)
	m.state = state
}

// tick is what the group does by itself.
func (g *modelGroup) tick() {
	serving := 0
	for _, id := range slices.Sorted(maps.Keys(g.members)) {
		m := g.members[id]
		switch {
		case strings.HasSuffix(m.state, ":Wait") && !g.c.Now().Before(m.expires):
			g.lapse(m)
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

// lapse: the hook's time is out. While nothing goes wrong it never is.
func (g *modelGroup) lapse(m *modelMember) {
	calm := !slices.ContainsFunc(g.books.troubles, func(t trouble) bool { return t.to.After(m.expires.Add(-g.timeout)) })
	if calm && g.life != nil && len(g.books.inst(m.id).accepted) > 0 && g.books.inst(m.id).calledOff.IsZero() {
		g.fail("the hook of %s ran out: %+v", m.id, g.books.recordOf(m.id).Status.Answer)
	}
	g.lapses++
	g.go_(m)
}

// go_ lets an instance go on whose hook is done with.
func (g *modelGroup) go_(m *modelMember) {
	if strings.HasPrefix(m.state, "Warmed") {
		g.move(m, "Warmed:Pending:Proceed")
		g.c.After(2*time.Second, "warm", func() { g.move(m, "Warmed:Stopped") })
		g.returns++
		if g.Node(m.node) != nil { // it was not drained in time
			g.c.After(3*time.Second, "power", func() { g.books.powerOff(m.node, m.id) })
			g.bury(m)
		}
		return
	}
	g.move(m, "Terminating:Proceed")
	g.c.After(2*time.Second, "end", func() {
		g.move(m, "")
		g.books.powerOff(m.node, m.id)
	})
	g.bury(m)
}

func (g *modelGroup) bury(m *modelMember) {
	g.c.After(g.c.Between(45*time.Second, 3*time.Minute), "node", func() {
		if instanceIs(g.Node(m.node), m.id) {
			g.RemoveNode(m.node)
		}
	})
}

// launch brings up an instance, or fails to.
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

// answers holds a call about a hook against what must hold.
func (g *modelGroup) answer(a cloud.Action) (*modelMember, error) {
	m := g.member(a.InstanceID)
	if a.Group != "workers" || a.Hook != "lifeboat-terminate" {
		g.fail("%+v is nobody's to answer", a)
	}
	if !strings.HasSuffix(m.state, ":Wait") || a.Token != "" && a.Token != m.token || !g.c.Now().Before(m.expires) {
		return nil, cloud.ErrNoAction
	}
	return m, nil
}

// drained: a hook is answered once no pod is left that has to leave, or the time is
// out.
func (g *modelGroup) drained(m *modelMember, what string) {
	d, ok := g.books.decision(m.id)
	if ok && d.deadline != nil && !g.c.Now().Before(d.deadline.Time.Time) || never(d) {
		return
	}
	for _, p := range g.Pods(model.On(m.node)) {
		page := g.books.pods[p.UID]
		if !isStaying(p) && page.instance == m.id && g.c.Now().Sub(page.bound) > behind {
			g.fail("%s of %s, and pod %s is on its node: %v", what, m.id, p.Name, d.deadline)
		}
	}
}

// Heartbeat, Complete and Detach are AWS's answers.
func (l *life) Heartbeat(ctx context.Context, a cloud.Action) error {
	return l.Call(ctx, "heartbeat", model.Key{Kind: "Member", Name: a.InstanceID}, func() error {
		m, err := l.run.group.answer(a)
		if err != nil {
			return err
		}
		l.run.group.beats++
		m.beats++
		m.expires = l.run.c.Now().Add(l.run.group.timeout)
		return nil
	})
}

func (l *life) Complete(ctx context.Context, a cloud.Action, r cloud.Result) error {
	return l.Call(ctx, "complete", model.Key{Kind: "Member", Name: a.InstanceID}, func() error {
		g := l.run.group
		g.member(a.InstanceID).tries++
		m, err := g.answer(a)
		if err != nil {
			return err
		}
		if r != cloud.Continue {
			g.fail("%+v is answered with %s", a, r)
		}
		g.drained(m, "the hook is answered")
		if strings.HasPrefix(m.state, "Warmed") && instanceIs(g.Node(m.node), m.id) && !g.books.inst(m.id).uncordoned {
			if d, _ := g.books.decision(m.id); d.deadline == nil || g.c.Now().Before(d.deadline.Time.Time) {
				g.fail("%s goes back to its pool, and its node is there", m.id)
			}
		}
		g.answers++
		g.go_(m)
		return nil
	})
}

func (l *life) Detach(ctx context.Context, group, id string) error {
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
		if in := g.books.recordOf(id); in == nil || record.Drain(&in.Status).Replacement == nil || record.Drain(&in.Status).Replacement.Group != group {
			g.fail("%s is taken out of its group before that is written down", id)
		}
		g.move(m, "")
		m.detached = g.c.Now()
		g.detaches++
		return nil
	})
}

// takenOut reports whether an instance was taken out of its group, or its record says so.
func (g *modelGroup) takenOut(id string) bool {
	in := g.books.recordOf(id)
	return !g.member(id).detached.IsZero() || in != nil && replacement.IsDetached(record.Drain(&in.Status).Replacement)
}

// mayEnd: an instance that was taken out is terminated once it is drained.
func (g *modelGroup) mayEnd(q *model.Request, id string) {
	if in := g.books.recordOf(id); in == nil || record.Drain(&in.Status).Replacement == nil {
		g.fail("%s: its record does not say that it was taken out", q)
	}
	m := g.member(id)
	m.node = g.books.inst(id).node
	g.drained(m, "the termination")
}

// asksNode: only the drained node of an instance that goes back to its pool is deleted.
func (g *modelGroup) asksNode(q *model.Request) func(error) {
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
		g.drained(m, "the node is deleted")
	}
	return func(error) {}
}

// writes is how many times more a record may be written for hooks and replacements,
// for each time that it is.
func (g *modelGroup) writes(id string) int {
	m := g.member(id)
	n := 2*m.beats + 2*m.tries
	m.beats, m.tries = 0, 0
	return n
}

// close looks at how the group was left.
func (g *modelGroup) close() {
	counted := map[string]string{}
	g.Each("Interruption", func(o client.Object) {
		in, ok := o.(*v1alpha1.Interruption)
		if !ok || record.Drain(&in.Status).Replacement == nil || record.Drain(&in.Status).Replacement.InstanceID == "" {
			return
		}
		id := record.Drain(&in.Status).Replacement.InstanceID
		if other := counted[id]; other != "" {
			g.fail("%s and %s count on the same %s", other, in.Name, id)
		}
		counted[id] = in.Name
	})
	for id, m := range g.members {
		if i := g.books.inst(id); !m.detached.IsZero() && i.terminated.IsZero() && i.off.IsZero() && i.calledOff.IsZero() {
			g.fail("%s was taken out of its group, and nobody terminates it", id)
		}
	}
}

// look has a life see the group as it is.
func (l *life) look() {
	g := l.run.group
	seen := groupwatch.Group{Name: "workers", HooksKnown: true, Desired: int32(g.desired), At: l.run.c.Now(), Reuse: true, Hooks: []groupwatch.Hook{
		{Name: "lifeboat-terminate", Terminating: true, Timeout: g.timeout, Global: 100 * g.timeout},
	}}
	for _, id := range slices.Sorted(maps.Keys(g.members)) {
		if m := g.members[id]; m.state != "" {
			seen.Members = append(seen.Members, groupwatch.Member{InstanceID: id, Group: "workers", State: m.state, At: lifecycle.Read(m.state)})
		}
	}
	l.run.mu.Lock()
	l.seen, l.hinted = seen, false
	l.run.mu.Unlock()
	if l.loop != nil && l.leads {
		l.enqueue(l.loop.ofGroup(l.Context, "workers"))
	}
}

// looks looks at the group every half minute, while this life lasts.
func (l *life) looks() {
	if l.Dead() {
		return
	}
	l.look()
	l.run.c.After(30*time.Second, "look", l.looks)
}

func (l *life) Member(id string) (groupwatch.Member, bool, time.Time) {
	l.run.mu.Lock()
	defer l.run.mu.Unlock()
	for _, m := range l.seen.Members {
		if m.InstanceID == id {
			return m, true, l.seen.At
		}
	}
	return groupwatch.Member{}, false, time.Time{}
}

func (l *life) Group(name string) (groupwatch.Group, bool) {
	l.run.mu.Lock()
	defer l.run.mu.Unlock()
	return l.seen, name == "workers"
}

// Hint has the group looked at some seconds later.
func (l *life) Hint(string) {
	l.run.mu.Lock()
	defer l.run.mu.Unlock()
	if !l.hinted {
		l.hinted = true
		l.run.hinted = append(l.run.hinted, l)
	}
}

// answerHints has groups looked at that were hinted at.
func (r *modelRun) answerHints() {
	r.mu.Lock()
	hinted := r.hinted
	r.hinted = nil
	r.mu.Unlock()
	slices.SortFunc(hinted, func(a, b *life) int { return strings.Compare(a.Name, b.Name) })
	for _, l := range hinted {
		r.c.After(2*time.Second, "hint", func() {
			if !l.Dead() {
				l.look()
			}
		})
	}
}
