package nodegroup

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
)

// Apply performs one step of a plan. It is idempotent: if the change is already
// there, it returns nil. cloud.IsDenied and cloud.IsBusy classify its errors.
func (a *API) Apply(ctx context.Context, w Wanted, s Step) error {
	switch s.Verb {
	case CreateGroup:
		return a.create(ctx, w)
	case UpdateGroup:
		_, err := a.UpdateGroup(ctx, w.update(s))
		return failed("changing Auto Scaling group "+w.Group, "autoscaling:UpdateAutoScalingGroup, ec2:RunInstances and iam:PassRole for its launch template", err)
	case PutTags:
		return a.putTags(ctx, w, s)
	case PutHook:
		_, err := a.PutHook(ctx, w.putHook(s))
		return failed("putting hook "+s.Object, "autoscaling:PutLifecycleHook", err)
	case DeleteHook:
		return a.deleteHook(ctx, w, s.Object)
	case PutPool:
		return a.putPool(ctx, w)
	case DeletePool, DropPool:
		return a.deletePool(ctx, w, s.Verb == DropPool)
	case DeleteGroup:
		_, err := a.DeleteGroup(ctx, &sdk.DeleteAutoScalingGroupInput{AutoScalingGroupName: &w.Group})
		if isNotFound(err) {
			return nil
		}
		return failed("deleting Auto Scaling group "+w.Group, "autoscaling:DeleteAutoScalingGroup", err)
	}
	return fmt.Errorf("%s: unknown step", s.Verb)
}

// create creates the group with its hooks. It sets no desired capacity, so AWS
// uses MinSize.
func (a *API) create(ctx context.Context, w Wanted) error {
	in := &sdk.CreateAutoScalingGroupInput{
		AutoScalingGroupName: &w.Group, MinSize: aws.Int32(value(w.Spec.MinSize)), MaxSize: aws.Int32(value(w.Spec.MaxSize)),
		VPCZoneIdentifier: aws.String(strings.Join(w.Spec.Subnets, ",")),
		CapacityRebalance: w.Spec.CapacityRebalance, InstanceLifecyclePolicy: w.retention(), Tags: w.firstTags(),
	}
	in.LaunchTemplate, in.MixedInstancesPolicy = w.launches()
	for _, h := range []Hook{w.Launch, w.Terminate} {
		in.LifecycleHookSpecificationList = append(in.LifecycleHookSpecificationList, types.LifecycleHookSpecification{
			LifecycleHookName: aws.String(h.Name), LifecycleTransition: aws.String(h.transition()),
			DefaultResult: aws.String(h.result()), HeartbeatTimeout: wholeSeconds(h.Timeout),
		})
	}
	_, err := a.CreateGroup(ctx, in)
	if awshttp.Code(err) == "AlreadyExists" {
		return nil
	}
	return failed("creating Auto Scaling group "+w.Group, "autoscaling:CreateAutoScalingGroup and CreateOrUpdateTags, ec2:RunInstances and CreateTags, iam:PassRole for the template's instance profile and, once an account, iam:CreateServiceLinkedRole", err)
}

// launches returns the launch template or the mixed instances policy that
// contains it; the other is nil.
func (w Wanted) launches() (*types.LaunchTemplateSpecification, *types.MixedInstancesPolicy) {
	t := w.Spec.LaunchTemplate
	if t == nil {
		return nil, nil
	}
	spec := &types.LaunchTemplateSpecification{Version: aws.String(version(t))}
	if t.ID != "" {
		spec.LaunchTemplateId = &t.ID
	} else {
		spec.LaunchTemplateName = &t.Name
	}
	m := w.Spec.MixedInstances
	if m == nil {
		return spec, nil
	}
	policy := &types.MixedInstancesPolicy{
		LaunchTemplate: &types.LaunchTemplate{LaunchTemplateSpecification: spec},
		InstancesDistribution: &types.InstancesDistribution{
			OnDemandBaseCapacity: &m.OnDemandBase, OnDemandPercentageAboveBaseCapacity: &m.OnDemandPercent,
			SpotAllocationStrategy: aws.String(orDefault(m.SpotAllocationStrategy, usualSpot)),
		},
	}
	for _, name := range m.InstanceTypes {
		policy.LaunchTemplate.Overrides = append(policy.LaunchTemplate.Overrides, types.LaunchTemplateOverrides{InstanceType: &name})
	}
	return nil, policy
}

func (w Wanted) retention() *types.InstanceLifecyclePolicy {
	if w.Spec.RetainUndrained == nil {
		return nil
	}
	return &types.InstanceLifecyclePolicy{RetentionTriggers: &types.RetentionTriggers{
		TerminateHookAbandon: types.RetentionAction(retention(*w.Spec.RetainUndrained)),
	}}
}

// update contains only the settings that the step changes, and never the
// desired capacity.
func (w Wanted) update(s Step) *sdk.UpdateAutoScalingGroupInput {
	in := &sdk.UpdateAutoScalingGroupInput{AutoScalingGroupName: &w.Group}
	if s.changes(fieldMin) {
		in.MinSize = w.Spec.MinSize
	}
	if s.changes(fieldMax) {
		in.MaxSize = w.Spec.MaxSize
	}
	if s.changes(fieldTemplate) || s.changes(fieldMixed) {
		in.LaunchTemplate, in.MixedInstancesPolicy = w.launches()
	}
	if s.changes(fieldSubnets) {
		in.VPCZoneIdentifier = aws.String(strings.Join(w.Spec.Subnets, ","))
	}
	if s.changes(fieldRebalance) {
		in.CapacityRebalance = w.Spec.CapacityRebalance
	}
	if s.changes(fieldRetain) {
		in.InstanceLifecyclePolicy = w.retention()
	}
	return in
}

// firstTags are the tags of a group that Lifeboat creates. Instances get the
// declared tags and the cluster's tag.
func (w Wanted) firstTags() []types.Tag {
	var out []types.Tag
	for key := range w.tags() {
		out = append(out, w.tag(key, strings.HasPrefix(key, TagCluster)))
	}
	return out
}

// putTags sets only the tags that the step changes. Instances get the declared
// ones and those that already propagate. An existing group gets no new propagated
// tag: a key with a slash prevents launches if the instance metadata shows tags
// (EC2 User Guide, "Enable access to tags in instance metadata").
func (a *API) putTags(ctx context.Context, w Wanted, s Step) error {
	in := &sdk.CreateOrUpdateTagsInput{}
	for key := range w.tags() {
		if s.changes(fieldTag + key) {
			in.Tags = append(in.Tags, w.tag(key, slices.Contains(s.propagated, key)))
		}
	}
	if len(in.Tags) == 0 {
		return nil
	}
	_, err := a.PutTags(ctx, in)
	return failed("tagging Auto Scaling group "+w.Group, "autoscaling:CreateOrUpdateTags with the keys of spec.tags (--tag-keys)", err)
}

// tag is one of the group's tags. Instances get it if it is declared or
// propagated is set.
func (w Wanted) tag(key string, propagated bool) types.Tag {
	_, declared := w.Spec.Tags[key]
	return types.Tag{
		Key: &key, Value: aws.String(w.tags()[key]), PropagateAtLaunch: aws.Bool(declared || propagated),
		ResourceId: &w.Group, ResourceType: aws.String("auto-scaling-group"),
	}
}

// putHook contains all settings of the hook but its target, which AWS keeps if
// it is not given. Actions in progress continue (EC2 Auto Scaling API
// Reference, PutLifecycleHook).
func (w Wanted) putHook(s Step) *sdk.PutLifecycleHookInput {
	h := s.hook
	if h.Name == "" { // the step does not come from Diff
		h = w.Launch
		if s.Object == w.Terminate.Name {
			h = w.Terminate
		}
	}
	return &sdk.PutLifecycleHookInput{
		AutoScalingGroupName: &w.Group, LifecycleHookName: &h.Name, LifecycleTransition: aws.String(h.transition()),
		DefaultResult: aws.String(h.result()), HeartbeatTimeout: wholeSeconds(h.Timeout),
	}
}

// deleteHook reads the group again before the deletion: AWS would abandon an
// instance that started a transition since the plan.
func (a *API) deleteHook(ctx context.Context, w Wanted, name string) error {
	o, err := a.Observe(ctx, w.Group, time.Time{})
	if err != nil {
		return err
	}
	h, there := o.Hook(name)
	if !there {
		return nil
	}
	if err := Removable(o, h); err != nil {
		return err
	}
	_, err = a.DeleteHook(ctx, &sdk.DeleteLifecycleHookInput{AutoScalingGroupName: &w.Group, LifecycleHookName: &name})
	if isNotFound(err) {
		return nil
	}
	return failed("deleting hook "+name, "autoscaling:DeleteLifecycleHook", err)
}

func (a *API) putPool(ctx context.Context, w Wanted) error {
	p := w.Pool
	if p == nil {
		return nil
	}
	bound := p.MaxPrepared
	if bound == nil {
		bound = aws.Int32(unbounded)
	}
	_, err := a.PutPool(ctx, &sdk.PutWarmPoolInput{
		AutoScalingGroupName: &w.Group, MinSize: &p.Min, MaxGroupPreparedCapacity: bound, PoolState: types.WarmPoolState(p.State),
		InstanceReusePolicy: &types.InstanceReusePolicy{ReuseOnScaleIn: &p.Reuse},
	})
	return failed("putting the warm pool of Auto Scaling group "+w.Group, "autoscaling:PutWarmPool", err)
}

func (a *API) deletePool(ctx context.Context, w Wanted, force bool) error {
	_, err := a.DeletePool(ctx, &sdk.DeleteWarmPoolInput{AutoScalingGroupName: &w.Group, ForceDelete: &force})
	if isNotFound(err) {
		return nil
	}
	return failed("deleting the warm pool of Auto Scaling group "+w.Group, "autoscaling:DeleteWarmPool", err)
}

func wholeSeconds(d time.Duration) *int32 {
	return aws.Int32(int32(min(d/time.Second, math.MaxInt32))) //nolint:gosec // G115: min bounds it
}
