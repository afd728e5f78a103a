package autoscaling

import (
	"maps"
	"slices"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/awsemu/wire"
)

// described is a group as it stands at one moment, with its members.
type described struct {
	group
	members []Member
}

// describe lists the groups, oldest first.
func (s *State) describe() []described {
	members := map[string][]Member{}
	for _, m := range s.Members() {
		members[m.Group] = append(members[m.Group], m)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]described, 0, len(s.order))
	for _, name := range s.order {
		out = append(out, described{*s.groups[name], members[name]})
	}
	return out
}

// The members of the answers (Amazon EC2 Auto Scaling API Reference, Data types).

type templateReply struct {
	ID      string `xml:"LaunchTemplateId"`
	Name    string `xml:"LaunchTemplateName"`
	Version string
}

func templateToWire(name string) *templateReply {
	if name == "" {
		return nil
	}
	return &templateReply{"lt-0a1f3f2be6c5d4e03", name, "1"}
}

// instanceReply is an instance in a group, or on its own if it names one.
type instanceReply struct {
	InstanceID       string `xml:"InstanceId"`
	Group            string `xml:"AutoScalingGroupName,omitempty"`
	InstanceType     string
	ImageID          string `xml:"ImageId"`
	AvailabilityZone string
	LifecycleState   LifecycleState
	HealthStatus     string
	LaunchTemplate   *templateReply
	Protected        bool `xml:"ProtectedFromScaleIn"`
}

// memberToWire names the group if that is given, as DescribeAutoScalingInstances does,
// which moreover writes the health in capitals.
func memberToWire(g described, m Member, groupName string) instanceReply {
	health := "Healthy"
	if m.Unhealthy {
		health = "Unhealthy"
	}
	if groupName != "" {
		health = map[string]string{"Healthy": "HEALTHY", "Unhealthy": "UNHEALTHY"}[health]
	}
	return instanceReply{
		InstanceID: m.InstanceID, Group: groupName, InstanceType: m.Type, ImageID: m.Image, AvailabilityZone: m.Zone,
		LifecycleState: m.State, HealthStatus: health, LaunchTemplate: templateToWire(g.LaunchTemplate), Protected: m.Protected,
	}
}

type tagReply struct {
	ResourceID        string `xml:"ResourceId"`
	ResourceType      string
	Key, Value        string
	PropagateAtLaunch bool
}

type poolConfiguration struct {
	MaxPrepared *int `xml:"MaxGroupPreparedCapacity"`
	MinSize     int
	PoolState   string
	Reuse       struct{ ReuseOnScaleIn bool } `xml:"InstanceReusePolicy"`
}

func poolToWire(g described) *poolConfiguration {
	if g.WarmPool == nil {
		return nil
	}
	out := &poolConfiguration{MaxPrepared: g.WarmPool.MaxPrepared, MinSize: g.WarmPool.MinSize}
	out.PoolState = string(g.pool()[len("Warmed:"):])
	out.Reuse.ReuseOnScaleIn = g.WarmPool.ReuseOnScaleIn
	return out
}

type groupReply struct {
	Name              string `xml:"AutoScalingGroupName"`
	ARN               string `xml:"AutoScalingGroupARN"`
	LaunchTemplate    *templateReply
	MinSize           int
	MaxSize           int
	DesiredCapacity   int
	DefaultCooldown   int
	AvailabilityZones wire.Members[string]
	HealthCheckType   string
	GracePeriod       int `xml:"HealthCheckGracePeriod"`
	CapacityRebalance bool
	Instances         wire.Members[instanceReply]
	CreatedTime       wire.Time
	Tags              wire.Members[tagReply]
	Policies          wire.Members[string] `xml:"TerminationPolicies"`
	NewProtected      bool                 `xml:"NewInstancesProtectedFromScaleIn"`
	Pool              *poolConfiguration   `xml:"WarmPoolConfiguration"`
	PoolSize          *int                 `xml:"WarmPoolSize"`
}

// groupToWire leaves out warm instances, which DescribeAutoScalingGroups does not list.
func groupToWire(g described, instances bool) groupReply {
	out := groupReply{
		Name: g.Name, ARN: g.arn, LaunchTemplate: templateToWire(g.LaunchTemplate), MinSize: g.Min, MaxSize: g.Max,
		DesiredCapacity: g.Desired, DefaultCooldown: 300, HealthCheckType: "EC2", CapacityRebalance: g.CapacityRebalance,
		CreatedTime: wire.Time{Time: g.created}, Policies: wire.Members[string]{"Default"}, Pool: poolToWire(g),
	}
	warm := 0
	for _, m := range g.members {
		if !slices.Contains(out.AvailabilityZones, m.Zone) {
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
	for _, key := range slices.Sorted(maps.Keys(g.Tags)) {
		out.Tags = append(out.Tags, tagReply{g.Name, "auto-scaling-group", key, g.Tags[key], true})
	}
	return out
}

type hookReply struct {
	Name             string `xml:"LifecycleHookName"`
	Group            string `xml:"AutoScalingGroupName"`
	Transition       string `xml:"LifecycleTransition"`
	Target           string `xml:"NotificationTargetARN,omitempty"`
	RoleARN          string `xml:",omitempty"`
	Metadata         string `xml:"NotificationMetadata,omitempty"`
	HeartbeatTimeout int
	GlobalTimeout    int
	DefaultResult    Result
}

func hookToWire(h Hook) hookReply {
	return hookReply{
		Name: h.Name, Group: h.Group, Transition: string(h.Transition), Target: h.NotificationTarget, RoleARN: h.RoleARN,
		Metadata: h.Metadata, HeartbeatTimeout: int(h.Heartbeat / time.Second), GlobalTimeout: int(h.total() / time.Second),
		DefaultResult: h.DefaultResult,
	}
}
