package ec2

import (
	"crypto/rand"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// LaunchInput requests identical instances.
type LaunchInput struct {
	ImageID string
	// Type defaults to m5.large.
	Type string
	// SubnetID and Zone choose the place; both empty: the region's first zone.
	SubnetID, Zone string
	Min, Max       int
	Spot           *SpotOptions // nil: not a spot instance
	// Market, CapacityReservationID and HostID are as in [Instance].
	Market, CapacityReservationID, HostID string
	Tags                                  map[string]string
	RequestTags                           map[string]string // for the spot request
	VolumeTags                            map[string]string
	UserData                              string // base64
	Metadata                              MetadataOptions
	KeyName                               string
	SecurityGroupIDs                      []string
	InstanceProfile                       InstanceProfile
	// BlockDevices are additional disks, or the root volume by its name.
	BlockDevices []BlockDevice
	ClientToken  string

	// systemTags are tags that only AWS sets.
	systemTags map[string]string
}

// SpotOptions says what kind of spot request to make.
type SpotOptions struct {
	Persistent bool
	// Behaviour defaults to Terminate; the others need a persistent request.
	Behaviour Behaviour
}

// launch holds the request and the result of a client token.
type launch struct {
	input LaunchInput
	ids   []string
}

// Launch creates input.Max pending instances and returns them. With less capacity or quota it
// creates fewer, but at least input.Min. A call that repeats a client token returns the instances
// of the first call. The errors are those of RunInstances.
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
	offering := input.offering(subnet)
	if s.left() < input.Min {
		return nil, overQuota(offering)
	}
	n := min(s.room(offering), s.left(), input.Max)
	if n < input.Min {
		return nil, noCapacity(offering)
	}
	out := s.run(input, subnet, n)
	ids := make([]string, 0, n)
	for _, in := range out {
		ids = append(ids, in.ID)
	}
	if input.ClientToken != "" {
		s.tokens[input.ClientToken] = launch{asked, ids}
	}
	return out, nil
}

// run creates n instances of a checked input, in one reservation. It needs the lock.
func (s *State) run(input LaunchInput, subnet Subnet, n int) []Instance {
	s.take(input.offering(subnet), n)
	reservation := newID("r")
	out := make([]Instance, 0, n)
	for range n {
		out = append(out, s.create(input, subnet, reservation).Instance.clone())
	}
	return out
}

// offering is the capacity pool that a launch uses. Reserved capacity is in no pool.
func (input LaunchInput) offering(subnet Subnet) Offering {
	switch {
	case input.Spot != nil:
		return Offering{input.Type, subnet.Zone, Spot}
	case input.Market != "":
		return Offering{input.Type, subnet.Zone, input.Market}
	default:
		return Offering{input.Type, subnet.Zone, OnDemand}
	}
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

// checkLaunch fills in the defaults and rejects what EC2 rejects. It needs the lock.
func (s *State) checkLaunch(input LaunchInput) (LaunchInput, Subnet, error) {
	if input.Type == "" {
		input.Type = "m5.large"
	}
	var subnet Subnet
	err := firstError(
		checkImage(input.ImageID),
		checkCount(input.Min, input.Max),
		checkType(input.Type),
		checkFit(input.ImageID, input.Type),
		checkUserData(input.UserData),
		checkGroups(input.SecurityGroupIDs),
		checkSpot(input.Spot),
		checkMarket(input),
		checkTags(input.Tags),
		checkTags(input.RequestTags),
		checkRequestTags(input),
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
		UserData:         input.UserData, ClientToken: input.ClientToken, Metadata: input.Metadata,
		Market: input.Market, CapacityReservationID: input.CapacityReservationID, HostID: input.HostID,
		InstanceProfileARN: s.profileARN(input.InstanceProfile),
		Tags:               merged(input.Tags, input.systemTags),
		LaunchTime:         time.Now().UTC().Truncate(time.Second), BootID: rand.Text(),
	}}
	in.Volumes = s.attach(input)
	if input.Spot != nil {
		in.SpotRequestID = s.request(in, input)
	}
	s.instances[in.ID] = in
	s.order = append(s.order, in.ID)
	s.living++
	s.boot(in, Launched)
	return in
}

// request creates the fulfilled spot request of an instance and returns its id. It needs the lock.
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
	s.mark(r, "fulfilled", now)
	s.requests[r.ID] = r
	s.requestOrder = append(s.requestOrder, r.ID)
	return r.ID
}

// privateName is the IP-based name of an instance; us-east-1 has its own domain (EC2 User Guide,
// EC2 instance hostnames and domains).
func privateName(ip, region string) string {
	domain := region + ".compute.internal"
	if region == "us-east-1" {
		domain = "ec2.internal"
	}
	return "ip-" + strings.ReplaceAll(ip, ".", "-") + "." + domain
}
