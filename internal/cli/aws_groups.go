package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/emit"
)

// The special values of --groups.
const (
	groupsAll    = "all"
	groupsByNode = "nodegroups"
)

const groupsFlagHelp = `Auto Scaling groups that get lifecycle hooks and whose events the rules match: comma-separated names; nodegroups for the groups of the cluster's NodeGroups; ` +
	`or all, which matches every group in the account and creates no hooks (default: the groups in the existing rules, and their hooks)`

// maxGroupNameLength is from the EC2 Auto Scaling API Reference, CreateAutoScalingGroup.
const maxGroupNameLength = 255

func (f *awsFlags) addGroups(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.groups, "groups", "", groupsFlagHelp)
}

// checkGroups validates the names in --groups.
func (f *awsFlags) checkGroups() error {
	for _, name := range f.groupNames() {
		switch {
		case name == "":
			return usageErrorf("--groups contains an empty name: write comma-separated names, %s or %s", groupsByNode, groupsAll)
		case len(name) > maxGroupNameLength, strings.Contains(name, ":"):
			return usageErrorf("%q is not a valid name of an Auto Scaling group: write a name of at most %d characters without colons, not an ARN", name, maxGroupNameLength)
		}
	}
	return nil
}

// groupNames returns the names in --groups.
func (f *awsFlags) groupNames() []string {
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

// selectedGroups returns the groups that the flag selects, with their wanted
// hooks. It returns none for the value all, or without the flag.
func (s *session) selectedGroups(ctx context.Context, f awsFlags) ([]nodegroup.Wanted, error) {
	var objects []v1beta1.NodeGroup
	for _, name := range f.groupNames() {
		objects = append(objects, v1beta1.NodeGroup{Spec: v1beta1.NodeGroupSpec{AutoScalingGroup: name}})
	}
	if f.groups == groupsByNode {
		c, err := s.connect(ctx)
		if err != nil {
			return nil, err
		}
		var found v1beta1.NodeGroupList
		if err := c.list(ctx, "NodeGroups", &found); err != nil {
			return nil, err
		}
		if len(found.Items) == 0 {
			return nil, errors.New("the cluster has no NodeGroup: name the groups (--groups NAME,NAME), or adopt a group (lifeboat nodegroup adopt)")
		}
		objects = found.Items
	}
	var all []nodegroup.Wanted
	for i := range objects {
		w := nodegroup.Want(&objects[i], f.cluster)
		if w.Management == v1beta1.ManageNothing {
			w.Management = v1beta1.ManageHooks // the command requests hooks
		}
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b nodegroup.Wanted) int { return strings.Compare(a.Group, b.Group) })
	return slices.CompactFunc(all, func(a, b nodegroup.Wanted) bool { return a.Group == b.Group }), nil
}

// limitTo limits the rules to groups. If the names do not fit, the rules match all
// groups, and note says so.
func limitTo(w awssetup.Wiring, groups []nodegroup.Wanted) (limited awssetup.Wiring, note string, err error) {
	var names []string
	for _, g := range groups {
		names = append(names, g.Group)
	}
	limited, err = w.ForGroups(names)
	var many *awssetup.TooManyGroupsError
	if errors.As(err, &many) {
		limited, err = w.ForGroups(nil)
		note = fmt.Sprintf("The rules match all Auto Scaling groups of the account: the names of %d groups do not fit into a rule (%d characters). Without --groups, plan does not check the hooks of these groups.", many.Groups, many.Length)
	}
	return limited, note, err
}

// groupsOfRules returns the groups to which the existing rules are limited, with their
// wanted hooks. A NodeGroup of the cluster decides about the hooks of its group, if the
// cluster is reachable.
func (s *session) groupsOfRules(ctx context.Context, f awsFlags, o awssetup.Observed) []nodegroup.Wanted {
	names, limits := awssetup.LimitedTo(o)
	if !limits {
		return nil
	}
	var objects v1beta1.NodeGroupList
	if c, err := s.connect(ctx); err == nil {
		_ = c.list(ctx, "NodeGroups", &objects) // optional: the defaults remain
	}
	var all []nodegroup.Wanted
	for _, name := range names {
		object := v1beta1.NodeGroup{Spec: v1beta1.NodeGroupSpec{AutoScalingGroup: name}}
		if i := slices.IndexFunc(objects.Items, func(g v1beta1.NodeGroup) bool { return nodegroup.Name(&g) == name }); i >= 0 {
			object = objects.Items[i]
		}
		w := nodegroup.Want(&object, f.cluster)
		w.Management = v1beta1.ManageHooks
		all = append(all, w)
	}
	return all
}

// templateGroups converts groups for templates.
func templateGroups(groups []nodegroup.Wanted) []emit.Group {
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
