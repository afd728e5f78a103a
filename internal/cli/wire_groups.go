package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/wiring"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/emit"
)

// What --groups means besides names.
const (
	groupsAll    = "all"
	groupsByNode = "nodegroups"
)

const groupsFlagHelp = `Auto Scaling groups whose lifecycle hooks are put and heard of: names with commas between; nodegroups, for those that NodeGroups of the cluster name; ` +
	`or all, which hears of every group in the account and puts no hook (default: what the rules that are there say)`

// longestGroupName is from the EC2 Auto Scaling API Reference, CreateAutoScalingGroup.
const longestGroupName = 255

func (f *wireFlags) addGroups(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.groups, "groups", "", groupsFlagHelp)
}

// checkGroups makes sure that the groups can be groups.
func (f *wireFlags) checkGroups() error {
	for _, name := range f.groupNames() {
		switch {
		case name == "":
			return usageErrorf("--groups has an empty name in it: write names with commas between, %s or %s", groupsByNode, groupsAll)
		case len(name) > longestGroupName, strings.Contains(name, ":"):
			return usageErrorf("%q is no name of an Auto Scaling group: at most %d characters, and no colon; an ARN is none", name, longestGroupName)
		}
	}
	return nil
}

// groupNames are the names that were given.
func (f *wireFlags) groupNames() []string {
	switch f.groups {
	case "", groupsAll, groupsByNode:
		return nil
	}
	var names []string
	for name := range strings.SplitSeq(f.groups, ",") {
		names = append(names, strings.TrimSpace(name))
	}
	return names
}

// groupsMeant are the groups that the flag means, with the hooks that are wanted of
// them; none where it means all, or says nothing.
func (s *session) groupsMeant(ctx context.Context, f wireFlags) ([]nodegroup.Wanted, error) {
	var objects []v1alpha1.NodeGroup
	for _, name := range f.groupNames() {
		objects = append(objects, v1alpha1.NodeGroup{Spec: v1alpha1.NodeGroupSpec{AutoScalingGroup: name}})
	}
	if f.groups == groupsByNode {
		c, err := s.connect(ctx)
		if err != nil {
			return nil, err
		}
		var found v1alpha1.NodeGroupList
		if err := c.list(ctx, "NodeGroups", &found); err != nil {
			return nil, err
		}
		if len(found.Items) == 0 {
			return nil, errors.New("the cluster has no NodeGroup: name the groups (--groups NAME,NAME), or adopt one (lifeboat nodegroup adopt)")
		}
		objects = found.Items
	}
	var all []nodegroup.Wanted
	for i := range objects {
		w := nodegroup.Want(&objects[i], f.cluster)
		if w.Management == v1alpha1.ManageNothing {
			w.Management = v1alpha1.ManageHooks // that is what the command is asked for
		}
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b nodegroup.Wanted) int { return strings.Compare(a.Group, b.Group) })
	return slices.CompactFunc(all, func(a, b nodegroup.Wanted) bool { return a.Group == b.Group }), nil
}

// limitTo limits the wiring to groups.
func limitTo(w wiring.Wiring, groups []nodegroup.Wanted) (wiring.Wiring, error) {
	var names []string
	for _, g := range groups {
		names = append(names, g.Group)
	}
	limited, err := w.ForGroups(names)
	var many *wiring.TooManyGroupsError
	if errors.As(err, &many) {
		return wiring.Wiring{}, fmt.Errorf("%w: use --groups %s for the rules", err, groupsAll)
	}
	return limited, err
}

// asWritten limits the wiring to the groups that the rules which are there name,
// where the flag says nothing.
func asWritten(w wiring.Wiring, f wireFlags, o wiring.Observed) (wiring.Wiring, error) {
	names, limits := wiring.LimitedTo(o)
	if f.groups != "" || !limits {
		return w, nil
	}
	return w.ForGroups(names)
}

// emitted are groups as templates take them.
func emitted(groups []nodegroup.Wanted) []emit.Group {
	var all []emit.Group
	for _, g := range groups {
		out := emit.Group{Name: g.Group}
		for _, h := range []nodegroup.Hook{g.Launch, g.Terminate} {
			out.Hooks = append(out.Hooks, emit.Hook{Name: h.Name, Terminating: h.Terminating, Timeout: h.Timeout.Truncate(time.Second), Abandons: h.Abandons})
		}
		all = append(all, out)
	}
	return all
}
