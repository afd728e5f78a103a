package ec2

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// FleetInput requests instances from several pools. The tags name the parameters of the request
// (EC2 API Reference, CreateFleet).
type FleetInput struct {
	// Type is instant; the emulator supports no other type.
	Type              string
	Configs           []FleetConfig      `query:"LaunchTemplateConfigs"`
	Target            FleetTarget        `query:"TargetCapacitySpecification"`
	SpotOptions       FleetOptions       // for what is bought on the spot market
	OnDemandOptions   FleetOptions       // for what is bought on demand
	TagSpecifications []TagSpecification `query:"TagSpecification"`
	ClientToken       string
	// SystemTags are tags of the AWS service that sends the request for the user.
	SystemTags map[string]string `query:"-"`
}

// FleetConfig is a launch template with overrides.
type FleetConfig struct {
	Template  TemplateRef `query:"LaunchTemplateSpecification"`
	Overrides []FleetOverride
}

// FleetOverride is what one pool changes in its template.
type FleetOverride struct {
	InstanceType       string
	ImageID            string `query:"ImageId"`
	SubnetID           string `query:"SubnetId"`
	AvailabilityZone   string
	AvailabilityZoneID string `query:"AvailabilityZoneId"`
	// MaxPrice is in USD an hour; empty: as high as on demand.
	MaxPrice string
	// Priority orders pools, lowest first; nil: last.
	Priority *float64
	// WeightedCapacity is how many units an instance counts; nil: one.
	WeightedCapacity *float64
	// Requirements describes types by attributes, which the emulator rejects.
	Requirements *struct{} `query:"InstanceRequirements"`
}

// FleetTarget is the capacity of a fleet.
type FleetTarget struct {
	Total       int    `query:"TotalTargetCapacity"`
	OnDemand    int    `query:"OnDemandTargetCapacity"`
	Spot        int    `query:"SpotTargetCapacity"`
	DefaultType string `query:"DefaultTargetCapacityType"` // for the rest
	UnitType    string `query:"TargetCapacityUnitType"`
}

// FleetOptions says how to choose among the pools.
type FleetOptions struct {
	AllocationStrategy           string
	InstancePoolsToUseCount      int
	InstanceInterruptionBehavior string
	SingleInstanceType           bool
	SingleAvailabilityZone       bool
	MinTargetCapacity            int
}

// Fleet is the result of a fleet request.
type Fleet struct {
	ID        string // fleet- and a UUID
	Created   time.Time
	Input     FleetInput
	Tags      map[string]string
	Instances []FleetInstances
	Errors    []FleetError
}

// FleetPool is the resolved template and override of a pool.
type FleetPool struct {
	Template TemplateRef // with the id and the number of the version
	Override FleetOverride
}

// FleetInstances are the instances of one pool.
type FleetInstances struct {
	Pool      FleetPool
	Lifecycle string // OnDemand or Spot
	Type      string
	Zone      string
	SubnetID  string
	IDs       []string
}

// FleetError is why a pool launched nothing, or less than requested.
type FleetError struct {
	Pool          FleetPool
	Lifecycle     string
	Code, Message string
}

// CreateFleet launches the instances of an instant fleet. Missing capacity in a pool is one of the
// fleet's Errors and no error of the call. Errors: MissingParameter, InvalidFleetConfig,
// InvalidParameterValue, UnsupportedOperation, those of an unknown launch template,
// IdempotentParameterMismatch.
func (s *State) CreateFleet(input FleetInput) (Fleet, error) {
	if err := input.check(); err != nil {
		return Fleet{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if done, ok := s.fleetTokens[input.ClientToken]; ok && input.ClientToken != "" {
		return s.sameFleet(done, input)
	}
	candidates, err := s.candidates(input)
	if err != nil {
		return Fleet{}, err
	}
	f := &Fleet{ID: newFleetID(), Created: time.Now().UTC().Truncate(time.Second), Input: input, Tags: tagsFor("fleet", input.TagSpecifications)}
	onDemand, spot := input.Target.split()
	s.fill(f, candidates, OnDemand, onDemand, input.OnDemandOptions)
	s.fill(f, candidates, Spot, spot, input.SpotOptions)
	s.remember(f)
	return f.clone(), nil
}

// maxFleets is how many fleets are kept. With hundreds of overrides they are large, and an instant
// fleet has no use once its instances are known.
const maxFleets = 1000

// remember needs the lock.
func (s *State) remember(f *Fleet) {
	s.fleets = append(s.fleets, f)
	s.tagged[f.ID] = tagged{"fleet", maps.Clone(f.Tags)}
	if token := f.Input.ClientToken; token != "" {
		s.fleetTokens[token] = f
	}
	if len(s.fleets) > maxFleets {
		oldest := s.fleets[0]
		s.fleets = slices.Delete(s.fleets, 0, 1)
		delete(s.tagged, oldest.ID)
		delete(s.fleetTokens, oldest.Input.ClientToken)
	}
}

// Fleets lists the fleets, oldest first.
func (s *State) Fleets() []Fleet {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Fleet, 0, len(s.fleets))
	for _, f := range s.fleets {
		shown := f.clone()
		shown.Tags = maps.Clone(s.tagged[f.ID].tags)
		out = append(out, shown)
	}
	return out
}

func (f *Fleet) clone() Fleet {
	out := *f
	out.Tags = maps.Clone(f.Tags)
	out.Instances = slices.Clone(f.Instances)
	out.Errors = slices.Clone(f.Errors)
	return out
}

// split is how much to buy on demand and how much on the spot market.
func (t FleetTarget) split() (onDemand, spot int) {
	rest := max(t.Total-t.OnDemand-t.Spot, 0)
	if t.DefaultType == Spot {
		return t.OnDemand, t.Spot + rest
	}
	return t.OnDemand + rest, t.Spot
}

// newFleetID is fleet- and a UUID.
func newFleetID() string {
	hex := newID("")[1:] + newID("")[1:]
	return fmt.Sprintf("fleet-%s-%s-%s-%s-%s", hex[:8], hex[8:12], hex[12:16], hex[17:21], hex[21:33])
}
