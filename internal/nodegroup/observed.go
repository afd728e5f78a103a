package nodegroup

import (
	"slices"
	"strconv"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
)

// Observed is a group as it is.
type Observed struct {
	// Exists is false where AWS has no group of the name.
	Exists    bool
	Name, ARN string
	// Operator owns the group in place of its account, such as
	// eks.amazonaws.com; empty: none.
	Operator string
	// Deleting is true while AWS takes the group away.
	Deleting          bool
	Min, Max, Desired int32
	Suspended         []Suspension
	Tags              map[string]string
	// Propagated are the keys of the tags that new instances get.
	Propagated []string
	// Hooks are all its hooks; HooksKnown, whether they could be read.
	Hooks      []Hook
	HooksKnown bool
	// Pool is nil where it has none; PoolKnown, whether its settings were read.
	Pool      *Pool
	PoolKnown bool
	// Instances are its members, those of the warm pool as well.
	Instances []Instance
	// Settings are what it launches; nil: not read.
	Settings *Settings
	// At is when it was looked at.
	At time.Time
}

// Settings are what a group launches, and how.
type Settings struct {
	Template *v1alpha1.LaunchTemplate
	// Current is the number that the template's version stands for, where it is
	// known.
	Current string
	Mixed   *v1alpha1.MixedInstances
	// Unsaid is what its mixed instances policy has that a NodeGroup cannot say.
	Unsaid            []string
	Subnets           []string
	CapacityRebalance bool
	Retain            bool
}

// Suspension is a process of a group that does not run. Reason is AWS's, where
// it was read.
type Suspension struct{ Process, Reason string }

// Instance is a member of a group.
type Instance struct {
	ID string
	// State is the lifecycle state as Auto Scaling writes it; At what it means.
	State string
	At    lifecycle.Position
	// TemplateVersion is the number of what it was launched from.
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

// Count counts the instances by where they are.
func (o Observed) Count() v1alpha1.InstanceCounts {
	var n v1alpha1.InstanceCounts
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

// Held are the instances that a hook holds.
func (o Observed) Held() []Instance {
	return o.instances(func(i Instance) bool { return i.At.Held() })
}

// instances returns those that a test passes.
func (o Observed) instances(is func(Instance) bool) []Instance {
	var out []Instance
	for _, i := range o.Instances {
		if is(i) {
			out = append(out, i)
		}
	}
	return out
}

// in returns the instances in some phases.
func (o Observed) in(phases ...lifecycle.Phase) []Instance {
	return o.instances(func(i Instance) bool { return slices.Contains(phases, i.At.Phase) })
}

// suspended tells whether a process does not run, and why.
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

// owner is who looks after the group in place of its account; empty: nobody.
// EKS's own groups count from their tag on, also where AWS would let them be
// changed: EKS undoes it, or its next update fails.
func (o Observed) owner() string {
	switch {
	case o.Operator != "":
		return o.Operator
	case o.Tags[tagEKS] != "":
		return "EKS"
	}
	return ""
}

// outdated are the instances of the pool that were launched from another version
// of the template than the group launches from now. Where that version is not
// known it is the youngest that any member has.
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

// Unhooked are the instances that no launch hook holds, or held, on their way into
// the pool or into service: while there is none, all that are on their way or
// warm; once there is one, those of before that are still there, until it holds
// them or they serve. Nothing waited for their set-up to end. In groups of others,
// such as EKS, that is theirs to see to.
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

// mostUnhooked is how many the status of a NodeGroup holds.
const mostUnhooked = 50

// launchHook is the launch hook that Lifeboat answers, if it is there.
func (o Observed) launchHook(w Wanted) (Hook, bool) { return o.own(w.Launch) }

// own is a hook of Lifeboat's, if it is there and for what it is wanted for.
func (o Observed) own(wanted Hook) (Hook, bool) {
	h, ok := o.Hook(wanted.Name)
	return h, ok && h.Terminating == wanted.Terminating
}
