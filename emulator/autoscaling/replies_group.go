package autoscaling

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

type groupReply struct {
	Name               string `xml:"AutoScalingGroupName"`
	ARN                string `xml:"AutoScalingGroupARN"`
	LaunchTemplate     *templateReply
	Mixed              *mixedReply `xml:"MixedInstancesPolicy"`
	MinSize            int
	MaxSize            int
	DesiredCapacity    int
	DefaultCooldown    int
	AvailabilityZones  wire.Members[string]
	HealthCheckType    string
	GracePeriod        int `xml:"HealthCheckGracePeriod"`
	CapacityRebalance  bool
	Instances          wire.Members[instanceReply]
	CreatedTime        wire.Time
	SuspendedProcesses wire.Members[suspendedReply]
	VPCZoneIdentifier  string `xml:",omitempty"`
	Status             string `xml:",omitempty"`
	Tags               wire.Members[tagReply]
	Policies           wire.Members[string]  `xml:"TerminationPolicies"`
	NewProtected       bool                  `xml:"NewInstancesProtectedFromScaleIn"`
	Lifecycle          *lifecyclePolicyReply `xml:"InstanceLifecyclePolicy"`
	DeletionProtection string                `xml:",omitempty"`
	Operator           *operatorReply
	Pool               *poolConfiguration `xml:"WarmPoolConfiguration"`
	PoolSize           *int               `xml:"WarmPoolSize"`
}

type suspendedReply struct {
	Name   string `xml:"ProcessName"`
	Reason string `xml:"SuspensionReason"`
}

type lifecyclePolicyReply struct {
	Abandon string `xml:"RetentionTriggers>TerminateHookAbandon"`
}

type operatorReply struct{ Principal string }

type (
	mixedReply struct {
		Template     mixedTemplateReply `xml:"LaunchTemplate"`
		Distribution distributionReply  `xml:"InstancesDistribution"`
	}
	mixedTemplateReply struct {
		Specification templateReply `xml:"LaunchTemplateSpecification"`
		Overrides     wire.Members[overrideReply]
	}
	overrideReply struct {
		InstanceType  string         `xml:",omitempty"`
		ImageID       string         `xml:"ImageId,omitempty"`
		Specification *templateReply `xml:"LaunchTemplateSpecification"`
	}
	distributionReply struct {
		OnDemandAllocationStrategy          string
		OnDemandBaseCapacity                int
		OnDemandPercentageAboveBaseCapacity int
		SpotAllocationStrategy              string
		SpotInstancePools                   int    `xml:",omitempty"`
		SpotMaxPrice                        string `xml:",omitempty"`
	}
)

func mixedToWire(x *Mixed) *mixedReply {
	if x == nil {
		return nil
	}
	d := x.Distribution
	out := &mixedReply{
		Template: mixedTemplateReply{Specification: templateReply{x.Template.ID, x.Template.Name, x.Template.Version}},
		Distribution: distributionReply{
			cmp.Or(d.OnDemandStrategy, "prioritized"), d.OnDemandBase, 100, cmp.Or(d.SpotStrategy, "lowest-price"), d.SpotPools, d.SpotMaxPrice,
		},
	}
	given(&out.Distribution.OnDemandPercentageAboveBaseCapacity, d.OnDemandPercent)
	for _, o := range x.Overrides {
		reply := overrideReply{InstanceType: o.Type, ImageID: o.ImageID}
		if o.Template.ID+o.Template.Name != "" {
			reply.Specification = &templateReply{o.Template.ID, o.Template.Name, o.Template.Version}
		}
		out.Template.Overrides = append(out.Template.Overrides, reply)
	}
	return out
}

// groupToWire leaves out warm instances, which DescribeAutoScalingGroups does not list.
func groupToWire(g described, instances bool) groupReply {
	out := groupReply{
		Name: g.Name, ARN: g.arn, LaunchTemplate: g.shown, Mixed: mixedToWire(g.Mixed), MinSize: g.Min, MaxSize: g.Max,
		DesiredCapacity: g.Desired, DefaultCooldown: int(cmp.Or(g.Cooldown, defaultCooldown) / time.Second),
		HealthCheckType: cmp.Or(g.HealthCheckType, "EC2"), GracePeriod: int(g.GracePeriod / time.Second), CapacityRebalance: g.CapacityRebalance,
		CreatedTime: wire.Time{Time: g.created}, VPCZoneIdentifier: strings.Join(g.Subnets, ","), AvailabilityZones: g.zones,
		Tags: tagsToWire(g), Policies: g.Policies, NewProtected: g.ProtectNew, DeletionProtection: g.DeletionProtection, Pool: poolToWire(g),
	}
	g.extras(&out)
	warm := 0
	for _, m := range g.members {
		if !g.hasTemplate() && !slices.Contains(out.AvailabilityZones, m.Zone) {
			out.AvailabilityZones = append(out.AvailabilityZones, m.Zone)
		}
		switch {
		case m.State.warm():
			warm++
		case instances:
			out.Instances = append(out.Instances, memberToWire(g, m, ""))
		}
	}
	if g.WarmPool != nil {
		out.PoolSize = &warm
	}
	return out
}

// extras adds the optional fields of a group.
func (g described) extras(out *groupReply) {
	if len(out.Policies) == 0 {
		out.Policies = wire.Members[string]{"Default"}
	}
	if g.deleting {
		out.Status = "Delete in progress"
	}
	if g.Retain {
		out.Lifecycle = &lifecyclePolicyReply{"retain"}
	}
	if g.Operator != "" {
		out.Operator = &operatorReply{g.Operator}
	}
	for _, p := range slices.Sorted(maps.Keys(g.suspended)) {
		out.SuspendedProcesses = append(out.SuspendedProcesses, suspendedReply{string(p), "User suspended at " + g.suspended[p].Format("2006-01-02T15:04:05Z")})
	}
}

// groupResource is the resource type of a group's tags.
const groupResource = "auto-scaling-group"

func tagsToWire(g described) []tagReply {
	var out []tagReply
	for _, key := range slices.Sorted(maps.Keys(g.Tags)) {
		out = append(out, tagReply{g.Name, groupResource, key, g.Tags[key], !slices.Contains(g.NotPropagated, key)})
	}
	return out
}
