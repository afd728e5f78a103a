package groupcache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
)

// round reads all groups and returns the reason of a failure.
func (w *Watcher) round(ctx context.Context) poll.Reason {
	w.looking.Lock()
	bounded, cancel := context.WithTimeout(ctx, roundTime)
	err := w.all(bounded)
	cancel()
	w.mu.Lock()
	if err == nil && ctx.Err() == nil {
		w.full = w.o.Clock()
	}
	err = errors.Join(err, w.takePartial())
	w.err = err
	w.mu.Unlock()
	w.looking.Unlock()
	if ctx.Err() != nil {
		return ""
	}
	w.notifyRefreshed()
	return w.explain(ctx, err)
}

// all reads the named and the known groups, then the groups that it discovers.
func (w *Watcher) all(ctx context.Context) error {
	nodes, err := w.o.Nodes(ctx)
	if err != nil {
		return poll.OfCluster(err)
	}
	ids := InstancesOf(nodes)
	w.membership.forget(ids, w.o.Clock())
	names, err := w.names(ctx)
	if err != nil {
		return err
	}
	// Known groups come first: their lists contain their new instances.
	if err := w.look(ctx, names, nil); err != nil {
		return err
	}
	w.mu.Lock()
	found := make(map[string]string, len(w.members))
	for id := range w.members {
		found[id] = w.members[id].Group
	}
	w.mu.Unlock()
	w.membership.know(found, ids, w.o.Clock())
	learnErr := w.membership.learn(ctx, w.groupsOf, ids, youngOf(nodes, w.o.Clock()), w.o.Clock())
	learned := slices.DeleteFunc(w.membership.names(), func(name string) bool { return contains(names, name) })
	return errors.Join(w.look(ctx, learned, nil), learnErr)
}

// names returns the groups to read, sorted.
func (w *Watcher) names(ctx context.Context) ([]string, error) {
	names := w.membership.names()
	if w.o.Names == nil {
		return names, nil
	}
	named, err := w.o.Names(ctx)
	if err != nil {
		return nil, poll.OfCluster(fmt.Errorf("listing the groups that NodeGroups name: %w", err))
	}
	w.named = make(map[string]bool, len(named))
	for _, name := range named {
		if w.named[name] = name != ""; name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// refresh reads the requested groups that concern the cluster. The value says
// whether to read their hooks as well.
func (w *Watcher) refresh(ctx context.Context, hints map[string]bool) {
	if _, all := hints[everything]; all {
		w.round(ctx)
		delete(hints, everything)
		maps.DeleteFunc(hints, func(_ string, hooks bool) bool { return !hooks })
	}
	if len(hints) == 0 {
		return
	}
	w.looking.Lock()
	bounded, cancel := context.WithTimeout(ctx, roundTime)
	names, err := w.names(bounded)
	if err == nil {
		concerned := slices.DeleteFunc(slices.Sorted(maps.Keys(hints)), func(name string) bool { return !contains(names, name) })
		err = errors.Join(w.look(bounded, concerned, func(group string) bool { return hints[group] }), w.takePartial())
	}
	cancel()
	w.looking.Unlock()
	if ctx.Err() == nil {
		w.notifyRefreshed()
		w.explain(ctx, err)
	}
}

// Look reads one group now, with its hooks, and returns it. It returns false if
// there is no such group.
func (w *Watcher) Look(ctx context.Context, group string) (Group, bool, error) {
	w.looking.Lock()
	err := errors.Join(w.look(ctx, []string{group}, func(string) bool { return true }), w.takePartial())
	w.looking.Unlock()
	if err != nil {
		return Group{}, false, err
	}
	w.notifyRefreshed()
	g, ok := w.Group(group)
	return g, ok, nil
}

// look reads groups. fresh says for which of them to read the hooks.
func (w *Watcher) look(ctx context.Context, names []string, fresh func(group string) bool) error {
	for some := range slices.Chunk(names, groupsAtOnce) {
		asked := w.o.Clock()
		rows, err := w.rows(ctx, some)
		if err != nil {
			return err
		}
		groups := map[string]*Group{}
		for i := range rows {
			g := groupOf(&rows[i], asked)
			w.complete(ctx, g, fresh != nil && fresh(g.Name))
			groups[g.Name] = g
		}
		w.commit(some, groups)
	}
	return nil
}

// complete adds what the group's own list omits: its warm pool and its hooks.
// If a read fails, the previous data stay and the error is collected.
func (w *Watcher) complete(ctx context.Context, g *Group, fresh bool) {
	var failed error
	if g.Pool {
		var warm []types.Instance
		if warm, failed = w.pool(ctx, g.Name); failed != nil {
			w.keepWarm(g)
		} else {
			w.addWarm(g, membersOf(g.Name, warm))
		}
	}
	w.partial = errors.Join(w.partial, failed, w.readHooks(ctx, g, fresh))
}

// takePartial returns and clears the errors of partly read groups.
func (w *Watcher) takePartial() error {
	aside := w.partial
	w.partial = nil
	return aside
}

// commit stores the groups that were read and reports the changes.
func (w *Watcher) commit(asked []string, groups map[string]*Group) {
	w.mu.Lock()
	news := map[string][]string{}
	for _, name := range asked {
		was, is := w.groups[name], groups[name]
		ids, differs := difference(was, is)
		if differs {
			news[name] = ids
		}
		if was != nil {
			for _, m := range was.Members {
				if w.members[m.InstanceID].Group == name {
					delete(w.members, m.InstanceID)
				}
			}
		}
		if is == nil {
			delete(w.groups, name)
			delete(w.hooks, name)
			continue
		}
		w.groups[name] = is
		for _, m := range is.Members {
			w.members[m.InstanceID] = m
		}
	}
	listeners := slices.Clone(w.changed)
	w.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(news)) {
		for _, changed := range listeners {
			changed(name, news[name])
		}
	}
}

// notifyRefreshed calls the subscribers of SubscribeRefreshes.
func (w *Watcher) notifyRefreshed() {
	w.mu.Lock()
	listeners := slices.Clone(w.refreshSubs)
	w.mu.Unlock()
	for _, looked := range listeners {
		looked()
	}
}

// explain logs at most once a minute why groups could not be read, with advice.
func (w *Watcher) explain(ctx context.Context, err error) poll.Reason {
	if err == nil {
		return ""
	}
	reason, permission, advice := poll.Explain(err, PermitGroups)
	if held, ok := w.throttle.Allow(permission + " " + string(reason)); ok {
		log.FromContext(ctx).Info("cannot read Auto Scaling groups, retrying",
			"reason", reason, "error", err.Error(), "advice", advice, "alikeSince", held)
	}
	return reason
}
