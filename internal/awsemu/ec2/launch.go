package ec2

import (
	"crypto/rand"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// LaunchInput asks for instances of one kind.
type LaunchInput struct {
	ImageID string
	// Type defaults to m5.large.
	Type string
	// SubnetID and Zone choose where; both empty: the region's first zone.
	SubnetID, Zone string
	Min, Max       int
	Spot           *SpotOptions // nil: not on the spot market
	// Market, CapacityReservationID and HostID are as in [Instance].
	Market, CapacityReservationID, HostID string
	Tags                                  map[string]string
	RequestTags                           map[string]string // for the spot request
	UserData                              string            // base64
	KeyName                               string
	SecurityGroupIDs                      []string
	ClientToken                           string
}

// SpotOptions says what kind of spot request to make.
type SpotOptions struct {
	Persistent bool
	// Behaviour defaults to Terminate; the others need a persistent request.
	Behaviour Behaviour
}

// launch remembers what a client token asked for and got.
type launch struct {
	input LaunchInput
	ids   []string
}

// Launch makes input.Max instances, all pending, and returns them. A call that repeats
// a client token returns the instances of the first one. The errors are those of
// RunInstances.
func (s *State) Launch(input LaunchInput) ([]Instance, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if done, ok := s.tokens[input.ClientToken]; ok && input.ClientToken != "" {
		return s.relaunch(done, input)
	}
	asked := input
	input, subnet, err := s.checkLaunch(input)
	if err != nil {
		return nil, err
	}
	reservation := newID("r")
	out := make([]Instance, 0, input.Max)
	ids := make([]string, 0, input.Max)
	for range input.Max {
		in := s.create(input, subnet, reservation)
		ids = append(ids, in.ID)
		out = append(out, in.Instance.clone())
	}
	if input.ClientToken != "" {
		s.tokens[input.ClientToken] = launch{asked, ids}
	}
	return out, nil
}

// relaunch needs the lock.
func (s *State) relaunch(done launch, input LaunchInput) ([]Instance, error) {
	if !reflect.DeepEqual(done.input, input) {
		return nil, tokenReused()
	}
	var out []Instance
	for _, id := range done.ids {
		if in := s.instances[id]; in != nil {
			out = append(out, in.Instance.clone())
		}
	}
	return out, nil
}

// checkLaunch fills in the defaults and refuses what EC2 would refuse. It needs the
// lock.
func (s *State) checkLaunch(input LaunchInput) (LaunchInput, Subnet, error) {
	if input.Type == "" {
		input.Type = "m5.large"
	}
	var subnet Subnet
	err := firstError(
		checkImage(input.ImageID),
		checkCount(input.Min, input.Max),
		checkType(input.Type),
		checkSpot(input.Spot),
		checkMarket(input),
		checkTags(input.Tags),
		checkTags(input.RequestTags),
	)
	if err != nil {
		return input, subnet, err
	}
	subnet, err = s.place(input.SubnetID, input.Zone)
	if err != nil {
		return input, subnet, err
	}
	if s.hosts[subnet.Zone]+input.Max > subnet.capacity() {
		return input, subnet, noAddresses(subnet.ID)
	}
	if len(input.SecurityGroupIDs) == 0 {
		input.SecurityGroupIDs = []string{defaultGroupID}
	}
	return input, subnet, nil
}

// create needs the lock.
func (s *State) create(input LaunchInput, subnet Subnet, reservation string) *instance {
	ip := subnet.address(s.hosts[subnet.Zone])
	s.hosts[subnet.Zone]++
	in := &instance{Instance: Instance{
		ID: newID("i"), ReservationID: reservation,
		ImageID: input.ImageID, Type: input.Type, KeyName: input.KeyName,
		Zone: subnet.Zone, SubnetID: subnet.ID, PrivateIP: ip,
		PrivateDNSName:   privateName(ip, s.scope.Region),
		SecurityGroupIDs: slices.Clone(input.SecurityGroupIDs),
		UserData:         input.UserData, ClientToken: input.ClientToken,
		Market: input.Market, CapacityReservationID: input.CapacityReservationID, HostID: input.HostID,
		Tags:       maps.Clone(input.Tags),
		LaunchTime: time.Now().UTC().Truncate(time.Second), BootID: rand.Text(),
	}}
	if in.Tags == nil {
		in.Tags = map[string]string{}
	}
	if input.Spot != nil {
		in.SpotRequestID = s.request(in, input)
	}
	s.instances[in.ID] = in
	s.order = append(s.order, in.ID)
	s.boot(in, Launched)
	return in
}

// request makes the fulfilled spot request of an instance and returns its id. It needs
// the lock.
func (s *State) request(in *instance, input LaunchInput) string {
	now := time.Now().UTC().Truncate(time.Second)
	r := &SpotRequest{
		ID: newSpotRequestID(), InstanceID: in.ID, ImageID: in.ImageID, InstanceType: in.Type, Zone: in.Zone,
		Persistent: input.Spot.Persistent, Behaviour: input.Spot.Behaviour,
		State: "active", CreateTime: now, Tags: maps.Clone(input.RequestTags),
	}
	if r.Behaviour == "" {
		r.Behaviour = Terminate
	}
	if r.Tags == nil {
		r.Tags = map[string]string{}
	}
	r.mark("fulfilled", now)
	s.requests[r.ID] = r
	s.requestOrder = append(s.requestOrder, r.ID)
	return r.ID
}

// privateName is the IP-based name of an instance: us-east-1 has a domain of its own
// (EC2 User Guide, EC2 instance hostnames and domains).
func privateName(ip, region string) string {
	domain := region + ".compute.internal"
	if region == "us-east-1" {
		domain = "ec2.internal"
	}
	return "ip-" + strings.ReplaceAll(ip, ".", "-") + "." + domain
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func checkImage(id string) error {
	if id == "" {
		return missingParameter("ImageId")
	}
	if rest, ok := strings.CutPrefix(id, "ami-"); !ok || rest == "" {
		return malformedImage(id)
	}
	return nil
}

// maxPerCall bounds one RunInstances call; the real bound is the account's quota.
const maxPerCall = 1000

func checkCount(least, most int) error {
	if least < 1 || most < least {
		return invalidValue("minCount and maxCount must be positive, and maxCount no less than minCount")
	}
	if most > maxPerCall {
		return quotaExceeded(most)
	}
	return nil
}

func checkType(name string) error {
	if _, ok := FindType(name); !ok {
		return invalidValue("Invalid value '" + name + "' for InstanceType. This emulator knows: " + strings.Join(typeNames(), ", "))
	}
	return nil
}

// Markets other than on demand and spot (EC2 API Reference, InstanceMarketOptions).
const (
	CapacityBlock            = "capacity-block"
	InterruptibleReservation = "interruptible-capacity-reservation"
)

func checkMarket(input LaunchInput) error {
	switch input.Market {
	case "":
		return nil
	case CapacityBlock, InterruptibleReservation:
	default:
		return invalidValue("Invalid value '" + input.Market + "' for MarketType")
	}
	switch {
	case input.Spot != nil:
		return invalidCombination("An instance cannot be of the market types 'spot' and '" + input.Market + "' at once")
	case input.CapacityReservationID == "":
		return invalidCombination("The market type '" + input.Market + "' needs a Capacity Reservation as target")
	default:
		return nil
	}
}

func checkSpot(o *SpotOptions) error {
	if o == nil {
		return nil
	}
	switch o.Behaviour {
	case "", Terminate:
		return nil
	case Stop, Hibernate:
		if !o.Persistent {
			return invalidCombination("The interruption behavior '" + string(o.Behaviour) + "' needs a persistent Spot request")
		}
		return nil
	default:
		return invalidValue("Invalid value '" + string(o.Behaviour) + "' for InstanceInterruptionBehavior")
	}
}
