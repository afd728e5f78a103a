package autoscaling

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// accesses are the permissions that a request needs (Service Authorization Reference, "Amazon EC2
// Auto Scaling"). Reading is not limited to groups.
func (s *State) accesses(r *wire.Request) []wire.Access {
	switch r.Action {
	case "CreateAutoScalingGroup":
		var in createInput
		if r.Decode(&in) != nil {
			return nil
		}
		all := []wire.Access{s.access(r.Action, in.Name, in.Tags)}
		if len(in.Tags) > 0 {
			all = append(all, s.access("CreateOrUpdateTags", in.Name, in.Tags))
		}
		return append(all, s.launchAccesses(in.settingsInput, in.Tags)...)
	case "UpdateAutoScalingGroup":
		var in settingsInput
		if r.Decode(&in) != nil {
			return nil
		}
		return append([]wire.Access{s.access(r.Action, in.Name, nil)}, s.launchAccesses(in, nil)...)
	case "CreateOrUpdateTags", "DeleteTags":
		var in tagsInput
		if r.Decode(&in) != nil {
			return nil
		}
		return s.tagAccesses(r.Action, in.Tags)
	}
	if strings.HasPrefix(r.Action, "Describe") {
		return nil
	}
	return []wire.Access{s.access(r.Action, s.subject(r), nil)}
}

// tagAccesses are the permissions to change tags: one for each group.
func (s *State) tagAccesses(action string, tags []tagInput) []wire.Access {
	byGroup := map[string][]tagInput{}
	for _, t := range tags {
		byGroup[t.ResourceID] = append(byGroup[t.ResourceID], t)
	}
	var all []wire.Access
	for _, name := range slices.Sorted(maps.Keys(byGroup)) {
		all = append(all, s.access(action, name, byGroup[name]))
	}
	return all
}

// access is the permission for an action on a group, with the tags of the group and the request.
func (s *State) access(action, groupName string, tags []tagInput) wire.Access {
	a := wire.Access{
		Action:   "autoscaling:" + action,
		Resource: cmp.Or(s.GroupARN(groupName), s.scope.ARN("autoscaling", "autoScalingGroup:*:autoScalingGroupName/"+groupName)),
		Keys:     map[string][]string{},
	}
	s.mu.Lock()
	if g := s.groups[groupName]; g != nil {
		maps.Copy(a.Keys, wire.TagKeys("aws:ResourceTag/", g.Tags))
		maps.Copy(a.Keys, wire.TagKeys("autoscaling:ResourceTag/", g.Tags))
	}
	s.mu.Unlock()
	for _, t := range tags {
		a.Keys["aws:RequestTag/"+t.Key] = []string{t.Value}
		a.Keys["aws:TagKeys"] = append(a.Keys["aws:TagKeys"], t.Key)
	}
	return a
}

// launchAccesses are the permissions for the launch template of a request. The caller needs them,
// although Auto Scaling launches with a role of its own (EC2 Auto Scaling User Guide, "Control
// Amazon EC2 launch template usage in Auto Scaling groups").
func (s *State) launchAccesses(in settingsInput, tags []tagInput) []wire.Access {
	var refs []ec2.TemplateRef
	if in.LaunchTemplate != nil {
		refs = append(refs, *in.LaunchTemplate)
	}
	if x := in.MixedInstancesPolicy; x != nil {
		refs = append(refs, x.LaunchTemplate.Specification)
		for _, o := range x.LaunchTemplate.Overrides {
			refs = append(refs, o.Specification)
		}
	}
	request := ec2.TemplateData{}
	for _, t := range tags {
		if t.PropagateAtLaunch {
			request.TagSpecifications = append(request.TagSpecifications, ec2.TagSpecification{
				ResourceType: "instance", Tags: []struct{ Key, Value string }{{t.Key, t.Value}},
			})
		}
	}
	var subnets []string
	if in.VPCZoneIdentifier != nil {
		subnets = split(*in.VPCZoneIdentifier)
	}
	var all []wire.Access
	for _, ref := range refs {
		if ref != (ec2.TemplateRef{}) {
			all = append(all, s.ec2.LaunchAccesses(ref, request, subnets)...)
		}
	}
	return all
}
