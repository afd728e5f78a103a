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

// poolOption is a pool of a fleet, with the data that the choice depends on.
type poolOption struct {
	price    float64 // USD an hour of one unit of capacity
	priority float64 // lower goes first
	depth    int     // estimated capacity in instances
	typeName string
	zone     string
}

// noPriority is the priority of an override without one: last.
const noPriority = math.MaxFloat64

// rank returns the order, as indexes into the options, in which a fleet tries the pools for n
// instances. Equal pools stay in the order of the request.
func rank(bids []poolOption, strategy string, n int) []int {
	order := make([]int, len(bids))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return comparePools(bids[i], bids[j], strategy, n) })
	return order
}

// comparePools says which of two pools a strategy prefers (EC2 User Guide, Use allocation
// strategies to determine how EC2 Fleet fulfills Spot and On-Demand capacity).
func comparePools(a, b poolOption, strategy string, n int) int {
	byPrice, byPriority, byDepth := cmp.Compare(a.price, b.price), cmp.Compare(a.priority, b.priority), cmp.Compare(b.depth, a.depth)
	switch strategy {
	case CapacityOptimized:
		return byDepth
	case CapacityOptimizedPrioritized:
		// Best effort: capacity first, then priority among the pools with enough capacity.
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

// sameTypeOrZone keeps the pools with the type, the zone or both of a reference pool. That is the first
// pool with capacity for n instances, otherwise the first pool.
func sameTypeOrZone(bids []poolOption, order []int, n int, oneType, oneZone bool) []int {
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

// spread is how many of its first pools a strategy distributes the instances over: all for
// diversified, the requested number for lowest-price, else one.
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
