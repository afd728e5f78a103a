package ec2

import (
	"cmp"
	"maps"
	"slices"
)

// Volume is a disk of an instance.
type Volume struct {
	ID, DeviceName string // vol- and 17 hexadecimal digits; such as /dev/xvda
	// SizeGiB and Type are as requested, or those of the image.
	SizeGiB             int
	Type                string
	DeleteOnTermination bool
}

// rootDevice is the name of the first disk of the account's images.
const rootDevice = "/dev/xvda"

// attach creates the disks of a launch: the root volume and the requested ones. It needs the lock.
func (s *State) attach(input LaunchInput) []Volume {
	asked := input.BlockDevices
	if !slices.ContainsFunc(asked, func(b BlockDevice) bool { return b.DeviceName == rootDevice }) {
		asked = append([]BlockDevice{{DeviceName: rootDevice}}, asked...)
	}
	out := make([]Volume, 0, len(asked))
	for _, b := range asked {
		v := Volume{
			ID: newID("vol"), DeviceName: b.DeviceName, SizeGiB: cmp.Or(b.EBS.VolumeSize, 20), Type: cmp.Or(b.EBS.VolumeType, "gp3"),
			DeleteOnTermination: b.EBS.DeleteOnTermination == nil || *b.EBS.DeleteOnTermination,
		}
		s.tagged[v.ID] = tagged{"volume", merged(input.VolumeTags)}
		out = append(out, v)
	}
	return out
}

// detach deletes the disks of an instance. It needs the lock.
func (s *State) detach(in *instance) {
	for _, v := range in.Volumes {
		if v.DeleteOnTermination {
			delete(s.tagged, v.ID)
		}
	}
	in.Volumes = nil
}

// profileARN is the ARN of an instance profile, from its ARN or name.
func (s *State) profileARN(p InstanceProfile) string {
	if p.ARN != "" || p.Name == "" {
		return p.ARN
	}
	return "arn:" + s.scope.Partition() + ":iam::" + s.scope.Account + ":instance-profile/" + p.Name
}

// merged joins maps of tags; later values win.
func merged(tags ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range tags {
		maps.Copy(out, m)
	}
	return out
}
