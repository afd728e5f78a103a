package ec2

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// accesses are the permissions that a request needs (Service Authorization Reference, "Amazon
// EC2"). It lists those of actions on instances and tags, and of launches. Other actions need
// their own name, on any resource.
func (a *api) accesses(r *wire.Request) []wire.Access {
	switch r.Action {
	case "RebootInstances", "StartInstances", "StopInstances", "TerminateInstances":
		var in idsInput
		if r.Decode(&in) != nil {
			return nil
		}
		return a.state.idAccesses("ec2:"+r.Action, in.InstanceIDs, nil)
	case "CreateTags", "DeleteTags":
		var in tagsInput
		if r.Decode(&in) != nil {
			return nil
		}
		return a.state.idAccesses("ec2:"+r.Action, in.ResourceIDs, requestTags(in.tags()))
	case "RunInstances":
		var in runInput
		if r.Decode(&in) != nil {
			return nil
		}
		return a.state.LaunchAccesses(in.LaunchTemplate, in.TemplateData, slices.DeleteFunc([]string{in.SubnetID}, isEmpty))
	}
	return nil
}

func isEmpty(s string) bool { return s == "" }

// requestTags are the condition keys for the tags of a request.
func requestTags(tags map[string]string) map[string][]string {
	keys := wire.TagKeys("aws:RequestTag/", tags)
	keys["aws:TagKeys"] = slices.Sorted(maps.Keys(tags))
	return keys
}

// idAccesses are the permissions for an action on resources, with their tags.
func (s *State) idAccesses(action string, ids []string, keys map[string][]string) []wire.Access {
	var all []wire.Access
	for _, id := range ids {
		s.mu.Lock()
		var tags map[string]string
		if found, err := s.tagsOf([]string{id}); err == nil {
			tags = maps.Clone(found[0])
		}
		s.mu.Unlock()
		a := wire.Access{Action: action, Resource: s.resourceARN(kindOf(id) + "/" + id), Keys: map[string][]string{}}
		maps.Copy(a.Keys, wire.TagKeys("aws:ResourceTag/", tags))
		maps.Copy(a.Keys, wire.TagKeys("ec2:ResourceTag/", tags))
		maps.Copy(a.Keys, keys)
		all = append(all, a)
	}
	return all
}

// kindOf is the type of a resource in ARNs, by the prefix of its id.
func kindOf(id string) string {
	prefix, _, _ := strings.Cut(id, "-")
	kinds := map[string]string{
		"i": "instance", "vol": "volume", "lt": "launch-template", "sg": "security-group", "subnet": "subnet",
		"sir": "spot-instances-request", "fleet": "fleet", "vpc": "vpc", "eni": "network-interface",
	}
	if kind, ok := kinds[prefix]; ok {
		return kind
	}
	return prefix
}

func (s *State) resourceARN(resource string) string { return s.scope.ARN("ec2", resource) }

// foreign is the ARN of a resource that names no account, such as an image.
func (s *State) foreign(resource string) string {
	return "arn:" + s.scope.Partition() + ":ec2:" + s.scope.Region + "::" + resource
}

// LaunchAccesses are the permissions to launch instances into subnets. The parameters of the request
// replace those of the template (EC2 User Guide, "Use launch templates to control launching
// instances"). A zero ref means that the request has all parameters itself.
func (s *State) LaunchAccesses(ref TemplateRef, request TemplateData, subnets []string) []wire.Access {
	l := launchAccess{state: s, keys: map[string][]string{}}
	var template TemplateData
	if ref != (TemplateRef{}) {
		t, v, err := s.FindTemplate(ref)
		if err != nil {
			return nil // the call itself fails
		}
		template = v.Data
		l.keys["ec2:LaunchTemplate"] = []string{s.resourceARN("launch-template/" + t.ID)}
		l.add(s.resourceARN("launch-template/"+t.ID), true)
	}
	fromTemplate := ref != (TemplateRef{})
	l.add(s.resourceARN("instance/*"), fromTemplate)
	l.add(s.resourceARN("volume/*"), fromTemplate)
	l.resources(template, request, subnets)
	merged := request.over(template)
	l.tags(merged)
	if role := s.roleOf(merged.IamInstanceProfile); role != "" {
		l.all = append(l.all, wire.Access{
			Action: "iam:PassRole", Resource: role, Keys: map[string][]string{"iam:PassedToService": {"ec2.amazonaws.com"}},
		})
	}
	return l.all
}

// roleOf is the role of an instance profile; empty: there is no profile, or it has no role.
func (s *State) roleOf(p InstanceProfile) string {
	name := p.Name
	if name == "" {
		name = p.ARN[strings.LastIndex(p.ARN, "/")+1:]
	}
	if name == "" || s.profileRole == nil {
		return ""
	}
	return s.profileRole(name)
}

// launchAccess collects the permissions of a launch.
type launchAccess struct {
	state *State
	keys  map[string][]string
	all   []wire.Access
}

// add requires ec2:RunInstances on a resource. The template names it, or the request itself.
func (l *launchAccess) add(arn string, ofTemplate bool) {
	keys := maps.Clone(l.keys)
	keys["ec2:IsLaunchTemplateResource"] = []string{strconv.FormatBool(ofTemplate)}
	l.all = append(l.all, wire.Access{Action: "ec2:RunInstances", Resource: arn, Keys: keys})
}

// named adds the values of a parameter: those of the request, or else those of the template.
func (l *launchAccess) named(arn func(string) string, kind string, ofRequest, ofTemplate []string) {
	values, template := slices.DeleteFunc(ofRequest, isEmpty), false
	if len(values) == 0 {
		values, template = slices.DeleteFunc(ofTemplate, isEmpty), true
	}
	for _, v := range values {
		l.add(arn(kind+"/"+v), template)
	}
}

// resources adds what parameters name. Security groups that no parameter names are left out:
// the documentation does not say what AWS checks for the default group.
func (l *launchAccess) resources(template, request TemplateData, subnets []string) {
	s := l.state
	l.named(s.foreign, "image", []string{request.ImageID}, []string{template.ImageID})
	l.named(s.foreign, "snapshot", snapshots(request), snapshots(template))
	l.named(s.resourceARN, "key-pair", []string{request.KeyName}, []string{template.KeyName})
	l.named(s.resourceARN, "security-group", groups(request), groups(template))
	l.named(s.resourceARN, "capacity-reservation", reservationOf(request), reservationOf(template))
	l.named(s.resourceARN, "placement-group", []string{request.Placement.GroupName}, []string{template.Placement.GroupName})
	l.named(s.resourceARN, "dedicated-host", []string{request.Placement.HostID}, []string{template.Placement.HostID})
	l.named(s.resourceARN, "subnet", append(subnetsOf(request), subnets...), subnetsOf(template))
	l.add(s.resourceARN("network-interface/*"), len(subnets)+len(request.NetworkInterfaces) == 0 && len(template.NetworkInterfaces) > 0)
}

func snapshots(d TemplateData) []string {
	var out []string
	for _, b := range d.BlockDevices {
		out = append(out, b.EBS.SnapshotID)
	}
	return out
}

func groups(d TemplateData) []string {
	out := slices.Clone(d.SecurityGroupIDs)
	for _, n := range d.NetworkInterfaces {
		out = append(out, n.SecurityGroupIDs...)
	}
	return out
}

func subnetsOf(d TemplateData) []string {
	var out []string
	for _, n := range d.NetworkInterfaces {
		out = append(out, n.SubnetID)
	}
	return slices.DeleteFunc(out, isEmpty)
}

func reservationOf(d TemplateData) []string {
	return []string{d.CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationID}
}

// tags requires ec2:CreateTags for what is launched with tags.
func (l *launchAccess) tags(d TemplateData) {
	kinds := map[string]bool{}
	for _, spec := range d.TagSpecifications {
		kinds[spec.ResourceType] = true
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		keys := requestTags(tagsFor(kind, d.TagSpecifications))
		keys["ec2:CreateAction"] = []string{"RunInstances"}
		l.all = append(l.all, wire.Access{Action: "ec2:CreateTags", Resource: l.state.resourceARN(kind + "/*"), Keys: keys})
	}
}
