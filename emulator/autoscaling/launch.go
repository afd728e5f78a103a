package autoscaling

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// groupTag is the tag that Auto Scaling puts on the instances of a group (EC2 Auto Scaling
// User Guide, Tag Auto Scaling groups and instances).
const groupTag = "aws:autoscaling:groupName"

// subnets lists the subnets of a group. It needs the lock.
func (s *State) subnets(g *group) ([]ec2.Subnet, error) {
	all := s.ec2.Subnets()
	var out []ec2.Subnet
	for _, id := range g.Subnets {
		i := slices.IndexFunc(all, func(n ec2.Subnet) bool { return n.ID == id })
		if i < 0 {
			return nil, validation("The subnet ID '%s' does not exist", id)
		}
		if len(g.Zones) == 0 || slices.Contains(g.Zones, all[i].Zone) {
			out = append(out, all[i])
		}
	}
	if len(g.Subnets) > 0 {
		return out, nil
	}
	for _, zone := range g.Zones {
		i := slices.IndexFunc(all, func(n ec2.Subnet) bool { return n.Zone == zone })
		if i < 0 {
			return nil, validation("Invalid availability zones: [%s]", zone)
		}
		out = append(out, all[i])
	}
	if len(out) == 0 {
		return all, nil
	}
	return out, nil
}

// launch launches one instance into the group or its pool. It uses the given subnets, or else those
// in the zones with the fewest instances, which t counts and launch updates. The error is that of
// the first subnet. It needs the lock.
func (s *State) launch(g *group, j Transition, cause string, subnets []ec2.Subnet, t *memberCounts) (*member, error) {
	if subnets == nil {
		subnets = s.subnetsByCount(g, t, j == IntoPool)
	}
	spot := j != IntoPool && t.nextIsSpot(g)
	var first error
	for _, subnet := range subnets {
		in, ref, err := s.launchIn(g, subnet, spot)
		if err != nil {
			first = cmp.Or(first, err)
			continue
		}
		p, _ := j.path()
		m := s.join(g, in, p.end)
		m.Template, m.Protected = ref, g.ProtectNew && j != IntoPool
		s.startTransition(m, p, cause)
		t.add(m.Member)
		return m, nil
	}
	return nil, cmp.Or(first, validation("The group %s has no subnet to launch in", g.Name))
}

// launchIn launches one instance in a subnet. It needs the lock.
func (s *State) launchIn(g *group, subnet ec2.Subnet, spot bool) (ec2.Instance, ec2.TemplateRef, error) {
	system := map[string]string{groupTag: g.Name}
	if g.Mixed == nil {
		return s.ec2.LaunchTemplate(ec2.TemplateLaunch{
			Template: g.Template, SubnetID: subnet.ID, Tags: g.instanceTags(), SystemTags: system,
		})
	}
	fleet, err := s.ec2.CreateFleet(g.Mixed.fleet(subnet, spot, g.instanceTags(), system))
	if err != nil {
		return ec2.Instance{}, ec2.TemplateRef{}, err
	}
	if len(fleet.Instances) == 0 {
		err := errors.New("the fleet gave nothing")
		if len(fleet.Errors) > 0 {
			err = wire.Errorf(fleet.Errors[0].Code, "%s", fleet.Errors[0].Message)
		}
		return ec2.Instance{}, ec2.TemplateRef{}, err
	}
	made := fleet.Instances[0]
	in, _ := s.ec2.Instance(made.IDs[0])
	ref := made.Pool.Template
	if t, _, err := s.ec2.FindTemplate(ec2.TemplateRef{ID: ref.ID}); err == nil {
		ref.Name = t.Name
	}
	return in, ref, nil
}

// fleet is the request for one instance of a mixed group.
func (x *Mixed) fleet(subnet ec2.Subnet, spot bool, tags, system map[string]string) ec2.FleetInput {
	d := x.Distribution
	in := ec2.FleetInput{
		Type: "instant", SystemTags: system,
		Target:          ec2.FleetTarget{Total: 1, DefaultType: ec2.OnDemand},
		OnDemandOptions: ec2.FleetOptions{AllocationStrategy: cmp.Or(d.OnDemandStrategy, ec2.Prioritized)},
		SpotOptions: ec2.FleetOptions{
			AllocationStrategy: cmp.Or(d.SpotStrategy, ec2.LowestPrice), InstancePoolsToUseCount: d.SpotPools,
		},
		TagSpecifications: []ec2.TagSpecification{{ResourceType: "instance"}},
	}
	if spot {
		in.Target.DefaultType = ec2.Spot
	}
	for key, value := range tags {
		spec := &in.TagSpecifications[0]
		spec.Tags = append(spec.Tags, struct{ Key, Value string }{key, value})
	}
	overrides := x.Overrides
	if len(overrides) == 0 {
		overrides = []Override{{}}
	}
	for i, o := range overrides {
		priority := float64(i)
		in.Configs = append(in.Configs, ec2.FleetConfig{
			Template: withVersion(cmp.Or(o.Template, x.Template)),
			Overrides: []ec2.FleetOverride{{
				InstanceType: o.Type, ImageID: o.ImageID, SubnetID: subnet.ID, MaxPrice: d.SpotMaxPrice, Priority: &priority,
			}},
		})
	}
	return in
}

// withVersion is a template with a version, which fleets require.
func withVersion(ref ec2.TemplateRef) ec2.TemplateRef {
	ref.Version = cmp.Or(ref.Version, "$Default")
	return ref
}

// checkTemplates rejects a group whose launch templates do not exist. It needs the lock.
func (s *State) checkTemplates(g *group) error {
	refs := []ec2.TemplateRef{g.template()}
	if g.Mixed != nil {
		for _, o := range g.Mixed.Overrides {
			if o.Template != (ec2.TemplateRef{}) {
				refs = append(refs, o.Template)
			}
		}
	}
	for _, ref := range refs {
		if _, _, err := s.ec2.FindTemplate(ref); err != nil {
			return invalidTemplate(err)
		}
	}
	return nil
}

// resolved is the template of a group with its id, name and version number. If the template is
// deleted, it is as the group names it. It needs the lock.
func (s *State) resolved(ref ec2.TemplateRef) ec2.TemplateRef {
	t, v, err := s.ec2.FindTemplate(ref)
	if err != nil {
		return ref
	}
	return ec2.TemplateRef{ID: t.ID, Name: t.Name, Version: fmt.Sprint(v.Number)}
}

// current lists the templates that a group launches now, each with its id, name and number. It
// needs the lock.
func (s *State) current(g *group) []ec2.TemplateRef {
	refs := []ec2.TemplateRef{s.resolved(g.template())}
	if g.Mixed != nil {
		for _, o := range g.Mixed.Overrides {
			refs = append(refs, s.resolved(cmp.Or(o.Template, g.Mixed.Template)))
		}
	}
	return refs
}

// outdated reports whether a member was launched from a template that its group no longer uses.
func outdated(m Member, now []ec2.TemplateRef) bool {
	return m.Template == (ec2.TemplateRef{}) || !slices.Contains(now, m.Template)
}

// wantsSpot reports whether a group's template requests spot instances.
func (s *State) wantsSpot(g *group) bool {
	if g.Mixed != nil {
		return false
	}
	_, v, err := s.ec2.FindTemplate(g.Template)
	return err == nil && strings.EqualFold(v.Data.InstanceMarketOptions.MarketType, ec2.Spot)
}
