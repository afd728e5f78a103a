package nodegroup

import (
	"slices"
	"strconv"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
)

// Observed is the current state of a group.
type Observed struct {
	// Exists is false if AWS has no group of the name.
	Exists    bool
	Name, ARN string
	// Operator manages the group on behalf of its account, such as
	// eks.amazonaws.com; empty: none.
	Operator string
	// Deleting is true while AWS deletes the group.
	Deleting          bool
	Min, Max, Desired int32
	Suspended         []Suspension
	Tags              map[string]string
	// Propagated are the keys of the tags that new instances get.
	Propagated []string
	// Hooks are all its hooks; HooksKnown is true if they could be read.
	Hooks      []Hook
	HooksKnown bool
	// Pool is nil if it has none; PoolKnown is true if its settings were read.
	Pool      *Pool
	PoolKnown bool
	// Instances are its members, including those of the warm pool.
	Instances []Instance
	// Settings are its launch settings; nil: not read.
	Settings *Settings
	// At is when it was read.
	At time.Time
}

// Settings are the launch settings of a group.
type Settings struct {
	Template *v1beta1.LaunchTemplate
	// Current is the number of the template's version, if known.
	Current string
	Mixed   *v1beta1.MixedInstances
	// Inexpressible are the parts of its mixed instances policy that a
	// NodeGroup cannot express.
	Inexpressible     []string
	Subnets           []string
	CapacityRebalance bool
	Retain            bool
}

// Suspension is a suspended process of a group. Reason is AWS's text, if it was
// read.
type Suspension struct{ Process, Reason string }

// Instance is a member of a group.
type Instance struct {
	ID string
	// State is the lifecycle state as Auto Scaling reports it; At is its
	// meaning.
	State string
	At    lifecycle.Position
	// TemplateVersion is the number of the template version that it was
	// launched from.
	TemplateVersion string
}

// Hook returns a hook by its name.
func (o Observed) Hook(name string) (Hook, bool) {
	i := slices.IndexFunc(o.Hooks, func(h Hook) bool { return h.Name == name })
	if i < 0 {
		return Hook{}, false
	}
	return o.Hooks[i], true
}

// Count counts the instances by phase.
func (o Observed) Count() v1beta1.InstanceCounts {
	var n v1beta1.InstanceCounts
	for _, i := range o.Instances {
		switch i.At.Phase {
		case lifecycle.Serving:
			n.InService++
		case lifecycle.Joining:
			n.Joining++
		case lifecycle.Warming:
			n.Warming++
		case lifecycle.Warm:
			n.Warm++
		case lifecycle.Leaving, lifecycle.LeavingPool:
			n.Leaving++
		case lifecycle.Retained:
			n.Retained++
		case lifecycle.Gone:
		default:
			n.Other++
		}
	}
	return n
}

// Held returns the instances that a hook holds.
func (o Observed) Held() []Instance {
	return o.instances(func(i Instance) bool { return i.At.Held() })
}

// instances returns the instances that satisfy a predicate.
func (o Observed) instances(is func(Instance) bool) []Instance {
	var out []Instance
	for _, i := range o.Instances {
		if is(i) {
			out = append(out, i)
		}
	}
	return out
}

// in returns the instances in the given phases.
func (o Observed) in(phases ...lifecycle.Phase) []Instance {
	return o.instances(func(i Instance) bool { return slices.Contains(phases, i.At.Phase) })
}

// suspended reports whether a process is suspended, with AWS's reason.
func (o Observed) suspended(process string) (Suspension, bool) {
	i := slices.IndexFunc(o.Suspended, func(s Suspension) bool { return s.Process == process })
	if i < 0 {
		return Suspension{}, false
	}
	return o.Suspended[i], true
}

// tagEKS is on the groups of EKS managed node groups (Amazon EKS User Guide,
// "Simplify node lifecycle with managed node groups").
const tagEKS = "eks:nodegroup-name"

// owner is the service that manages the group on behalf of its account; empty:
// none. The EKS tag alone counts, even if AWS allows changes: EKS reverts them,
// or its next update fails.
func (o Observed) owner() string {
	switch {
	case o.Operator != "":
		return o.Operator
	case o.Tags[tagEKS] != "":
		return "EKS"
	}
	return ""
}

// outdated returns the warm instances of another template version than the
// current one. If that is unknown, it is the highest version of any member.
func (o Observed) outdated() (old []Instance, current string) {
	if o.Settings != nil {
		current = o.Settings.Current
	}
	if current == "" {
		current = o.youngest()
	}
	if current == "" {
		return nil, ""
	}
	old = o.instances(func(i Instance) bool {
		return (i.At.Phase == lifecycle.Warm || i.At.Phase == lifecycle.Warming) && i.TemplateVersion != "" && i.TemplateVersion != current
	})
	return old, current
}

func (o Observed) youngest() string {
	most := 0
	for _, i := range o.Instances {
		if n, err := strconv.Atoi(i.TemplateVersion); err == nil {
			most = max(most, n)
		}
	}
	if most == 0 {
		return ""
	}
	return strconv.Itoa(most)
}

// Unhooked returns the instances that no launch hook held on their way into the
// pool or into service. AWS thus did not wait for their set-up. Without a
// launch hook these are all launching and warm ones. With one they are those of
// before, until the hook holds them or they are in service. Groups with another
// owner return none.
func Unhooked(before []string, o Observed) []string {
	switch {
	case !o.Exists, !o.HooksKnown:
		return before
	case o.owner() != "":
		return nil
	}
	there := slices.ContainsFunc(o.Hooks, func(h Hook) bool { return !h.Terminating })
	var out []string
	for _, i := range o.in(lifecycle.Joining, lifecycle.Warming, lifecycle.Warm) {
		if i.At.Held() || there && !slices.Contains(before, i.ID) {
			continue
		}
		out = append(out, i.ID)
	}
	slices.Sort(out)
	return out[:min(len(out), mostUnhooked)]
}

// mostUnhooked is the limit of the list in a NodeGroup's status.
const mostUnhooked = 50

// launchHook returns the launch hook that Lifeboat answers, if it exists.
func (o Observed) launchHook(w Wanted) (Hook, bool) { return o.own(w.Launch) }

// own returns a hook of Lifeboat, if it exists with the expected transition.
func (o Observed) own(wanted Hook) (Hook, bool) {
	h, ok := o.Hook(wanted.Name)
	return h, ok && h.Terminating == wanted.Terminating
}
