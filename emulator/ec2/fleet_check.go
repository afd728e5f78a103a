package ec2

import (
	"reflect"
	"slices"
	"strconv"
)

// Limits of fleets (Amazon EC2 Fleet quotas, EC2 User Guide).
const (
	maxFleetConfigs   = 50
	maxFleetOverrides = 300
	maxFleetTarget    = 10000
)

// check rejects what EC2 rejects before it checks templates and capacity.
func (in FleetInput) check() error {
	switch in.Type {
	case "instant":
	case "", "maintain", "request":
		return unsupported("This emulator plays fleets of the type instant only: set Type=instant.")
	default:
		return invalidValue("Invalid value '" + in.Type + "' for Type")
	}
	return firstError(
		in.checkTarget(),
		in.checkConfigs(),
		in.SpotOptions.check(Spot, in.Type),
		in.OnDemandOptions.check(OnDemand, in.Type),
		checkTags(tagsFor("fleet", in.TagSpecifications)),
		checkTags(tagsFor("instance", in.TagSpecifications)),
	)
}

func (in FleetInput) checkTarget() error {
	t := in.Target
	if t.Total <= 0 {
		return invalidFleet("The total target capacity must be greater than 0")
	}
	if t.Total > maxFleetTarget {
		return invalidFleet("The total target capacity must be at most " + strconv.Itoa(maxFleetTarget))
	}
	if t.OnDemand < 0 || t.Spot < 0 || t.OnDemand+t.Spot > t.Total {
		return invalidFleet("The sum of the Spot and On-Demand target capacities must not exceed the total target capacity")
	}
	switch t.DefaultType {
	case "", OnDemand, Spot:
		return nil
	case "capacity-block", "reserved-capacity":
		return unsupported("This emulator's fleets buy on-demand and spot only, not " + t.DefaultType + ".")
	default:
		return invalidValue("Invalid value '" + t.DefaultType + "' for DefaultTargetCapacityType")
	}
}

func (in FleetInput) checkConfigs() error {
	if len(in.Configs) == 0 {
		return missingParameter("LaunchTemplateConfigs")
	}
	if len(in.Configs) > maxFleetConfigs {
		return invalidFleet("A fleet has at most " + strconv.Itoa(maxFleetConfigs) + " launch template configurations")
	}
	overrides := 0
	for _, c := range in.Configs {
		if c.Template.Version == "" {
			return missingParameter("LaunchTemplateSpecification.Version")
		}
		for _, o := range c.Overrides {
			overrides++
			if err := o.check(); err != nil {
				return err
			}
		}
	}
	if overrides > maxFleetOverrides {
		return invalidFleet("A fleet has at most " + strconv.Itoa(maxFleetOverrides) + " overrides")
	}
	return nil
}

func (o FleetOverride) check() error {
	if o.Requirements != nil {
		return unsupported("This emulator does not choose instance types by their attributes: name the types in the overrides.")
	}
	if o.WeightedCapacity != nil && *o.WeightedCapacity <= 0 {
		return invalidFleet("The weighted capacity must be greater than 0")
	}
	if o.Priority != nil && *o.Priority < 0 {
		return invalidFleet("The priority must not be less than 0")
	}
	if o.MaxPrice == "" {
		return nil
	}
	if price, err := strconv.ParseFloat(o.MaxPrice, 64); err != nil || price <= 0 {
		return invalidValue("Invalid value '" + o.MaxPrice + "' for MaxPrice")
	}
	return nil
}

// check rejects strategies that a purchase option does not have.
func (o FleetOptions) check(lifecycle, fleetType string) error {
	known := []string{"", LowestPrice, Prioritized}
	if lifecycle == Spot {
		known = []string{
			"", LowestPrice, Diversified, CapacityOptimized, CapacityOptimizedPrioritized, PriceCapacityOptimized,
			// The former names of three strategies.
			"lowestPrice", "capacityOptimized", "capacityOptimizedPrioritized", "priceCapacityOptimized",
		}
	}
	switch {
	case !slices.Contains(known, o.AllocationStrategy):
		return invalidValue("Invalid value '" + o.AllocationStrategy + "' for AllocationStrategy")
	case o.InstanceInterruptionBehavior != "" && o.InstanceInterruptionBehavior != string(Terminate):
		return invalidFleet("The interruption behavior of a fleet of type " + fleetType + " must be terminate")
	case o.InstancePoolsToUseCount > 1 && o.AllocationStrategy != LowestPrice && o.AllocationStrategy != "":
		return invalidFleet("InstancePoolsToUseCount is valid only with the allocation strategy lowest-price")
	case o.MinTargetCapacity > 0 && !o.SingleInstanceType && !o.SingleAvailabilityZone:
		return invalidFleet("MinTargetCapacity needs SingleInstanceType or SingleAvailabilityZone")
	default:
		return nil
	}
}

// sameFleet answers a call that repeats a client token. It needs the lock.
func (s *State) sameFleet(done *Fleet, input FleetInput) (Fleet, error) {
	if !reflect.DeepEqual(done.Input, input) {
		return Fleet{}, tokenReused()
	}
	return done.clone(), nil
}
