package autoscaling

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// standing is what a group decides on.
type standing struct {
	desired int
	// poolSize is how many warm instances there are to be; zero also without a pool.
	poolSize int
	reuse    bool
	// launch, terminate and replace tell whether those processes are running.
	launch, terminate, replace bool
	policies                   []string
	members                    []standingMember
}

type standingMember struct {
	Member
	launched time.Time
	outdated bool   // launched from another template than the group has now
	ailment  string // why it is unhealthy
}

// step is one thing that a group does about one instance; a launch has no id yet.
type step struct {
	journey Journey
	id      string
	cause   string
}

// mostSteps is how many instances a group launches at a time, and how many it ends: it
// goes on after Timing.Evaluate, and in between others are heard.
const mostSteps = 100

// steps is what the group does now to get from what it has to what it wants.
func (v standing) steps() []step {
	var out []step
	out = append(out, v.replaceUnhealthy()...)
	out = append(out, v.scale(out)...)
	out = append(out, v.releaseDoomed(out)...)
	return append(out, v.tendPool(out)...)
}

// taken tells whether a step is about an instance already.
func taken(steps []step, id string) bool {
	return slices.ContainsFunc(steps, func(s step) bool { return s.id == id })
}

func count(steps []step, journeys ...Journey) int {
	n := 0
	for _, s := range steps {
		if slices.Contains(journeys, s.journey) {
			n++
		}
	}
	return n
}

// serves tells whether an instance counts towards the desired capacity: in service, or on
// its way there.
func serves(m Member) bool {
	return m.Doomed == "" && (m.State == InService || coming(m.State))
}

// coming tells whether an instance in this state is on its way into service.
func coming(st LifecycleState) bool { return strings.HasPrefix(string(st), string(Pending)) }

// ready tells whether a warm instance can be used.
func ready(st LifecycleState) bool {
	return st == WarmedStopped || st == WarmedRunning || st == WarmedHibernated
}

// replaceUnhealthy takes out of service what is not well.
func (v standing) replaceUnhealthy() []step {
	var out []step
	for _, m := range v.members {
		switch {
		case !m.Unhealthy || !v.replace || !v.terminate:
		case m.State == InService:
			out = append(out, step{ScaleIn, m.InstanceID, m.ailment})
		case ready(m.State):
			out = append(out, step{PoolShrink, m.InstanceID, m.ailment})
		}
	}
	return out
}

// scale brings what serves to the desired capacity. Warm instances are used first (Amazon
// EC2 Auto Scaling User Guide, Decrease latency for applications with long boot times
// using warm pools).
func (v standing) scale(before []step) []step {
	have := 0
	for _, m := range v.members {
		if serves(m.Member) && !taken(before, m.InstanceID) {
			have++
		}
	}
	switch short := v.desired - have; {
	case short > 0 && v.launch:
		return v.grow(min(short, mostSteps), before)
	case short < 0 && v.terminate:
		return v.shrink(min(-short, mostSteps), before)
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

func (v standing) grow(n int, before []step) []step {
	var out []step
	for _, m := range v.members {
		if len(out) < n && ready(m.State) && !m.Unhealthy && !taken(before, m.InstanceID) {
			out = append(out, step{OutOfPool, m.InstanceID, causeGrow})
		}
	}
	for len(out) < n {
		out = append(out, step{journey: ColdStart, cause: causeGrow})
	}
	return out
}

// shrink chooses what leaves: what is in service first, by the termination policy.
// Protected instances stay, even if the group remains larger than is wanted.
func (v standing) shrink(n int, before []step) []step {
	var out []step
	for _, m := range v.victims(n, before) {
		journey := ScaleIn
		if v.reuse && m.State == InService && !m.Spot && v.warm()+count(out, ReturnToPool) < v.poolSize {
			journey = ReturnToPool
		}
		out = append(out, step{journey, m.InstanceID, causeShrink})
	}
	return out
}

// warm is how many instances the pool has that are to stay.
func (v standing) warm() int {
	n := 0
	for _, m := range v.members {
		if m.State.warm() && !leaving(m.State) && !retained(m.State) {
			n++
		}
	}
	return n
}

// victims chooses up to n instances to terminate, simplified from the default termination
// policy: of the zone with the most instances that of an old template, then the oldest
// (Amazon EC2 Auto Scaling User Guide, Configure termination policies).
func (v standing) victims(n int, before []step) []standingMember {
	var in, on []standingMember
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
	var out []standingMember
	for _, candidates := range [][]standingMember{in, on} {
		for len(out) < n && len(candidates) > 0 {
			first := slices.MinFunc(candidates, func(a, b standingMember) int { return v.compare(a, b, zones) })
			zones[first.Zone]--
			out = append(out, first)
			candidates = slices.DeleteFunc(candidates, func(m standingMember) bool { return m.InstanceID == first.InstanceID })
		}
	}
	return out
}

// compare puts first what is to go first.
func (v standing) compare(a, b standingMember, zones map[string]int) int {
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

// releaseDoomed ends those that had to be replaced, as far as others are in service now.
func (v standing) releaseDoomed(before []step) []step {
	spare := -v.desired
	for _, m := range v.members {
		if m.State == InService && !m.Unhealthy && !taken(before, m.InstanceID) {
			spare++
		}
	}
	var out []step
	for _, m := range v.members {
		if len(out) < spare && v.terminate && m.Doomed != "" && m.State == InService && !taken(before, m.InstanceID) {
			out = append(out, step{ScaleIn, m.InstanceID, m.Doomed})
		}
	}
	return out
}

// tendPool brings the warm pool to its size. What is on its way into it counts.
func (v standing) tendPool(before []step) []step {
	short := v.poolSize - v.warm() - count(before, ReturnToPool) + count(before, OutOfPool, PoolShrink)
	var out []step
	if short > 0 && v.launch {
		for range min(short, mostSteps) {
			out = append(out, step{journey: IntoPool, cause: causeWarm})
		}
	}
	for _, m := range v.members {
		if len(out) < min(-short, mostSteps) && v.terminate && ready(m.State) && !taken(before, m.InstanceID) {
			out = append(out, step{PoolShrink, m.InstanceID, causeCool})
		}
	}
	return out
}
