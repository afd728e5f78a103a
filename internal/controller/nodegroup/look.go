package nodegroup

import (
	"context"
	"slices"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/groupcache"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
)

// reading is what was last read from AWS.
type reading struct {
	observed   nodegroup.Observed
	at         time.Time // zero: never
	generation int64
	// stale forces a read: something was changed.
	stale bool
}

// look returns the state of the group: the watch's data, at most half a minute
// old, merged with the settings that were read directly. Those are read if they
// may have changed, and every few minutes. err says why that failed; known is
// true if older data are available.
func (c *Controller) look(ctx context.Context, g *v1beta1.NodeGroup, m *memory) (o nodegroup.Observed, known bool, err error) {
	name := nodegroup.Name(g)
	group, watched := c.Watch.Group(name)
	if c.due(m, g, group, watched) {
		var o nodegroup.Observed
		if o, err = c.AWS.Observe(ctx, name, c.Clock()); err == nil {
			m.reading = reading{observed: o, at: o.At, generation: g.Generation}
			if watched && differ(o, group) {
				c.Watch.RequestRefreshHooks(name)
			}
		}
	}
	switch {
	case m.reading.at.IsZero() && !watched:
		return nodegroup.Observed{Name: name}, false, err
	case m.reading.at.IsZero():
		return fromWatch(group), true, err
	case watched && group.At.After(m.reading.at):
		return overlay(m.reading.observed, group), true, err
	}
	return m.reading.observed, true, err
}

// due reports whether to read the group again.
func (c *Controller) due(m *memory, g *v1beta1.NodeGroup, group groupcache.Group, watched bool) bool {
	s, now := m.reading, c.Clock()
	every := readEvery
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

// settle is how long a direct read overrides the watch for hooks and sizes: the
// watch reads hooks rarely, and AWS's reads lag behind its writes.
const settle = 15 * time.Second

// differ reports whether the watch and a direct read differ in sizes, pool or
// hooks.
func differ(o nodegroup.Observed, group groupcache.Group) bool {
	return !o.Exists || o.Min != group.Min || o.Max != group.Max || (o.Pool != nil) != group.Pool ||
		group.HooksKnown && !slices.Equal(hooksOf(group), bare(o.Hooks))
}

// overlay merges newer data of the watch into an older direct read.
func overlay(o nodegroup.Observed, g groupcache.Group) nodegroup.Observed {
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

// fromWatch converts a group of the watch, which has no settings.
func fromWatch(g groupcache.Group) nodegroup.Observed {
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

func hooksOf(g groupcache.Group) []nodegroup.Hook {
	var out []nodegroup.Hook
	for _, h := range g.Hooks {
		out = append(out, nodegroup.Hook{Name: h.Name, Terminating: h.Terminating, Timeout: h.Timeout, Global: h.Global, Abandons: h.Abandons})
	}
	return sortHooks(out)
}

// bare are hooks without the fields that the watch does not have.
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
