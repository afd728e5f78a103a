package ec2

import (
	"fmt"

	"github.com/lifeboat-dev/lifeboat/internal/awsemu/wire"
)

type profileReply struct {
	ARN string `xml:"arn"`
	ID  string `xml:"id"`
}

// profileID is an id as IAM gives them, the same for the same profile.
func profileID(arn string) string { return fmt.Sprintf("AIPA%017X", hash(arn))[:21] }

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
