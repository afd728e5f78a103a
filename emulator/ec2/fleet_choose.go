package ec2

import (
	"cmp"
	"math"
	"slices"
)

// The allocation strategies of fleets (EC2 API Reference, SpotOptionsRequest and
// OnDemandOptionsRequest).
const (
	LowestPrice                  = "lowest-price"
	Diversified                  = "diversified"
	CapacityOptimized            = "capacity-optimized"
	CapacityOptimizedPrioritized = "capacity-optimized-prioritized"
	PriceCapacityOptimized       = "price-capacity-optimized"
	Prioritized                  = "prioritized"
)

// bid is one of the pools that a fleet may draw on, with what the choice depends on.
type bid struct {
	price    float64 // USD an hour of one unit of capacity
	priority float64 // lower goes first
	depth    int     // instances that the pool seems to have
	typeName string
	zone     string
}

// noPriority is that of an override which names none: it goes last.
const noPriority = math.MaxFloat64

// rank orders the pools, by their places in bids, in which a fleet tries them to get n
// instances. Pools that are equal stay in the order of the request.
func rank(bids []bid, strategy string, n int) []int {
	order := make([]int, len(bids))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return compareBids(bids[i], bids[j], strategy, n) })
	return order
}

// compareBids says which of two pools a strategy prefers (EC2 User Guide, Use allocation
// strategies to determine how EC2 Fleet fulfills Spot and On-Demand capacity).
func compareBids(a, b bid, strategy string, n int) int {
	byPrice, byPriority, byDepth := cmp.Compare(a.price, b.price), cmp.Compare(a.priority, b.priority), cmp.Compare(b.depth, a.depth)
	switch strategy {
	case CapacityOptimized:
		return byDepth
	case CapacityOptimizedPrioritized:
		// Best effort: capacity first, priorities among what has enough of it.
		return cmp.Or(compareBool(a.depth >= n, b.depth >= n), byPriority, byDepth)
	case PriceCapacityOptimized:
		return cmp.Or(compareBool(a.depth >= n, b.depth >= n), byPrice)
	case Prioritized:
		return byPriority
	default:
		return byPrice
	}
}

// compareBool puts true first.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// alike keeps of an order the pools that have type, zone or both in common with the first
// one that has room for n instances, or else with the first.
func alike(bids []bid, order []int, n int, oneType, oneZone bool) []int {
	if len(order) == 0 || !oneType && !oneZone {
		return order
	}
	first := bids[order[0]]
	if i := slices.IndexFunc(order, func(i int) bool { return bids[i].depth >= n }); i >= 0 {
		first = bids[order[i]]
	}
	return slices.DeleteFunc(slices.Clone(order), func(i int) bool {
		return oneType && bids[i].typeName != first.typeName || oneZone && bids[i].zone != first.zone
	})
}

// spread is over how many of its first pools a strategy spreads the instances: all for
// diversified, as many as asked for lowest-price, else one.
func spread(strategy string, pools, asked int) int {
	switch strategy {
	case Diversified:
		return pools
	case LowestPrice:
		return min(max(asked, 1), pools)
	default:
		return min(1, pools)
	}
}
