package autoscaling

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// snapshot is the state of a group that its decisions use.
type snapshot struct {
	desired int
	// poolSize is the wanted number of warm instances; zero also without a pool.
	poolSize int
	reuse    bool
	// launch, terminate and replace tell whether those processes are running.
	launch, terminate, replace bool
	policies                   []string
	members                    []snapshotMember
}

type snapshotMember struct {
	Member
	launched       time.Time
	outdated       bool   // launched from a template that the group no longer uses
	unhealthyCause string // why it is unhealthy
}

// step is one change of one instance; a launch has no id yet.
type step struct {
	transition Transition
	id         string
	cause      string
}

// maxSteps bounds the instances that a group launches, and terminates, in one evaluation. The next
// evaluation follows after Timing.Evaluate, and other calls get the lock in between.
const maxSteps = 100

// steps returns what the group does now to reach its desired state.
func (v snapshot) steps() []step {
	var out []step
	out = append(out, v.replaceUnhealthy()...)
	out = append(out, v.scale(out)...)
	out = append(out, v.terminateReplaced(out)...)
	return append(out, v.adjustPool(out)...)
}

// taken reports whether a step concerns this instance already.
func taken(steps []step, id string) bool {
	return slices.ContainsFunc(steps, func(s step) bool { return s.id == id })
}

func count(steps []step, transitions ...Transition) int {
	n := 0
	for _, s := range steps {
		if slices.Contains(transitions, s.transition) {
			n++
		}
	}
	return n
}

// serves reports whether an instance counts towards the desired capacity: in service, or entering
// service.
func serves(m Member) bool {
	return m.ReplaceCause == "" && (m.State == InService || enteringService(m.State))
}

// enteringService reports whether an instance in this state is entering service.
func enteringService(st LifecycleState) bool { return strings.HasPrefix(string(st), string(Pending)) }

// ready reports whether a warm instance can be used.
func ready(st LifecycleState) bool {
	return st == WarmedStopped || st == WarmedRunning || st == WarmedHibernated
}

// replaceUnhealthy terminates unhealthy instances.
func (v snapshot) replaceUnhealthy() []step {
	var out []step
	for _, m := range v.members {
		switch {
		case !m.Unhealthy || !v.replace || !v.terminate:
		case m.State == InService:
			out = append(out, step{ScaleIn, m.InstanceID, m.unhealthyCause})
		case ready(m.State):
			out = append(out, step{PoolShrink, m.InstanceID, m.unhealthyCause})
		}
	}
	return out
}

// scale adjusts the number of serving instances to the desired capacity. Warm instances are used
// first (Amazon EC2 Auto Scaling User Guide, Decrease latency for applications with long boot times
// using warm pools).
func (v snapshot) scale(before []step) []step {
	have := 0
	for _, m := range v.members {
		if serves(m.Member) && !taken(before, m.InstanceID) {
			have++
		}
	}
	switch short := v.desired - have; {
	case short > 0 && v.launch:
		return v.grow(min(short, maxSteps), before)
	case short < 0 && v.terminate:
		return v.shrink(min(-short, maxSteps), before)
	default:
		return nil
	}
}

const (
	causeGrow   = "an instance was started in response to a difference between desired and actual capacity, increasing the capacity."
	causeShrink = "an instance was taken out of service in response to a difference between desired and actual capacity, shrinking the capacity."
	causeWarm   = "an instance was launched into the warm pool, whose size was below what is wanted."
	causeCool   = "an instance was taken out of the warm pool, whose size was above what is wanted."
)

func (v snapshot) grow(n int, before []step) []step {
	var out []step
	for _, m := range v.members {
		if len(out) < n && ready(m.State) && !m.Unhealthy && !taken(before, m.InstanceID) {
			out = append(out, step{OutOfPool, m.InstanceID, causeGrow})
		}
	}
	for len(out) < n {
		out = append(out, step{transition: ColdStart, cause: causeGrow})
	}
	return out
}

// shrink chooses the instances to terminate: those in service first, by the termination policy.
// Protected instances stay, even if the group then remains larger than desired.
func (v snapshot) shrink(n int, before []step) []step {
	var out []step
	for _, m := range v.victims(n, before) {
		transition := ScaleIn
		if v.reuse && m.State == InService && !m.Spot && v.warm()+count(out, ReturnToPool) < v.poolSize {
			transition = ReturnToPool
		}
		out = append(out, step{transition, m.InstanceID, causeShrink})
	}
	return out
}

// warm is how many instances the pool has and keeps.
func (v snapshot) warm() int {
	n := 0
	for _, m := range v.members {
		if m.State.warm() && !leaving(m.State) && !retained(m.State) {
			n++
		}
	}
	return n
}

// victims chooses up to n instances to terminate, simplified from the default termination policy.
// It takes the zone with the most instances; there an instance of an old template, then the oldest
// (Amazon EC2 Auto Scaling User Guide, Configure termination policies).
func (v snapshot) victims(n int, before []step) []snapshotMember {
	var in, on []snapshotMember
	zones := map[string]int{}
	for _, m := range v.members {
		if !serves(m.Member) || taken(before, m.InstanceID) {
			continue
		}
		zones[m.Zone]++
		switch {
		case m.Protected:
		case m.State == InService:
			in = append(in, m)
		default:
			on = append(on, m)
		}
	}
	var out []snapshotMember
	for _, candidates := range [][]snapshotMember{in, on} {
		for len(out) < n && len(candidates) > 0 {
			first := slices.MinFunc(candidates, func(a, b snapshotMember) int { return v.compare(a, b, zones) })
			zones[first.Zone]--
			out = append(out, first)
			candidates = slices.DeleteFunc(candidates, func(m snapshotMember) bool { return m.InstanceID == first.InstanceID })
		}
	}
	return out
}

// compare sorts first the instance to terminate first.
func (v snapshot) compare(a, b snapshotMember, zones map[string]int) int {
	byAge := a.launched.Compare(b.launched)
	if slices.Contains(v.policies, "NewestInstance") {
		byAge = -byAge
	}
	byTemplate := 0
	if a.outdated != b.outdated && !slices.Contains(v.policies, "NewestInstance") && !slices.Contains(v.policies, "OldestInstance") {
		byTemplate = 1
		if a.outdated {
			byTemplate = -1
		}
	}
	return cmp.Or(cmp.Compare(zones[b.Zone], zones[a.Zone]), byTemplate, byAge)
}

// terminateReplaced terminates instances whose replacements are in service.
func (v snapshot) terminateReplaced(before []step) []step {
	spare := -v.desired
	for _, m := range v.members {
		if m.State == InService && !m.Unhealthy && !taken(before, m.InstanceID) {
			spare++
		}
	}
	var out []step
	for _, m := range v.members {
		if len(out) < spare && v.terminate && m.ReplaceCause != "" && m.State == InService && !taken(before, m.InstanceID) {
			out = append(out, step{ScaleIn, m.InstanceID, m.ReplaceCause})
		}
	}
	return out
}

// adjustPool adjusts the warm pool to its size. Instances that are entering it count.
func (v snapshot) adjustPool(before []step) []step {
	short := v.poolSize - v.warm() - count(before, ReturnToPool) + count(before, OutOfPool, PoolShrink)
	var out []step
	if short > 0 && v.launch {
		for range min(short, maxSteps) {
			out = append(out, step{transition: IntoPool, cause: causeWarm})
		}
	}
	for _, m := range v.members {
		if len(out) < min(-short, maxSteps) && v.terminate && ready(m.State) && !taken(before, m.InstanceID) {
			out = append(out, step{PoolShrink, m.InstanceID, causeCool})
		}
	}
	return out
}
