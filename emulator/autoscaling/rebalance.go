package autoscaling

import (
	"cmp"
	"slices"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// memberCounts counts the members of a group by zone and purchase option. One count serves many
// launches: a count for each launch would take minutes in a large group.
type memberCounts struct {
	serving, warm   map[string]int // by zone
	total, onDemand int            // of those that serve
}

// countMembers counts the members of a group. It needs the lock.
func (s *State) memberCounts(g *group) *memberCounts {
	t := &memberCounts{serving: map[string]int{}, warm: map[string]int{}}
	for _, m := range s.of(g) {
		t.add(m.Member)
	}
	return t
}

func (t *memberCounts) add(m Member) {
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

// subnetsByCount orders the subnets of a group by the number of instances in their zones, fewest
// first, in the group or in the pool. It needs the lock.
func (s *State) subnetsByCount(g *group, t *memberCounts, warm bool) []ec2.Subnet {
	list, err := s.subnets(g)
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

// nextIsSpot reports whether a group buys its next instance on the spot market, by its distribution.
func (t *memberCounts) nextIsSpot(g *group) bool {
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
