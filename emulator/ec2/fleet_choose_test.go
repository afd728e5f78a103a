package ec2

import "testing"

func TestRank(t *testing.T) {
	t.Parallel()
	bids := []poolOption{
		{price: 3, priority: 1, depth: 5, typeName: "a", zone: "x"},
		{price: 1, priority: 3, depth: 0, typeName: "a", zone: "y"},
		{price: 2, priority: 2, depth: 9, typeName: "b", zone: "x"},
		{price: 2, priority: noPriority, depth: 7, typeName: "b", zone: "y"},
	}
	for name, c := range map[string]struct {
		strategy string
		n        int
		want     []int
	}{
		"lowest price, even where nothing is left":       {LowestPrice, 1, []int{1, 2, 3, 0}},
		"diversified tries the cheapest first":           {Diversified, 1, []int{1, 2, 3, 0}},
		"capacity optimized: the deepest":                {CapacityOptimized, 1, []int{2, 3, 0, 1}},
		"price and capacity: the cheapest with room":     {PriceCapacityOptimized, 1, []int{2, 3, 0, 1}},
		"price and capacity: with room for all":          {PriceCapacityOptimized, 8, []int{2, 1, 3, 0}},
		"capacity, then priority":                        {CapacityOptimizedPrioritized, 1, []int{0, 2, 3, 1}},
		"capacity, then priority: room for more":         {CapacityOptimizedPrioritized, 6, []int{2, 3, 0, 1}},
		"prioritized, those without a priority last":     {Prioritized, 1, []int{0, 2, 1, 3}},
		"price and capacity: no room anywhere, by price": {PriceCapacityOptimized, 100, []int{1, 2, 3, 0}},
	} {
		same(t, name, rank(bids, c.strategy, c.n), c.want)
	}
	order := []int{1, 2, 3, 0}
	same(t, "any", sameTypeOrZone(bids, order, 1, false, false), order)
	same(t, "one type, that of the first with room", sameTypeOrZone(bids, order, 1, true, false), []int{2, 3})
	same(t, "one zone", sameTypeOrZone(bids, order, 1, false, true), []int{2, 0})
	same(t, "both", sameTypeOrZone(bids, order, 1, true, true), []int{2})
	same(t, "none has room", sameTypeOrZone(bids, order, 100, true, false), []int{1, 0})
	same(t, "no pools", sameTypeOrZone(nil, nil, 1, true, true), []int(nil))
	same(t, "spread", []int{
		spread(LowestPrice, 4, 0), spread(LowestPrice, 4, 2), spread(LowestPrice, 4, 9), spread(Diversified, 4, 0), spread(PriceCapacityOptimized, 4, 0),
	}, []int{1, 2, 4, 4, 1})
}
