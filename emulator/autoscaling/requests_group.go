package autoscaling

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// settingsInput is what CreateAutoScalingGroup and UpdateAutoScalingGroup have in common.
type settingsInput struct {
	Name                   string `query:"AutoScalingGroupName"`
	MinSize, MaxSize       *int
	DesiredCapacity        *int
	DefaultCooldown        *int
	HealthCheckGracePeriod *int
	HealthCheckType        *string
	LaunchTemplate         *ec2.TemplateRef
	MixedInstancesPolicy   *mixedInput
	VPCZoneIdentifier      *string
	AvailabilityZones      []string
	CapacityRebalance      *bool
	NewProtected           *bool `query:"NewInstancesProtectedFromScaleIn"`
	TerminationPolicies    []string
	LifecyclePolicy        *lifecyclePolicyInput `query:"InstanceLifecyclePolicy"`
	DeletionProtection     string

	// Parameters that the emulator does not support.
	AvailabilityZoneIDs     []string `query:"AvailabilityZoneIds"`
	LaunchConfigurationName string
	InstanceID              string `query:"InstanceId"`
	DesiredCapacityType     string
}

type lifecyclePolicyInput struct {
	RetentionTriggers struct{ TerminateHookAbandon string }
}

type mixedInput struct {
	LaunchTemplate struct {
		Specification ec2.TemplateRef `query:"LaunchTemplateSpecification"`
		Overrides     []overrideInput
	}
	Distribution struct {
		OnDemandAllocationStrategy string
		OnDemandBaseCapacity       int
		OnDemandPercentage         *int `query:"OnDemandPercentageAboveBaseCapacity"`
		SpotAllocationStrategy     string
		SpotInstancePools          int
		SpotMaxPrice               string
	} `query:"InstancesDistribution"`
}

type overrideInput struct {
	InstanceType     string
	ImageID          string          `query:"ImageId"`
	Specification    ec2.TemplateRef `query:"LaunchTemplateSpecification"`
	WeightedCapacity string
	Requirements     *struct{} `query:"InstanceRequirements"`
}

// mixed makes a policy of a request.
func (in *mixedInput) mixed() (*Mixed, error) {
	d := in.Distribution
	x := &Mixed{Template: in.LaunchTemplate.Specification, Distribution: Distribution{
		OnDemandStrategy: d.OnDemandAllocationStrategy, OnDemandBase: d.OnDemandBaseCapacity, OnDemandPercent: d.OnDemandPercentage,
		SpotStrategy: d.SpotAllocationStrategy, SpotPools: d.SpotInstancePools, SpotMaxPrice: d.SpotMaxPrice,
	}}
	for _, o := range in.LaunchTemplate.Overrides {
		if o.WeightedCapacity != "" || o.Requirements != nil {
			return nil, validation("This emulator supports neither WeightedCapacity nor InstanceRequirements: name instance types.")
		}
		x.Overrides = append(x.Overrides, Override{Type: o.InstanceType, ImageID: o.ImageID, Template: o.Specification})
	}
	if p := d.OnDemandPercentage; p != nil && (*p < 0 || *p > 100) {
		return nil, constraint(*p, "onDemandPercentageAboveBaseCapacity", "have value between 0 and 100")
	}
	return x, nil
}

// checkSupported rejects settings that would change the group's behaviour and that the emulator
// does not support.
func (in *settingsInput) checkSupported() error {
	switch {
	case in.InstanceID != "" || in.LaunchConfigurationName != "":
		return validation("This emulator supports neither InstanceId nor LaunchConfigurationName: use LaunchTemplate or MixedInstancesPolicy.")
	case len(in.AvailabilityZoneIDs) > 0:
		return validation("This emulator does not play AvailabilityZoneIds: use AvailabilityZones.")
	case in.DesiredCapacityType != "" && in.DesiredCapacityType != "units":
		return validation("This emulator plays the DesiredCapacityType units only.")
	default:
		return nil
	}
}

// apply copies the settings of a request to a group.
func (in *settingsInput) apply(g *Group) error {
	if err := in.checkSupported(); err != nil {
		return err
	}
	given(&g.Min, in.MinSize)
	given(&g.Max, in.MaxSize)
	given(&g.Desired, in.DesiredCapacity)
	given(&g.CapacityRebalance, in.CapacityRebalance)
	given(&g.ProtectNew, in.NewProtected)
	given(&g.HealthCheckType, in.HealthCheckType)
	seconds(&g.Cooldown, in.DefaultCooldown)
	seconds(&g.GracePeriod, in.HealthCheckGracePeriod)
	if in.LaunchTemplate != nil {
		g.Template, g.Mixed = *in.LaunchTemplate, nil
	}
	if in.MixedInstancesPolicy != nil {
		x, err := in.MixedInstancesPolicy.mixed()
		if err != nil {
			return err
		}
		g.Template, g.Mixed = ec2.TemplateRef{}, x
	}
	if in.VPCZoneIdentifier != nil {
		g.Subnets = split(*in.VPCZoneIdentifier)
	}
	if len(in.AvailabilityZones) > 0 {
		g.Zones = in.AvailabilityZones
	}
	if len(in.TerminationPolicies) > 0 {
		g.Policies = in.TerminationPolicies
	}
	if in.LifecyclePolicy != nil {
		g.Retain = in.LifecyclePolicy.RetentionTriggers.TerminateHookAbandon == "retain"
	}
	g.DeletionProtection = cmp.Or(in.DeletionProtection, g.DeletionProtection)
	return nil
}

func given[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

func seconds(to *time.Duration, from *int) {
	if from != nil {
		*to = time.Duration(*from) * time.Second
	}
}

// split reads a list with commas.
func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

type createInput struct {
	settingsInput

	Tags     []tagInput
	Hooks    []hookInput `query:"LifecycleHookSpecificationList"`
	Operator *struct{ Principal string }
}

// check rejects a new group with missing settings.
func (in *createInput) check(g Group) error {
	switch {
	case in.Name == "":
		return constraint("", "autoScalingGroupName", "not be null")
	case in.MinSize == nil:
		return constraint("", "minSize", "not be null")
	case in.MaxSize == nil:
		return constraint("", "maxSize", "not be null")
	case in.LaunchTemplate == nil && in.MixedInstancesPolicy == nil:
		return validation("Valid requests must contain either LaunchTemplate, LaunchConfigurationName, InstanceId or MixedInstancesPolicy parameter.")
	case in.LaunchTemplate != nil && in.MixedInstancesPolicy != nil:
		return validation("Valid requests must contain either LaunchTemplate or MixedInstancesPolicy parameter, but not both.")
	case len(g.Subnets)+len(g.Zones) == 0:
		return validation("At least one Availability Zone or VPC Subnet is required.")
	case in.DesiredCapacity != nil:
		return checkSizes(g.Min, g.Max, g.Desired)
	default:
		return nil
	}
}

func (a *api) createGroup(_ context.Context, _ *wire.Request, in *createInput) (*wire.None, error) {
	g := Group{Name: in.Name, Cooldown: defaultCooldown}
	if err := in.apply(&g); err != nil {
		return nil, err
	}
	if err := in.check(g); err != nil {
		return nil, err
	}
	if in.Operator != nil {
		g.Operator = in.Operator.Principal
	}
	g.Tags = map[string]string{}
	for _, t := range in.Tags {
		t.put(&g)
	}
	for _, h := range in.Hooks {
		hook, err := h.hook(g.Name, Hook{})
		if err != nil {
			return nil, err
		}
		g.Hooks = append(g.Hooks, hook)
	}
	return nil, a.state.CreateGroup(g)
}

// defaultCooldown is the cooldown of a group that sets none.
const defaultCooldown = 300 * time.Second

func (a *api) updateGroup(_ context.Context, _ *wire.Request, in *settingsInput) (*wire.None, error) {
	return nil, a.state.Update(in.Name, in.apply)
}

type deleteInput struct {
	Group string `query:"AutoScalingGroupName"`
	Force bool   `query:"ForceDelete"`
}

func (a *api) deleteGroup(_ context.Context, _ *wire.Request, in *deleteInput) (*wire.None, error) {
	return nil, a.state.DeleteGroup(in.Group, in.Force)
}

type desiredInput struct {
	Group         string `query:"AutoScalingGroupName"`
	Desired       *int   `query:"DesiredCapacity"`
	HonorCooldown bool
}

func (a *api) setDesired(_ context.Context, _ *wire.Request, in *desiredInput) (*wire.None, error) {
	if in.Desired == nil {
		return nil, constraint("", "desiredCapacity", "not be null")
	}
	return nil, a.state.SetDesired(in.Group, *in.Desired, in.HonorCooldown)
}

type processesInput struct {
	Group     string    `query:"AutoScalingGroupName"`
	Processes []Process `query:"ScalingProcesses"`
}

func (a *api) suspend(_ context.Context, _ *wire.Request, in *processesInput) (*wire.None, error) {
	return nil, a.state.Suspend(in.Group, in.Processes)
}

func (a *api) resume(_ context.Context, _ *wire.Request, in *processesInput) (*wire.None, error) {
	return nil, a.state.Resume(in.Group, in.Processes)
}
