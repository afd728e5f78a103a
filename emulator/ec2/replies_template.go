package ec2

import "github.com/lifeboat-dev/lifeboat/emulator/wire"

type templateInfo struct {
	ID        string             `xml:"launchTemplateId"`
	Name      string             `xml:"launchTemplateName"`
	Created   wire.Time          `xml:"createTime"`
	CreatedBy string             `xml:"createdBy"`
	Default   int                `xml:"defaultVersionNumber"`
	Latest    int                `xml:"latestVersionNumber"`
	Tags      wire.Set[tagReply] `xml:"tagSet"`
}

func templateToWire(t Template) templateInfo {
	return templateInfo{t.ID, t.Name, wire.Time{Time: t.Created}, t.CreatedBy, t.Default, t.Latest(), tagsToWire(t.Tags)}
}

type versionInfo struct {
	ID          string           `xml:"launchTemplateId"`
	Name        string           `xml:"launchTemplateName"`
	Number      int              `xml:"versionNumber"`
	Description string           `xml:"versionDescription,omitempty"`
	Created     wire.Time        `xml:"createTime"`
	CreatedBy   string           `xml:"createdBy"`
	Default     bool             `xml:"defaultVersion"`
	Data        templateDataInfo `xml:"launchTemplateData"`
}

func versionToWire(t Template, v TemplateVersion) versionInfo {
	return versionInfo{
		t.ID, t.Name, v.Number, v.Description, wire.Time{Time: v.Created}, t.CreatedBy, v.Number == t.Default, dataToWire(v.Data),
	}
}

// The parts of a template's data; empty parts are omitted.
type (
	templateDataInfo struct {
		ImageID      string           `xml:"imageId,omitempty"`
		InstanceType string           `xml:"instanceType,omitempty"`
		KeyName      string           `xml:"keyName,omitempty"`
		UserData     string           `xml:"userData,omitempty"`
		Profile      *profileRef      `xml:"iamInstanceProfile"`
		Interfaces   []interfaceInfo  `xml:"networkInterfaceSet>item"`
		Disks        []diskInfo       `xml:"blockDeviceMappingSet>item"`
		Groups       []string         `xml:"securityGroupIdSet>item"`
		Placement    *placementInfo   `xml:"placement"`
		Market       *marketInfo      `xml:"instanceMarketOptions"`
		Metadata     *metadataInfo    `xml:"metadataOptions"`
		Tags         []tagSpecInfo    `xml:"tagSpecificationSet>item"`
		Reservation  *reservationInfo `xml:"capacityReservationSpecification"`
	}
	profileRef struct {
		ARN  string `xml:"arn,omitempty"`
		Name string `xml:"name,omitempty"`
	}
	interfaceInfo struct {
		DeviceIndex int      `xml:"deviceIndex"`
		SubnetID    string   `xml:"subnetId,omitempty"`
		Groups      []string `xml:"groupSet>groupId"`
	}
	diskInfo struct {
		DeviceName string  `xml:"deviceName"`
		EBS        ebsInfo `xml:"ebs"`
	}
	ebsInfo struct {
		VolumeSize int    `xml:"volumeSize,omitempty"`
		VolumeType string `xml:"volumeType,omitempty"`
		Iops       int    `xml:"iops,omitempty"`
		Throughput int    `xml:"throughput,omitempty"`
		SnapshotID string `xml:"snapshotId,omitempty"`
		Encrypted  *bool  `xml:"encrypted"`
		Delete     *bool  `xml:"deleteOnTermination"`
	}
	placementInfo struct {
		Zone    string `xml:"availabilityZone,omitempty"`
		HostID  string `xml:"hostId,omitempty"`
		Tenancy string `xml:"tenancy,omitempty"`
	}
	marketInfo struct {
		Type string `xml:"marketType"`
	}
	metadataInfo struct {
		Endpoint string `xml:"httpEndpoint,omitempty"`
		Tokens   string `xml:"httpTokens,omitempty"`
		IPv6     string `xml:"httpProtocolIpv6,omitempty"`
		HopLimit int    `xml:"httpPutResponseHopLimit,omitempty"`
		Tags     string `xml:"instanceMetadataTags,omitempty"`
	}
	tagSpecInfo struct {
		Type string             `xml:"resourceType"`
		Tags wire.Set[tagReply] `xml:"tagSet"`
	}
	reservationInfo struct {
		Preference string `xml:"capacityReservationPreference,omitempty"`
		ID         string `xml:"capacityReservationTarget>capacityReservationId,omitempty"`
	}
)

func dataToWire(d TemplateData) templateDataInfo {
	out := templateDataInfo{
		ImageID: d.ImageID, InstanceType: d.InstanceType, KeyName: d.KeyName, UserData: d.UserData, Groups: d.SecurityGroupIDs,
		Profile:   given(profileRef(d.IamInstanceProfile)),
		Placement: given(placementInfo{d.Placement.AvailabilityZone, d.Placement.HostID, d.Placement.Tenancy}),
		Market:    given(marketInfo{d.InstanceMarketOptions.MarketType}),
		Metadata: given(metadataInfo{
			d.MetadataOptions.Endpoint, d.MetadataOptions.Tokens, d.MetadataOptions.IPv6, d.MetadataOptions.HopLimit, d.MetadataOptions.Tags,
		}),
		Reservation: given(reservationInfo{
			d.CapacityReservationSpecification.CapacityReservationPreference,
			d.CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationID,
		}),
	}
	for _, n := range d.NetworkInterfaces {
		out.Interfaces = append(out.Interfaces, interfaceInfo{n.DeviceIndex, n.SubnetID, n.SecurityGroupIDs})
	}
	for _, b := range d.BlockDevices {
		out.Disks = append(out.Disks, diskInfo{b.DeviceName, ebsInfo{
			b.EBS.VolumeSize, b.EBS.VolumeType, b.EBS.Iops, b.EBS.Throughput, b.EBS.SnapshotID, b.EBS.Encrypted, b.EBS.DeleteOnTermination,
		}})
	}
	for _, spec := range d.TagSpecifications {
		out.Tags = append(out.Tags, tagSpecInfo{spec.ResourceType, tagsToWire(tagsFor(spec.ResourceType, []TagSpecification{spec}))})
	}
	return out
}

// given returns a pointer to a value, or nil for an empty one.
func given[T comparable](v T) *T {
	var none T
	if v == none {
		return nil
	}
	return &v
}
