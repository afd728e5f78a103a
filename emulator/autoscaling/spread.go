package autoscaling

import (
	"cmp"
	"slices"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// tally is how the members of a group are spread. It is counted once for many launches: a
// look at all of them for each would take a large group minutes.
type tally struct {
	serving, warm   map[string]int // by zone
	total, onDemand int            // of those that serve
}

// tally counts the members of a group. It needs the lock.
func (s *State) tally(g *group) *tally {
	t := &tally{serving: map[string]int{}, warm: map[string]int{}}
	for _, m := range s.of(g) {
		t.add(m.Member)
	}
	return t
}

func (t *tally) add(m Member) {
	switch {
	case m.State.warm() && !leaving(m.State):
		t.warm[m.Zone]++
	case serves(m):
		t.serving[m.Zone]++
		t.total++
		if !m.Spot {
			t.onDemand++
		}
	}
}

// spread orders the subnets of a group: first those in whose zones it has the fewest
// instances, in the group or in the pool. It needs the lock.
func (s *State) spread(g *group, t *tally, warm bool) []ec2.Subnet {
	list, err := s.places(g)
	if err != nil {
		return nil
	}
	have := t.serving
	if warm {
		have = t.warm
	}
	slices.SortStableFunc(list, func(a, b ec2.Subnet) int { return cmp.Compare(have[a.Zone], have[b.Zone]) })
	return list
}

// nextIsSpot tells how a group buys its next instance, for which its shares on demand and
// on the spot market decide.
func (t *tally) nextIsSpot(g *group) bool {
	return g.Mixed != nil && t.onDemand >= g.Mixed.Distribution.onDemand(t.total+1)
}

// onDemand is how many of total instances are bought on demand, rounded up (Amazon EC2
// Auto Scaling User Guide, Allocation strategies for multiple instance types).
func (d Distribution) onDemand(total int) int {
	percent := 100
	if d.OnDemandPercent != nil {
		percent = *d.OnDemandPercent
	}
	base := min(d.OnDemandBase, total)
	return base + ((total-base)*percent+99)/100
}
