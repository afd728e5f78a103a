package ec2

// TemplateData is the launch parameters in a launch template or in RunInstances. The tags name the
// parameters of the request (EC2 API Reference, RequestLaunchTemplateData).
type TemplateData struct {
	ImageID            string `query:"ImageId"`
	InstanceType       string
	KeyName            string
	UserData           string   // base64
	SecurityGroupIDs   []string `query:"SecurityGroupId"`
	IamInstanceProfile InstanceProfile
	NetworkInterfaces  []NetworkInterface `query:"NetworkInterface"`
	BlockDevices       []BlockDevice      `query:"BlockDeviceMapping"`
	Placement          Placement

	InstanceMarketOptions            MarketOptions
	CapacityReservationSpecification CapacityReservation
	MetadataOptions                  MetadataOptions
	TagSpecifications                []TagSpecification `query:"TagSpecification"`
}

// InstanceProfile names an instance profile by name or ARN.
type InstanceProfile struct {
	ARN  string `query:"Arn"`
	Name string
}

// NetworkInterface is a network interface of a new instance.
type NetworkInterface struct {
	DeviceIndex      int
	SubnetID         string   `query:"SubnetId"`
	SecurityGroupIDs []string `query:"SecurityGroupId"`
}

// BlockDevice is a disk of a new instance.
type BlockDevice struct {
	DeviceName string
	EBS        EBS `query:"Ebs"`
}

// EBS describes a new volume; sizes are in GiB.
type EBS struct {
	VolumeSize, Iops, Throughput   int
	VolumeType, SnapshotID         string
	Encrypted, DeleteOnTermination *bool
}

// Placement is the zone or host of a new instance.
type Placement struct {
	AvailabilityZone   string
	AvailabilityZoneID string `query:"AvailabilityZoneId"`
	HostID             string `query:"HostId"`
	Tenancy            string
	// GroupName is a placement group. The emulator only checks the permission for it.
	GroupName string
}

// MarketOptions is the purchase option of a new instance.
type MarketOptions struct {
	MarketType  string
	SpotOptions struct {
		SpotInstanceType             string
		InstanceInterruptionBehavior string
		MaxPrice                     string
	}
}

// CapacityReservation is the reserved capacity of a new instance.
type CapacityReservation struct {
	CapacityReservationPreference string
	CapacityReservationTarget     struct {
		CapacityReservationID string `query:"CapacityReservationId"`
	}
}

// MetadataOptions is the access to instance metadata. It is stored, and does not change the
// emulator's metadata service.
type MetadataOptions struct {
	Endpoint string `query:"HttpEndpoint"`
	Tokens   string `query:"HttpTokens"`
	IPv6     string `query:"HttpProtocolIpv6"`
	HopLimit int    `query:"HttpPutResponseHopLimit"`
	Tags     string `query:"InstanceMetadataTags"`
}

// TagSpecification is the tags of new resources of one kind.
type TagSpecification struct {
	ResourceType string
	Tags         []struct{ Key, Value string } `query:"Tag"`
}

// tagsFor collects the tags of a kind; later values win.
func tagsFor(kind string, specs []TagSpecification) map[string]string {
	out := map[string]string{}
	for _, spec := range specs {
		if spec.ResourceType != kind {
			continue
		}
		for _, t := range spec.Tags {
			out[t.Key] = t.Value
		}
	}
	return out
}

// over merges a request over its template. Tags are combined; any other part of the request
// replaces the template's (EC2 User Guide, Launch instances from a launch template).
func (d TemplateData) over(base TemplateData) TemplateData {
	instead(&base.ImageID, d.ImageID)
	instead(&base.InstanceType, d.InstanceType)
	instead(&base.KeyName, d.KeyName)
	instead(&base.UserData, d.UserData)
	instead(&base.IamInstanceProfile, d.IamInstanceProfile)
	instead(&base.Placement, d.Placement)
	instead(&base.InstanceMarketOptions, d.InstanceMarketOptions)
	instead(&base.CapacityReservationSpecification, d.CapacityReservationSpecification)
	instead(&base.MetadataOptions, d.MetadataOptions)
	if len(d.SecurityGroupIDs) > 0 {
		base.SecurityGroupIDs = d.SecurityGroupIDs
	}
	if len(d.NetworkInterfaces) > 0 {
		base.NetworkInterfaces = d.NetworkInterfaces
	}
	if len(d.BlockDevices) > 0 {
		base.BlockDevices = d.BlockDevices
	}
	base.TagSpecifications = append(base.TagSpecifications[:len(base.TagSpecifications):len(base.TagSpecifications)], d.TagSpecifications...)
	return base
}

func instead[T comparable](to *T, with T) {
	var none T
	if with != none {
		*to = with
	}
}

// launch makes a launch input of it, for one instance by default.
func (d TemplateData) launch() (LaunchInput, error) {
	spot, err := d.spot()
	if err != nil {
		return LaunchInput{}, err
	}
	input := LaunchInput{
		ImageID: d.ImageID, Type: d.InstanceType, Zone: d.Placement.AvailabilityZone, Min: 1, Max: 1, Spot: spot,
		Tags: tagsFor("instance", d.TagSpecifications), RequestTags: tagsFor("spot-instances-request", d.TagSpecifications),
		VolumeTags: tagsFor("volume", d.TagSpecifications), BlockDevices: d.BlockDevices,
		UserData: d.UserData, KeyName: d.KeyName, SecurityGroupIDs: d.SecurityGroupIDs, InstanceProfile: d.IamInstanceProfile,
		Market: d.market(), HostID: d.Placement.HostID, Metadata: d.MetadataOptions,
		CapacityReservationID: d.CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationID,
	}
	if len(d.NetworkInterfaces) > 0 {
		first := d.NetworkInterfaces[0]
		input.SubnetID = first.SubnetID
		input.SecurityGroupIDs = append(input.SecurityGroupIDs[:len(input.SecurityGroupIDs):len(input.SecurityGroupIDs)], first.SecurityGroupIDs...)
	}
	return input, nil
}

func (d TemplateData) spot() (*SpotOptions, error) {
	if d.InstanceMarketOptions.MarketType != Spot {
		return nil, nil
	}
	o := d.InstanceMarketOptions.SpotOptions
	switch o.SpotInstanceType {
	case "", "one-time", "persistent":
	default:
		return nil, invalidValue("Invalid value '" + o.SpotInstanceType + "' for SpotInstanceType")
	}
	return &SpotOptions{
		Persistent: o.SpotInstanceType == "persistent", Behaviour: Behaviour(o.InstanceInterruptionBehavior),
	}, nil
}

// market is the purchase option other than on demand and spot.
func (d TemplateData) market() string {
	switch m := d.InstanceMarketOptions.MarketType; m {
	case Spot, OnDemand:
		return ""
	default:
		return m
	}
}

// templateTags are EC2's tags on instances of a launch template.
func templateTags(id, version string) map[string]string {
	return map[string]string{"aws:ec2launchtemplate:id": id, "aws:ec2launchtemplate:version": version}
}
