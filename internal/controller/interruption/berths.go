package interruption

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

const (
	// berthAgain is when a node that waits for a berth looks again, should the
	// change that frees one be missed.
	berthAgain = 15 * time.Second
	// claimLasts is for how long a berth that was given counts although the
	// record does not show it yet: as long as it may take to write that down.
	claimLasts = 30 * time.Second
	// countLasts is for how long the number of nodes that a limit is a share of
	// is taken for granted.
	countLasts = 10 * time.Second
)

// berths bounds how many nodes are in work at the same time, where policy does.
// Who is in work is told by the records; what it remembers are the claims that
// they do not show yet, and counts of nodes that are costly to make.
type berths struct {
	mu     sync.Mutex
	claims map[claim]time.Time // until when it counts
	counts map[string]count    // by what is counted
}

type claim struct{ record, berth string }

type count struct {
	n     int
	until time.Time
}

// berth is a limit of so many nodes at a time.
type berth struct {
	name  string // what the limit is of, a key
	limit intstr.IntOrString
	// of counts the nodes that a percentage is of.
	of func(*corev1.Node) bool
	// holds reports whether a record that is in work takes one.
	holds func(*v1alpha1.Interruption) bool
	// wants reports whether a record waits for one.
	wants func(*v1alpha1.Interruption) bool
	// sentence says what is waited for, given how many there are and are taken.
	sentence func(taken, limit int) string
}

// budgetOf is the policy's budget, or nil where it has none or none counts: a
// hard deadline waits for nobody.
func (p *pass) budgetOf() *berth {
	d := &p.decision
	if d.Budget == nil || isHard(d) {
		return nil
	}
	governor := d.Governor
	var governing *v1alpha1.InterruptionPolicy
	for i := range p.facts.policies {
		if p.facts.policies[i].Name == governor {
			governing = &p.facts.policies[i]
		}
	}
	same := func(in *v1alpha1.Interruption) bool {
		return in.Status.Decision != nil && in.Status.Decision.Governor == governor
	}
	return &berth{
		name: "budget of " + governor, limit: d.Budget.MaxConcurrent,
		of:    func(n *corev1.Node) bool { return governing != nil && policy.Selects(governing, n) },
		holds: func(in *v1alpha1.Interruption) bool { return same(in) && record.Draining(&in.Status, d.Hooks) },
		wants: func(in *v1alpha1.Interruption) bool {
			return same(in) && in.Status.Phase == v1alpha1.PhaseQueued
		},
		sentence: func(taken, limit int) string {
			return fmt.Sprintf("waits for its turn: policy %s drains %s at a time, and %s being drained", governor, nodes(limit), are(taken))
		},
	}
}

// terminationsOf is the bound on forced terminations in the node's pool, or nil
// where none counts.
func (p *pass) terminationsOf() *berth {
	d, node := &p.decision, p.facts.node
	if d.Action != v1alpha1.ActionTerminate || node == nil || isHard(d) {
		return nil
	}
	pool := policy.Pool(node)
	named := cmp.Or(pool, "the nodes of no pool")
	same := func(in *v1alpha1.Interruption) bool {
		other, d := p.nodeOf(in), in.Status.Decision
		// Once it goes, the news of that rules, but it is still one of those.
		chosen := record.Drain(&in.Status).TerminationTime != nil || d != nil && d.Action == v1alpha1.ActionTerminate
		return chosen && other != nil && policy.Pool(other) == pool
	}
	return &berth{
		name: "terminations of " + named, limit: d.Terminations.MaxConcurrent,
		of:    func(n *corev1.Node) bool { return policy.Pool(n) == pool },
		holds: func(in *v1alpha1.Interruption) bool { return same(in) && !record.Begun(&in.Status).IsZero() },
		wants: func(in *v1alpha1.Interruption) bool {
			return same(in) && in.Status.Phase == v1alpha1.PhaseQueued
		},
		sentence: func(taken, limit int) string {
			return fmt.Sprintf("waits for its turn: %s of %s may be terminated at a time, and %s being terminated", nodes(limit), named, are(taken))
		},
	}
}

func nodes(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

func are(n int) string {
	if n == 1 {
		return "1 is"
	}
	return fmt.Sprintf("%d are", n)
}

func (p *pass) nodeOf(in *v1alpha1.Interruption) *corev1.Node {
	node, err := p.Nodes.NodeByInstance(context.Background(), in.Spec.InstanceID) // reads the cache
	if err != nil {
		return nil
	}
	return node
}

// board gives the record a berth, or says what it waits for. Of those that wait
// the one with the earliest deadline is next.
func (p *pass) board(ctx context.Context, b *berth) (sentence string, err error) {
	p.berths.mu.Lock()
	defer p.berths.mu.Unlock()
	limit, err := p.limitOf(ctx, b)
	if err != nil {
		return "", err
	}
	var all v1alpha1.InterruptionList
	if err := p.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("listing interruptions: %w", err)
	}
	maps.DeleteFunc(p.berths.claims, func(_ claim, until time.Time) bool { return !p.facts.now.Before(until) })
	me, taken, ahead := p.facts.in, 0, 0
	if b.holds(me) || p.berths.claimed(me, b.name, p.facts.now) {
		return "", nil // it has been given one
	}
	for i := range all.Items {
		in := &all.Items[i]
		if in.Name == me.Name || notice.Finished(in) {
			continue
		}
		switch {
		case b.holds(in), p.berths.claimed(in, b.name, p.facts.now):
			taken++
		case b.wants(in) && isAhead(in, me):
			ahead++
		}
	}
	if taken+ahead >= limit {
		return b.sentence(taken, limit), nil
	}
	if p.berths.claims == nil {
		p.berths.claims = map[claim]time.Time{}
	}
	p.berths.claims[claim{me.Name, b.name}] = p.facts.now.Add(claimLasts)
	return "", nil
}

func isAhead(a, b *v1alpha1.Interruption) bool {
	return cmp.Or(cmp.Compare(priorityOf(b), priorityOf(a)), cmp.Compare(a.Name, b.Name)) < 0
}

// claimed reports whether a record was given a berth a moment ago, and does not
// show yet that it has begun: from then on it tells itself.
func (b *berths) claimed(in *v1alpha1.Interruption, berth string, now time.Time) bool {
	key := claim{in.Name, berth}
	until, ok := b.claims[key]
	if ok && (!now.Before(until) || !record.Begun(&in.Status).IsZero()) {
		delete(b.claims, key)
		return false
	}
	return ok
}

// limitOf returns how many a limit allows.
func (p *pass) limitOf(ctx context.Context, b *berth) (int, error) {
	if b.limit.Type == intstr.Int {
		return policy.Share(b.limit, 0), nil
	}
	known, ok := p.berths.counts[b.name]
	if !ok || !p.facts.now.Before(known.until) {
		var nodes corev1.NodeList
		if err := p.Client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
			return 0, fmt.Errorf("counting nodes: %w", err)
		}
		known = count{until: p.facts.now.Add(countLasts)}
		for i := range nodes.Items {
			if b.of(&nodes.Items[i]) {
				known.n++
			}
		}
		if p.berths.counts == nil {
			p.berths.counts = map[string]count{}
		}
		p.berths.counts[b.name] = known
	}
	return policy.Share(b.limit, known.n), nil
}
