package nodegroup

import (
	"context"
	"slices"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/groupwatch"
	"github.com/lifeboat-dev/lifeboat/internal/nodegroup"
)

// sight is what was read of AWS.
type sight struct {
	observed   nodegroup.Observed
	at         time.Time // zero: never
	generation int64
	// stale has it read anew: something was changed.
	stale bool
}

// look says how the group is: what the watch tells, which is of the last half
// minute, upon what was read of the group's settings. These are read where they
// may have changed, and every few minutes. The error says why they could not be
// read; known tells whether there is anything to go by all the same.
func (c *Controller) look(ctx context.Context, g *v1alpha1.NodeGroup, m *memory) (o nodegroup.Observed, known bool, err error) {
	name := nodegroup.Name(g)
	group, watched := c.Watch.Group(name)
	if c.due(m, g, group, watched) {
		var o nodegroup.Observed
		if o, err = c.AWS.Observe(ctx, name, c.Clock()); err == nil {
			m.sight = sight{observed: o, at: o.At, generation: g.Generation}
			if watched && differ(o, group) {
				c.Watch.HintHooks(name)
			}
		}
	}
	switch {
	case m.sight.at.IsZero() && !watched:
		return nodegroup.Observed{Name: name}, false, err
	case m.sight.at.IsZero():
		return fromWatch(group), true, err
	case watched && group.At.After(m.sight.at):
		return overlay(m.sight.observed, group), true, err
	}
	return m.sight.observed, true, err
}

// due tells whether to read the group anew.
func (c *Controller) due(m *memory, g *v1alpha1.NodeGroup, group groupwatch.Group, watched bool) bool {
	s, now := m.sight, c.Clock()
	every := lookEvery
	if !s.observed.Exists {
		every = patience
	}
	switch {
	case s.at.IsZero(), s.stale, s.generation != g.Generation, now.Sub(s.at) >= every:
		return true
	case !watched || !group.At.After(s.at), now.Sub(s.at) < settle:
		return false
	}
	return differ(s.observed, group)
}

// settle is how long what was read counts for more than what the watch says of
// hooks and sizes: it reads hooks seldom, and AWS tells late what was changed.
const settle = 15 * time.Second

// differ tells whether the watch and a look do not agree on what seldom changes.
func differ(o nodegroup.Observed, group groupwatch.Group) bool {
	return !o.Exists || o.Min != group.Min || o.Max != group.Max || (o.Pool != nil) != group.Pool ||
		group.HooksKnown && !slices.Equal(hooksOf(group), bare(o.Hooks))
}

// overlay puts what the watch tells upon an older look.
func overlay(o nodegroup.Observed, g groupwatch.Group) nodegroup.Observed {
	young := fromWatch(g)
	o.Desired, o.Instances, o.At = young.Desired, young.Instances, young.At
	reasons := o.Suspended
	o.Suspended = nil
	for _, s := range young.Suspended {
		if i := slices.IndexFunc(reasons, func(old nodegroup.Suspension) bool { return old.Process == s.Process }); i >= 0 {
			s.Reason = reasons[i].Reason
		}
		o.Suspended = append(o.Suspended, s)
	}
	return o
}

// fromWatch is a group as the watch tells it, without its settings.
func fromWatch(g groupwatch.Group) nodegroup.Observed {
	o := nodegroup.Observed{
		Exists: true, Name: g.Name, ARN: g.ARN, Operator: g.Operator, Min: g.Min, Max: g.Max, Desired: g.Desired,
		Tags: g.Tags, Hooks: hooksOf(g), HooksKnown: g.HooksKnown, At: g.At,
	}
	if g.Pool {
		o.Pool = &nodegroup.Pool{Reuse: g.Reuse}
	}
	for _, process := range g.Suspended {
		o.Suspended = append(o.Suspended, nodegroup.Suspension{Process: process})
	}
	for _, member := range g.Members {
		o.Instances = append(o.Instances, nodegroup.Instance{
			ID: member.InstanceID, State: member.State, At: member.At, TemplateVersion: member.LaunchTemplateVersion,
		})
	}
	return o
}

func hooksOf(g groupwatch.Group) []nodegroup.Hook {
	var out []nodegroup.Hook
	for _, h := range g.Hooks {
		out = append(out, nodegroup.Hook{Name: h.Name, Terminating: h.Terminating, Timeout: h.Timeout, Global: h.Global, Abandons: h.Abandons})
	}
	return sortHooks(out)
}

// bare are hooks without what the watch does not tell of them.
func bare(hooks []nodegroup.Hook) []nodegroup.Hook {
	out := slices.Clone(hooks)
	for i := range out {
		out[i].Target = ""
	}
	return sortHooks(out)
}

func sortHooks(hooks []nodegroup.Hook) []nodegroup.Hook {
	slices.SortFunc(hooks, func(a, b nodegroup.Hook) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return hooks
}
