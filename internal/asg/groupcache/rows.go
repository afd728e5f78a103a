package groupcache

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	cloudaws "github.com/lifeboat-dev/lifeboat/internal/cloud/aws"
)

// hooksFor is how long it stands what hooks a group has.
const hooksFor = 10 * time.Minute

// hooksRead are a group's hooks, when they were read, the last attempt, and its
// error.
type hooksRead struct {
	hooks     []Hook
	at, tried time.Time
	err       error
}

// groupOf converts a row, without warm pool and hooks.
func groupOf(row *types.AutoScalingGroup, now time.Time) *Group {
	g := &Group{
		Name: aws.ToString(row.AutoScalingGroupName), ARN: aws.ToString(row.AutoScalingGroupARN),
		Min: aws.ToInt32(row.MinSize), Max: aws.ToInt32(row.MaxSize), Desired: aws.ToInt32(row.DesiredCapacity),
		At: now,
	}
	if row.Operator != nil {
		g.Operator = aws.ToString(row.Operator.Principal)
	}
	for _, p := range row.SuspendedProcesses {
		g.Suspended = append(g.Suspended, aws.ToString(p.ProcessName))
	}
	slices.Sort(g.Suspended)
	for _, tag := range row.Tags {
		if g.Tags == nil {
			g.Tags = map[string]string{}
		}
		g.Tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	if pool := row.WarmPoolConfiguration; pool != nil {
		g.Pool = true
		g.Reuse = pool.InstanceReusePolicy != nil && aws.ToBool(pool.InstanceReusePolicy.ReuseOnScaleIn)
	}
	g.Members = membersOf(g.Name, row.Instances)
	return g
}

func membersOf(group string, rows []types.Instance) []Member {
	members := make([]Member, 0, len(rows))
	for i := range rows {
		row := &rows[i]
		m := Member{
			InstanceID: aws.ToString(row.InstanceId), Group: group,
			State: string(row.LifecycleState), At: lifecycle.Read(string(row.LifecycleState)),
			Healthy: aws.ToString(row.HealthStatus) == "Healthy", Protected: aws.ToBool(row.ProtectedFromScaleIn),
		}
		if row.LaunchTemplate != nil {
			m.LaunchTemplateVersion = aws.ToString(row.LaunchTemplate.Version)
		}
		members = append(members, m)
	}
	slices.SortFunc(members, byID)
	return members
}

func byID(a, b Member) int { return cmp.Compare(a.InstanceID, b.InstanceID) }

// keepWarm copies the known warm instances of a group.
func (w *Watcher) keepWarm(g *Group) {
	was, ok := w.Group(g.Name)
	if !ok {
		return
	}
	var warm []Member
	for _, m := range was.Members {
		if p := m.At.Phase; p == lifecycle.Warm || p == lifecycle.Warming || p == lifecycle.LeavingPool {
			warm = append(warm, m)
		}
	}
	w.addWarm(g, warm)
}

// addWarm merges the instances of the warm pool into a group. The two lists are
// read one after the other, so an instance may move between them in the
// meantime. If both contain it, the changed entry wins. If neither does, it
// counts as gone only after a second read.
func (w *Watcher) addWarm(g *Group, warm []Member) {
	was, _ := w.Group(g.Name)
	before := make(map[string]Member, len(was.Members))
	for _, m := range was.Members {
		before[m.InstanceID] = m
	}
	listed := make(map[string]int, len(g.Members))
	for i, m := range g.Members {
		listed[m.InstanceID] = i
	}
	for _, m := range warm {
		i, both := listed[m.InstanceID]
		switch {
		case !both:
			listed[m.InstanceID] = len(g.Members)
			g.Members = append(g.Members, m)
		case g.Members[i].State == before[m.InstanceID].State:
			g.Members[i] = m
		}
	}
	for id, m := range before {
		_, there := listed[id]
		ending := m.At.Phase == lifecycle.Leaving || m.At.Phase == lifecycle.LeavingPool || m.At.Phase == lifecycle.Gone
		if there || ending || w.missing[id] {
			delete(w.missing, id)
			continue
		}
		w.missing[id] = true
		g.Members = append(g.Members, m)
		w.RequestRefresh(g.Name)
	}
	slices.SortFunc(g.Members, byID)
}

// readHooks adds the hooks of a group. They are read only if needed: a
// NodeGroup reports them, or a hook holds an instance.
func (w *Watcher) readHooks(ctx context.Context, g *Group, fresh bool) error {
	w.mu.Lock()
	known := w.hooks[g.Name]
	w.mu.Unlock()
	now := w.o.Clock()
	needed := fresh || w.named[g.Name] || slices.ContainsFunc(g.Members, func(m Member) bool { return m.At.Held() })
	stale := known.at.IsZero() || now.Sub(known.at) >= hooksFor || isHeldByNone(g.Members, known.hooks)
	if needed && (fresh || stale && now.Sub(known.tried) >= w.o.Interval/2) {
		known.tried = now
		var rows []types.LifecycleHook
		if rows, known.err = w.hooksOf(ctx, g.Name); known.err == nil {
			known.hooks, known.at = cloudaws.Hooks(rows), now
		}
		w.mu.Lock()
		w.hooks[g.Name] = known
		w.mu.Unlock()
	}
	g.Hooks, g.HooksKnown = known.hooks, !known.at.IsZero()
	return known.err
}

// isHeldByNone reports whether an instance waits in a transition for which no
// hook is known: the hooks have changed. For an instance on its way into the
// warm pool the transition is unknown.
func isHeldByNone(members []Member, hooks []Hook) bool {
	var launching, terminating bool
	for _, h := range hooks {
		launching, terminating = launching || !h.Terminating, terminating || h.Terminating
	}
	return slices.ContainsFunc(members, func(m Member) bool {
		switch {
		case !m.At.Held():
			return false
		case m.At.Phase == lifecycle.Joining:
			return !launching
		case m.At.Phase == lifecycle.Leaving, m.At.Phase == lifecycle.LeavingPool:
			return !terminating
		}
		return !launching && !terminating
	})
}

// difference returns the instances whose state differs between what a group was
// and is, or that came or went, and whether anything else does. Nil is a group
// that is not there.
func difference(was, is *Group) (ids []string, differs bool) {
	var a, b Group
	if was != nil {
		a = *was
	}
	if is != nil {
		b = *is
	}
	states := map[string]string{}
	for _, m := range a.Members {
		states[m.InstanceID] = m.State
	}
	for _, m := range b.Members {
		if state, ok := states[m.InstanceID]; !ok || state != m.State {
			ids = append(ids, m.InstanceID)
		}
		delete(states, m.InstanceID)
	}
	for id := range states {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	a.At, b.At = time.Time{}, time.Time{}
	return ids, len(ids) > 0 || (was == nil) != (is == nil) || !reflect.DeepEqual(a, b)
}
