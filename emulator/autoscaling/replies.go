package autoscaling

import (
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// described is a snapshot of a group, with its members and places.
type described struct {
	group
	members []Member
	shown   *templateReply // the template as the group names it
	zones   []string
}

// describe lists the groups, oldest first, with their instances as Describe calls show them.
func (s *State) describe() []described {
	s.mu.Lock()
	defer s.mu.Unlock()
	members := map[string][]Member{}
	for _, m := range s.visible() {
		members[m.Group] = append(members[m.Group], m)
	}
	out := make([]described, 0, len(s.order))
	for _, name := range s.order {
		g := s.groups[name]
		d := described{group: g.clone(), members: members[name], shown: stillTemplate(g.LaunchTemplate)}
		if g.hasTemplate() {
			if d.shown = s.named(g.Template); g.Mixed != nil {
				d.shown = nil
			}
			if places, err := s.subnets(g); err == nil {
				for _, n := range places {
					d.zones = append(d.zones, n.Zone)
				}
			}
		}
		out = append(out, d)
	}
	return out
}

// The members of the answers (Amazon EC2 Auto Scaling API Reference, Data types).

type templateReply struct {
	ID      string `xml:"LaunchTemplateId,omitempty"`
	Name    string `xml:"LaunchTemplateName,omitempty"`
	Version string `xml:",omitempty"`
}

// stillTemplate shows the template of a group that does not launch instances.
func stillTemplate(name string) *templateReply {
	if name == "" {
		return nil
	}
	return &templateReply{"lt-0a1f3f2be6c5d4e03", name, "1"}
}

// named shows a template by id and name, and the version as the group names it. It needs the lock.
func (s *State) named(ref ec2.TemplateRef) *templateReply {
	out := &templateReply{ref.ID, ref.Name, ref.Version}
	if full := s.resolved(ref); full.ID != "" {
		out.ID, out.Name = full.ID, full.Name
	}
	return out
}

// instanceReply is an instance in a group, or with the group's name on its own.
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

// memberToWire names the group if it is given, as DescribeAutoScalingInstances does. That call also
// writes the health in capitals.
func memberToWire(g described, m Member, groupName string) instanceReply {
	health := "Healthy"
	if m.Unhealthy {
		health = "Unhealthy"
	}
	if groupName != "" {
		health = map[string]string{"Healthy": "HEALTHY", "Unhealthy": "UNHEALTHY"}[health]
	}
	template := g.shown
	if m.Template != (ec2.TemplateRef{}) {
		template = &templateReply{m.Template.ID, m.Template.Name, m.Template.Version}
	} else if g.hasTemplate() {
		template = nil
	}
	return instanceReply{
		InstanceID: m.InstanceID, Group: groupName, InstanceType: m.Type, ImageID: m.Image, AvailabilityZone: m.Zone,
		LifecycleState: m.State, HealthStatus: health, LaunchTemplate: template, Protected: m.Protected,
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
	Status      string                        `xml:",omitempty"`
	Reuse       struct{ ReuseOnScaleIn bool } `xml:"InstanceReusePolicy"`
}

func poolToWire(g described) *poolConfiguration {
	if g.WarmPool == nil {
		return nil
	}
	out := &poolConfiguration{MaxPrepared: g.WarmPool.MaxPrepared, MinSize: g.WarmPool.MinSize}
	out.PoolState = string(g.pool()[len("Warmed:"):])
	if g.poolEnds {
		out.Status = "PendingDelete"
	}
	out.Reuse.ReuseOnScaleIn = g.WarmPool.ReuseOnScaleIn
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
