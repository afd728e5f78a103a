// Package membership reads what is known about an interrupted instance in its Auto Scaling
// group: its lifecycle state, the group's hooks, and the settings of its NodeGroup. It reads
// caches only.
package membership

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/groupcache"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// Source knows the Auto Scaling groups of the cluster; groupcache.Watcher is one. It answers
// from its cache.
type Source interface {
	// Member returns an instance of a group, and when that was read.
	Member(instanceID string) (m groupcache.Member, ok bool, at time.Time)
	// Group returns a group from the cache.
	Group(name string) (groupcache.Group, bool)
	// RequestRefresh has a group read soon.
	RequestRefresh(group string)
}

// Reader reads memberships.
type Reader struct {
	Client client.Reader
	Groups Source
	// Hooks are patterns of the names of lifecycle hooks to complete, in addition to those
	// that NodeGroups name.
	Hooks []string
}

// Membership is what is known about an instance in its group.
type Membership struct {
	Seen lifecycle.Seen
	At   lifecycle.Position
	// retain is whether its NodeGroup retains instances that were not drained, and named is the
	// terminate hook that the NodeGroup names.
	retain   bool
	named    string
	patterns []string
}

// Of returns the membership of the instance of an Interruption. It is empty if no group is known.
func (r Reader) Of(ctx context.Context, in *v1beta1.Interruption) (Membership, error) {
	member, isMember, _ := r.Groups.Member(in.Spec.InstanceID)
	name := r.Group(in)
	group, known := r.Groups.Group(name)
	if name == "" || !known {
		return Membership{}, nil
	}
	m := Membership{Seen: lifecycle.Seen{Time: group.At, Group: name, HooksKnown: group.HooksKnown}, patterns: r.Hooks}
	if isMember {
		m.Seen.State = member.State
	}
	m.At = lifecycle.Read(m.Seen.State)
	if m.At.Phase == lifecycle.Serving && in.Status.LifecycleHooks == nil && !isTakenAway(in) {
		return m, nil // Lifeboat does not complete its hooks
	}
	if err := m.readNodeGroup(ctx, r.Client); err != nil {
		return Membership{}, err
	}
	own, others := lifecycle.Split(lifecycle.Owned(group.Hooks, []string{m.named}, m.patterns), true)
	m.Seen.Hooks = append(own, others...)
	return m, nil
}

// Group is the name of the group of the instance; empty: none is known.
func (r Reader) Group(in *v1beta1.Interruption) string {
	member, _, _ := r.Groups.Member(in.Spec.InstanceID)
	return cmp.Or(member.Group, groupOf(in))
}

// groupOf is the group that an Interruption names; empty: none.
func groupOf(in *v1beta1.Interruption) string {
	switch s := &in.Status; {
	case s.LifecycleHooks != nil && s.LifecycleHooks.Group != "":
		return s.LifecycleHooks.Group
	case record.Drain(s).Replacement != nil && record.Drain(s).Replacement.Group != "":
		return record.Drain(s).Replacement.Group
	}
	for _, n := range slices.Backward(in.Spec.Notices) {
		if n.LifecycleHook != nil && n.LifecycleHook.Group != "" {
			return n.LifecycleHook.Group
		}
	}
	return ""
}

// isTakenAway reports whether a notice says that the group terminates the instance.
func isTakenAway(in *v1beta1.Interruption) bool {
	return slices.ContainsFunc(in.Spec.Notices, func(n v1beta1.Notice) bool { return n.Kind == notice.KindAutoScalingTermination })
}

// readNodeGroup reads the NodeGroup's settings for terminations.
func (m *Membership) readNodeGroup(ctx context.Context, reader client.Reader) error {
	var list v1beta1.NodeGroupList
	if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing NodeGroups: %w", err)
	}
	for i := range list.Items {
		ng := &list.Items[i]
		if cmp.Or(ng.Spec.AutoScalingGroup, ng.Name) != m.Seen.Group {
			continue
		}
		m.named = v1beta1.TerminateHook
		if h := ng.Spec.Hooks.Terminate; h != nil {
			m.named = cmp.Or(h.Name, m.named)
		}
		m.retain = ng.Spec.RetainUndrained != nil && *ng.Spec.RetainUndrained
	}
	return nil
}

func (m *Membership) owns(hook string) bool {
	return hook != "" && lifecycle.IsOwn(hook, []string{m.named}, m.patterns)
}

// Termination returns the facts that decide about the lifecycle hooks, with the decision and the
// progress in a status of the Interruption.
func (m *Membership) Termination(in *v1beta1.Interruption, s *v1beta1.InterruptionStatus, now time.Time) lifecycle.TerminationFacts {
	f := lifecycle.TerminationFacts{
		Now: now, InstanceID: in.Spec.InstanceID, Notices: notice.Unanswered(in.Spec.Notices, notice.Handled(s)),
		Was: s.LifecycleHooks, Seen: m.Seen, Retain: m.retain, Owns: m.owns, Deadline: s.Deadline,
	}
	if s.Decision != nil {
		f.Action = s.Decision.Action
	}
	if due := record.Drain(s).LifecycleHooksDueTime; due != nil {
		f.Drained, f.Due = true, due.Time
	}
	return f
}
