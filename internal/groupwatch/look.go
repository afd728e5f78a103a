package groupwatch

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

// round looks at all groups, and returns why that failed.
func (w *Watcher) round(ctx context.Context) poll.Reason {
	w.looking.Lock()
	bounded, cancel := context.WithTimeout(ctx, roundTime)
	err := w.all(bounded)
	cancel()
	w.mu.Lock()
	if err == nil && ctx.Err() == nil {
		w.full = w.o.Clock()
	}
	err = errors.Join(err, w.takeAside())
	w.err = err
	w.mu.Unlock()
	w.looking.Unlock()
	if ctx.Err() != nil {
		return ""
	}
	w.told()
	return w.explain(ctx, err)
}

// all looks at the groups that are named and those that are known, and then at
// those that it learns of.
func (w *Watcher) all(ctx context.Context) error {
	nodes, err := w.o.Nodes(ctx)
	if err != nil {
		return poll.OfCluster(err)
	}
	ids := InstancesOf(nodes)
	w.lessons.forget(ids, w.o.Clock())
	names, err := w.names(ctx)
	if err != nil {
		return err
	}
	// Groups that are known come first: their lists tell of their new instances.
	if err := w.look(ctx, names, nil); err != nil {
		return err
	}
	w.mu.Lock()
	found := make(map[string]string, len(w.members))
	for id := range w.members {
		found[id] = w.members[id].Group
	}
	w.mu.Unlock()
	w.lessons.know(found, ids, w.o.Clock())
	learnErr := w.lessons.learn(ctx, w.groupsOf, ids, w.o.Clock())
	learned := slices.DeleteFunc(w.lessons.names(), func(name string) bool { return contains(names, name) })
	return errors.Join(w.look(ctx, learned, nil), learnErr)
}

// names returns the groups to look at, sorted.
func (w *Watcher) names(ctx context.Context) ([]string, error) {
	names := w.lessons.names()
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

// follow looks at the groups that were hinted at, and at none that does not
// concern the cluster. The value tells whether to read their hooks.
func (w *Watcher) follow(ctx context.Context, hints map[string]bool) {
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
		err = errors.Join(w.look(bounded, concerned, func(group string) bool { return hints[group] }), w.takeAside())
	}
	cancel()
	w.looking.Unlock()
	if ctx.Err() == nil {
		w.told()
		w.explain(ctx, err)
	}
}

// Look looks at one group now, with its hooks, and returns it. It reports false
// where there is no such group.
func (w *Watcher) Look(ctx context.Context, group string) (Group, bool, error) {
	w.looking.Lock()
	err := errors.Join(w.look(ctx, []string{group}, func(string) bool { return true }), w.takeAside())
	w.looking.Unlock()
	if err != nil {
		return Group{}, false, err
	}
	w.told()
	g, ok := w.Group(group)
	return g, ok, nil
}

// look reads groups. Those whose hooks may have changed are read with them.
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

// complete adds to a group what its own list does not tell: its warm pool, and its
// hooks. What cannot be read stays as it was, and is put aside to be said.
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
	w.aside = errors.Join(w.aside, failed, w.readHooks(ctx, g, fresh))
}

// takeAside returns what could not be read of groups that could.
func (w *Watcher) takeAside() error {
	aside := w.aside
	w.aside = nil
	return aside
}

// commit makes what was read what is known, and says what has changed.
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

// told tells those who want to know of each look.
func (w *Watcher) told() {
	w.mu.Lock()
	listeners := slices.Clone(w.rounds)
	w.mu.Unlock()
	for _, looked := range listeners {
		looked()
	}
}

// explain says once a minute why groups could not be read, and what to do.
func (w *Watcher) explain(ctx context.Context, err error) poll.Reason {
	if err == nil {
		return ""
	}
	reason, permission, advice := poll.Explain(err, PermitGroups)
	if held, ok := w.throttle.Allow(permission + " " + string(reason)); ok {
		log.FromContext(ctx).Info("could not read Auto Scaling groups, goes on trying",
			"reason", reason, "error", err.Error(), "advice", advice, "alikeSince", held)
	}
	return reason
}
