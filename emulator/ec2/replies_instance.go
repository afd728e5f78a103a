package ec2

import (
	"cmp"
	"fmt"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

type profileReply struct {
	ARN string `xml:"arn"`
	ID  string `xml:"id"`
}

// profileID is an id in IAM's format, stable for each profile.
func profileID(arn string) string { return fmt.Sprintf("AIPA%017X", hash(arn))[:21] }

// metadataReply holds the metadata options of an instance. Options that the launch omitted have
// EC2's defaults (EC2 API Reference, InstanceMetadataOptionsResponse).
type metadataReply struct {
	State    string `xml:"state"`
	Tokens   string `xml:"httpTokens"`
	HopLimit int    `xml:"httpPutResponseHopLimit"`
	Endpoint string `xml:"httpEndpoint"`
	IPv6     string `xml:"httpProtocolIpv6"`
	Tags     string `xml:"instanceMetadataTags"`
}

func metadataToWire(o MetadataOptions) *metadataReply {
	return &metadataReply{
		State: "applied", Tokens: cmp.Or(o.Tokens, "optional"), HopLimit: cmp.Or(o.HopLimit, 1), Endpoint: cmp.Or(o.Endpoint, "enabled"),
		IPv6: cmp.Or(o.IPv6, "disabled"), Tags: cmp.Or(o.Tags, "disabled"),
	}
}

type diskReply struct {
	DeviceName string   `xml:"deviceName"`
	EBS        ebsReply `xml:"ebs"`
}

type ebsReply struct {
	VolumeID   string    `xml:"volumeId"`
	Status     string    `xml:"status"`
	AttachTime wire.Time `xml:"attachTime"`
	Delete     bool      `xml:"deleteOnTermination"`
}

func disksToWire(in Instance) wire.Set[diskReply] {
	var out wire.Set[diskReply]
	for _, v := range in.Volumes {
		out = append(out, diskReply{v.DeviceName, ebsReply{v.ID, "attached", wire.Time{Time: in.LaunchTime}, v.DeleteOnTermination}})
	}
	return out
}
