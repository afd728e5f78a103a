package ec2

import (
	"errors"
	"math"
	"strconv"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// candidate is a pool of a fleet with its launch parameters.
type candidate struct {
	pool   FleetPool
	input  LaunchInput
	subnet Subnet
	// broken is why a launch in the pool is impossible; nil: it is possible.
	broken error
}

// candidates makes the pools of a fleet: every override of every template. It needs the
// lock.
func (s *State) candidates(in FleetInput) ([]candidate, error) {
	var out []candidate
	for _, c := range in.Configs {
		t, err := s.template(c.Template)
		if err != nil {
			return nil, err
		}
		v, err := t.version(c.Template.Version)
		if err != nil {
			return nil, err
		}
		ref := TemplateRef{ID: t.ID, Version: strconv.Itoa(v.Number)}
		overrides := c.Overrides
		if len(overrides) == 0 {
			overrides = []FleetOverride{{}}
		}
		for _, o := range overrides {
			out = append(out, s.candidate(v.Data, ref, o, in.TagSpecifications))
		}
	}
	return out, nil
}

// candidate needs the lock.
func (s *State) candidate(data TemplateData, ref TemplateRef, o FleetOverride, tags []TagSpecification) candidate {
	if o.AvailabilityZone == "" {
		o.AvailabilityZone = s.zoneOf(o.AvailabilityZoneID)
	}
	data = TemplateData{
		ImageID: o.ImageID, InstanceType: o.InstanceType, TagSpecifications: tags,
	}.over(data)
	// The fleet's own target says how to buy, not the template.
	data.InstanceMarketOptions = MarketOptions{}
	c := candidate{}
	c.input, c.broken = data.launch()
	if c.broken == nil && c.input.Type == "" {
		c.broken = missingParameter("InstanceType")
	}
	if o.SubnetID != "" || o.AvailabilityZone != "" {
		c.input.SubnetID, c.input.Zone = o.SubnetID, o.AvailabilityZone
	}
	if c.broken == nil {
		c.subnet, c.broken = s.place(c.input.SubnetID, c.input.Zone)
	}
	o.InstanceType, o.ImageID = c.input.Type, data.ImageID
	if c.broken == nil {
		o.SubnetID, o.AvailabilityZone, o.AvailabilityZoneID = c.subnet.ID, c.subnet.Zone, c.subnet.ZoneID
	}
	c.pool = FleetPool{Template: ref, Override: o}
	return c
}

// zoneOf is the zone of a zone id; empty for none.
func (s *State) zoneOf(id string) string {
	for _, n := range s.Subnets() {
		if id != "" && n.ZoneID == id {
			return n.Zone
		}
	}
	return ""
}

// weight is how many units an instance of the pool counts.
func (p FleetPool) weight() float64 {
	if w := p.Override.WeightedCapacity; w != nil {
		return *w
	}
	return 1
}

// instances is how many instances of the pool have this capacity.
func (c candidate) instances(capacity float64) int {
	return int(math.Ceil(capacity/c.pool.weight() - 1e-9))
}

// fill launches target units of one lifecycle and records the result in the fleet. It needs the
// lock.
func (s *State) fill(f *Fleet, candidates []candidate, lifecycle string, target int, o FleetOptions) {
	if target == 0 {
		return
	}
	strategy := strategyOf(o.AllocationStrategy)
	bids := make([]poolOption, len(candidates))
	for i, c := range candidates {
		bids[i] = s.poolOption(c, lifecycle)
	}
	order := sameTypeOrZone(bids, rank(bids, strategy, target), target, o.SingleInstanceType, o.SingleAvailabilityZone)
	if o.MinTargetCapacity > 0 && s.capacityOf(candidates, order, lifecycle) < float64(o.MinTargetCapacity) {
		s.tooLittle(f, candidates, order, lifecycle)
		return
	}
	left, shares := float64(target), spread(strategy, len(order), o.InstancePoolsToUseCount)
	for at, i := range order {
		if left <= 0 {
			return
		}
		part := left
		if pools := shares - at; pools > 1 {
			part = math.Ceil(left / float64(pools))
		}
		left -= s.launchFrom(f, candidates[i], lifecycle, part)
	}
}

// strategyOf translates former names of strategies; an empty name is lowest-price.
func strategyOf(name string) string {
	switch name {
	case "", "lowestPrice":
		return LowestPrice
	case "capacityOptimized":
		return CapacityOptimized
	case "capacityOptimizedPrioritized":
		return CapacityOptimizedPrioritized
	case "priceCapacityOptimized":
		return PriceCapacityOptimized
	default:
		return name
	}
}

// poolOption needs the lock.
func (s *State) poolOption(c candidate, lifecycle string) poolOption {
	b := poolOption{typeName: c.input.Type, zone: c.subnet.Zone, priority: noPriority}
	if p := c.pool.Override.Priority; p != nil {
		b.priority = *p
	}
	b.price, _ = OnDemandPrice(c.input.Type)
	if lifecycle == Spot {
		b.price = s.spotPrice(c.input.Type, c.subnet.Zone)
	}
	b.price /= c.pool.weight()
	if c.broken == nil {
		b.depth = s.depth(Offering{b.typeName, b.zone, lifecycle})
	}
	return b
}

// launchFrom launches the given capacity, or what is available, in one pool, and returns the
// launched capacity. It needs the lock.
func (s *State) launchFrom(f *Fleet, c candidate, lifecycle string, capacity float64) float64 {
	want := c.instances(capacity)
	input, subnet, err := s.checkLaunchFrom(c, lifecycle)
	if err != nil {
		f.fail(c, lifecycle, err)
		return 0
	}
	offering := input.offering(subnet)
	n := min(want, s.room(offering))
	if n < want {
		f.fail(c, lifecycle, noCapacity(offering))
	}
	if free := subnet.capacity() - s.hosts[subnet.Zone]; free < n {
		n = free
		f.fail(c, lifecycle, noAddresses(subnet.ID))
	}
	if left := s.left(); left < n {
		n = left
		f.fail(c, lifecycle, overQuota(offering))
	}
	if n == 0 {
		return 0
	}
	input.systemTags = merged(templateTags(c.pool.Template.ID, c.pool.Template.Version), f.Input.SystemTags)
	input.systemTags["aws:ec2:fleet-id"] = f.ID
	made := FleetInstances{Pool: c.pool, Lifecycle: lifecycle, Type: input.Type, Zone: subnet.Zone, SubnetID: subnet.ID}
	for _, in := range s.run(input, subnet, n) {
		made.IDs = append(made.IDs, in.ID)
	}
	f.Instances = append(f.Instances, made)
	return float64(n) * c.pool.weight()
}

// checkLaunchFrom fills in a launch in a pool, or returns why EC2 rejects it. It needs the lock.
func (s *State) checkLaunchFrom(c candidate, lifecycle string) (LaunchInput, Subnet, error) {
	if c.broken != nil {
		return LaunchInput{}, Subnet{}, c.broken
	}
	input := c.input
	if lifecycle == Spot {
		input.Spot = &SpotOptions{}
		if price, err := strconv.ParseFloat(c.pool.Override.MaxPrice, 64); err == nil && price < s.spotPrice(input.Type, c.subnet.Zone) {
			return input, c.subnet, priceTooLow(price, s.spotPrice(input.Type, c.subnet.Zone))
		}
	}
	return s.checkLaunch(input)
}

// capacityOf is the capacity that all pools have together. It needs the lock.
func (s *State) capacityOf(candidates []candidate, order []int, lifecycle string) float64 {
	sum, left := 0.0, s.left()
	for _, i := range order {
		if input, subnet, err := s.checkLaunchFrom(candidates[i], lifecycle); err == nil {
			n := min(s.room(input.offering(subnet)), left)
			left -= n
			sum += float64(n) * candidates[i].pool.weight()
		}
	}
	return sum
}

// tooLittle records that the minimum capacity is not available, so that the fleet launched nothing.
// It needs the lock.
func (s *State) tooLittle(f *Fleet, candidates []candidate, order []int, lifecycle string) {
	for _, i := range order {
		f.fail(candidates[i], lifecycle, unfulfillable())
	}
}

// fail records why a pool launched nothing or too little.
func (f *Fleet) fail(c candidate, lifecycle string, err error) {
	e := FleetError{Pool: c.pool, Lifecycle: lifecycle, Code: "InternalError", Message: err.Error()}
	var known *wire.Error
	if errors.As(err, &known) {
		e.Code, e.Message = known.Code, known.Message
	}
	f.Errors = append(f.Errors, e)
}
