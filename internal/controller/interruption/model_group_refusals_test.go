package interruption

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/model"
)

// The calls to Auto Scaling that can be refused, as writes.
const (
	writeHeartbeat = "heartbeat"
	writeComplete  = "complete"
	writeDetach    = "detach"
)

// drawRefusals draws which calls Auto Scaling denies or throttles: a permission is missing, or others use up
// the account's rate.
func (g *modelGroup) drawRefusals() {
	if !g.c.Chance(.5) {
		return
	}
	for range pick(g.modelRun, 1, 1, 2) {
		f := &refusedWrite{write: pick(g.modelRun, writeHeartbeat, writeHeartbeat, writeComplete, writeDetach)}
		f.from = g.c.Now().Add(pick(g.modelRun, 0, g.c.Between(0, 5*time.Minute)))
		if g.c.Chance(.5) {
			f.on = pick(g.modelRun, g.nodeNames()[2:]...)
		}
		switch g.c.Rand.IntN(3) {
		case 0:
			f.once = true
		case 1:
			f.until = f.from.Add(g.c.Between(30*time.Second, 8*time.Minute))
		}
		f.err = fmt.Errorf("calling Auto Scaling: %w", cloud.ErrBusy)
		if g.c.Chance(.5) {
			f.err = &cloud.DeniedError{Err: errors.New("AccessDenied"), Fix: "allow autoscaling:*"}
		}
		g.note("%s of %q is refused from %s until %s, once %v: %v", f.write, f.on, g.bookkeeping.at(f.from), g.bookkeeping.at(f.until), f.once, f.err)
		g.refusals = append(g.refusals, f)
	}
}

// noteRefused notes a refused call, which the product records, and from when on refused heartbeats tell when the
// instance goes: a denied one does, and a third one that failed.
func (g *modelGroup) noteRefused(q *model.Request, err error) {
	m := g.member(q.Key.Name)
	m.tries += 2
	g.refusedCalls++
	if q.Verb != writeHeartbeat {
		return
	}
	m.failures++
	if m.endKnown.IsZero() && (cloud.IsDenied(err) || m.failures > 2) {
		m.endKnown = g.c.Now()
	}
}

// checkAsked checks that each pod of an instance that loses its power was asked to leave, whatever Auto Scaling
// refuses. A pod leaves by its last call, or as soon as the end is known.
func (g *modelGroup) checkAsked(name, id string) {
	m, i := g.member(id), g.bookkeeping.inst(id)
	d, ok := g.bookkeeping.decision(id)
	if !ok || !d.drains() || mayKeepPods(d) || m.failures > 0 && m.endKnown.IsZero() {
		return
	}
	if !firm(d.deadline) || g.c.Now().Before(d.deadline.Time.Add(-modelMargin)) {
		return // nothing said that it ends by now: it is a fault of the machine
	}
	known := latest(m.endKnown, i.changed)
	for _, p := range g.Pods(model.On(name)) {
		page := g.bookkeeping.pods[p.UID]
		if isStaying(p) || page.instance != id || !page.asked.IsZero() || p.DeletionTimestamp != nil {
			continue
		}
		since := latest(known, page.bound)
		disturbed := slices.ContainsFunc(g.bookkeeping.troubles, func(t disturbance) bool { return t.to.After(since) })
		g.checkedPods++
		if g.c.Now().Sub(since) > 2*behind+g.chaos.held && !disturbed {
			g.broken(lastCalls, "pod %s/%s was not asked before %s lost its power: the end %v was known since %s", p.Namespace, p.Name, id, d.deadline, g.bookkeeping.at(since))
		}
	}
}
