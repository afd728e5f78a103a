package template

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
)

// separateHook is a hook that is a separate resource, so it is created after its
// group.
type separateHook struct {
	group, resource string
	hook            snapshot.Hook
}

// separatePool is a warm pool that is a separate resource. after are the resources on
// which it depends.
type separatePool struct {
	group string
	after []string
}

func (b *builder) addHook(h separateHook) {
	b.hooks = append(b.hooks, h)
	b.objects++
}

// attachHooks adds separate hooks and pools to their groups. A group that is not in
// the files counts as an existing group.
func (b *builder) attachHooks() {
	for _, p := range b.pools {
		if g := b.findGroup(p.group); g != nil {
			g.Pool = true
		}
	}
	for _, h := range b.hooks {
		g := b.findGroup(h.group)
		if g == nil {
			g = b.addGroup(snapshot.Group{Name: h.group, From: h.hook.From, HooksOpen: true})
		}
		h.hook.BeforePool = slices.ContainsFunc(b.pools, func(p separatePool) bool {
			return p.group == h.group && slices.Contains(p.after, h.resource)
		})
		// A hook with the same name in the group itself is created first.
		if !slices.ContainsFunc(g.Hooks, func(o snapshot.Hook) bool { return o.Name == h.hook.Name }) {
			g.Hooks = append(g.Hooks, h.hook)
		}
	}
}

func (b *builder) findGroup(name string) *snapshot.Group {
	i := slices.IndexFunc(b.out.Groups, func(g snapshot.Group) bool { return g.Name == name })
	if i < 0 {
		return nil
	}
	return &b.out.Groups[i]
}

func (b *builder) addGroup(g snapshot.Group) *snapshot.Group {
	b.out.Groups = append(b.out.Groups, g)
	b.objects++
	return &b.out.Groups[len(b.out.Groups)-1]
}

// autoScaling reads a resource that is a group, or belongs to one.
func (f *cfnTemplate) autoScaling(name string) {
	switch f.kind(name) {
	case "AWS::AutoScaling::AutoScalingGroup":
		f.group(name)
	case "AWS::AutoScaling::LifecycleHook":
		p := f.properties(name)
		f.addHook(separateHook{group: str(p["AutoScalingGroupName"]), resource: name, hook: f.hook(name, p)})
	case "AWS::AutoScaling::WarmPool":
		f.pools = append(f.pools, separatePool{group: str(f.properties(name)["AutoScalingGroupName"]), after: texts(object(f.resources[name])["DependsOn"])})
	}
}

const terminating = "EC2_INSTANCE_TERMINATING"

// groupName returns the name of a group. CloudFormation generates a name for groups
// without one; the resource's name stands for it.
func (f *cfnTemplate) groupName(name string, depth int) string {
	return cmp.Or(str(f.property(name, "AutoScalingGroupName", depth)), name)
}

func (f *cfnTemplate) group(name string) {
	p := f.properties(name)
	g := snapshot.Group{
		Name: f.groupName(name, 0), From: f.file + ", " + name,
		Starts:  starts(p["MinSize"], p["DesiredCapacity"]),
		Retains: str(object(object(p["InstanceLifecyclePolicy"])["RetentionTriggers"])["TerminateHookAbandon"]) == "retain",
	}
	for _, v := range items(p["LifecycleHookSpecificationList"]) {
		h := f.hook(name, object(v))
		h.First, h.BeforePool = true, true
		g.Hooks = append(g.Hooks, h)
	}
	f.addGroup(g)
}

// hook reads a hook, from a list in its group or from a separate resource.
func (f *cfnTemplate) hook(from string, p map[string]any) snapshot.Hook {
	return snapshot.Hook{
		Name: cmp.Or(str(p["LifecycleHookName"]), from), From: f.file + ", " + from,
		Terminating: strings.Contains(str(p["LifecycleTransition"]), terminating),
		Timeout:     seconds(p["HeartbeatTimeout"], snapshot.DefaultHookTimeout),
		Abandons:    str(p["DefaultResult"]) != "CONTINUE", Target: str(p["NotificationTargetARN"]),
	}
}

// group reads a Terraform group. A warm pool in it is created with it, and so before
// any hook that is a separate resource (Terraform AWS provider,
// aws_autoscaling_group).
func (m *module) group(address string) {
	written := m.resources[address]
	g := snapshot.Group{
		Name: m.named(address, "name"), From: m.from(address),
		Starts:    starts(m.attribute(address, "min_size"), m.attribute(address, "desired_capacity")),
		Pool:      len(items(m.attribute(address, "warm_pool"))) > 0,
		HooksOpen: first(written["dynamic"])["initial_lifecycle_hook"] != nil,
		Retains:   str(first(first(m.attribute(address, "instance_lifecycle_policy"))["retention_triggers"])["terminate_hook_abandon"]) == "retain",
	}
	for _, v := range items(m.attribute(address, "initial_lifecycle_hook")) {
		h := m.hook(address, str(object(v)["name"]), object(v))
		h.First, h.BeforePool = true, true
		g.Hooks = append(g.Hooks, h)
	}
	m.addGroup(g)
}

func (m *module) hook(address, name string, p map[string]any) snapshot.Hook {
	return snapshot.Hook{
		Name: name, From: m.from(address),
		Terminating: strings.Contains(str(p["lifecycle_transition"]), terminating),
		Timeout:     seconds(p["heartbeat_timeout"], snapshot.DefaultHookTimeout),
		Abandons:    str(p["default_result"]) != "CONTINUE", Target: str(p["notification_target_arn"]),
	}
}

// starts reports whether a group with these sizes launches instances immediately. An
// unknown size counts as 1.
func starts(sizes ...any) bool {
	return slices.ContainsFunc(sizes, func(v any) bool { return v != nil && number(v, 1) > 0 })
}

// texts returns the strings of a list, or of a single value.
func texts(v any) []string {
	var all []string
	for _, one := range items(v) {
		all = append(all, str(one))
	}
	return all
}
