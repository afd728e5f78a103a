package nodegroup

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
)

// Observe reads a group: three calls, one more if its template's version is not
// a number, and one per 50 warm instances. A missing group is not an error.
// cloud.IsDenied and cloud.IsBusy classify its errors. Denied reads of hooks,
// pool or template are not errors: the result marks them as unknown.
func (a *API) Observe(ctx context.Context, name string, now time.Time) (Observed, error) {
	o := Observed{Name: name, At: now}
	out, err := a.DescribeGroups(ctx, &sdk.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{name}})
	if err != nil {
		return o, failed("reading Auto Scaling group "+name, "autoscaling:DescribeAutoScalingGroups", err)
	}
	i := slices.IndexFunc(out.AutoScalingGroups, func(g types.AutoScalingGroup) bool { return aws.ToString(g.AutoScalingGroupName) == name })
	if i < 0 {
		return o, nil
	}
	o.read(out.AutoScalingGroups[i])
	if err := a.observeHooks(ctx, &o); err != nil {
		return o, err
	}
	if err := a.observePool(ctx, &o); err != nil {
		return o, err
	}
	a.resolve(ctx, o.Settings)
	return o, nil
}

func (o *Observed) read(g types.AutoScalingGroup) {
	o.Exists, o.ARN = true, aws.ToString(g.AutoScalingGroupARN)
	o.Deleting = aws.ToString(g.Status) != "" // it is set only during deletion (API Reference, AutoScalingGroup)
	o.Min, o.Max, o.Desired = aws.ToInt32(g.MinSize), aws.ToInt32(g.MaxSize), aws.ToInt32(g.DesiredCapacity)
	if g.Operator != nil {
		o.Operator = aws.ToString(g.Operator.Principal)
	}
	o.Tags = map[string]string{}
	for _, t := range g.Tags {
		o.Tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
		if aws.ToBool(t.PropagateAtLaunch) {
			o.Propagated = append(o.Propagated, aws.ToString(t.Key))
		}
	}
	for _, s := range g.SuspendedProcesses {
		o.Suspended = append(o.Suspended, Suspension{aws.ToString(s.ProcessName), aws.ToString(s.SuspensionReason)})
	}
	s := &Settings{CapacityRebalance: aws.ToBool(g.CapacityRebalance), Template: template(g.LaunchTemplate)}
	if subnets := aws.ToString(g.VPCZoneIdentifier); subnets != "" {
		for _, id := range strings.Split(subnets, ",") {
			s.Subnets = append(s.Subnets, strings.TrimSpace(id))
		}
	}
	if m := g.MixedInstancesPolicy; m != nil {
		s.Mixed, s.Inexpressible = mixed(m), inexpressible(m)
		if m.LaunchTemplate != nil {
			s.Template = template(m.LaunchTemplate.LaunchTemplateSpecification)
		}
	}
	if p := g.InstanceLifecyclePolicy; p != nil && p.RetentionTriggers != nil {
		s.Retain = p.RetentionTriggers.TerminateHookAbandon == types.RetentionActionRetain
	}
	o.Settings = s
	o.member(g.Instances)
	if p := g.WarmPoolConfiguration; p != nil {
		o.Pool = pool(p)
	}
	o.PoolKnown = true
}

// member adds instances, each once: DescribeWarmPool and
// DescribeAutoScalingGroups may both list an instance in transition.
func (o *Observed) member(list []types.Instance) {
	for _, i := range list {
		id := aws.ToString(i.InstanceId)
		if slices.ContainsFunc(o.Instances, func(known Instance) bool { return known.ID == id }) {
			continue
		}
		m := Instance{ID: id, State: string(i.LifecycleState), At: lifecycle.Read(string(i.LifecycleState))}
		if i.LaunchTemplate != nil {
			m.TemplateVersion = aws.ToString(i.LaunchTemplate.Version)
		}
		o.Instances = append(o.Instances, m)
	}
}

func template(t *types.LaunchTemplateSpecification) *v1beta1.LaunchTemplate {
	if t == nil {
		return nil
	}
	return &v1beta1.LaunchTemplate{ID: aws.ToString(t.LaunchTemplateId), Name: aws.ToString(t.LaunchTemplateName), Version: aws.ToString(t.Version)}
}

func pool(p *types.WarmPoolConfiguration) *Pool {
	out := &Pool{
		State: string(p.PoolState), Min: aws.ToInt32(p.MinSize), MaxPrepared: p.MaxGroupPreparedCapacity,
		Deleting: p.Status == types.WarmPoolStatusPendingDelete,
	}
	if out.State == "" {
		out.State = string(types.WarmPoolStateStopped)
	}
	if p.InstanceReusePolicy != nil {
		out.Reuse = aws.ToBool(p.InstanceReusePolicy.ReuseOnScaleIn)
	}
	return out
}

// observeHooks reads the hooks. If access is denied, HooksKnown stays false.
func (a *API) observeHooks(ctx context.Context, o *Observed) error {
	out, err := a.DescribeHooks(ctx, &sdk.DescribeLifecycleHooksInput{AutoScalingGroupName: &o.Name})
	switch {
	case isDenied(err), isNotFound(err):
		return nil
	case err != nil:
		return failed("reading the hooks of Auto Scaling group "+o.Name, "autoscaling:DescribeLifecycleHooks", err)
	}
	o.HooksKnown = true
	for _, h := range out.LifecycleHooks {
		o.Hooks = append(o.Hooks, Hook{
			Name: aws.ToString(h.LifecycleHookName), Terminating: strings.HasSuffix(aws.ToString(h.LifecycleTransition), "TERMINATING"),
			Timeout: time.Duration(aws.ToInt32(h.HeartbeatTimeout)) * time.Second,
			Global:  time.Duration(aws.ToInt32(h.GlobalTimeout)) * time.Second,
			// The default is ABANDON (API Reference, LifecycleHook).
			Abandons: aws.ToString(h.DefaultResult) != resultContinue,
			Target:   aws.ToString(h.NotificationTargetARN),
		})
	}
	return nil
}

// observePool reads the instances of the pool, which the group's own list
// omits.
func (a *API) observePool(ctx context.Context, o *Observed) error {
	in := &sdk.DescribeWarmPoolInput{AutoScalingGroupName: &o.Name}
	for o.Pool != nil {
		out, err := a.DescribePool(ctx, in)
		switch {
		case isDenied(err), isNotFound(err):
			o.PoolKnown = false
			return nil
		case err != nil:
			return failed("reading the warm pool of Auto Scaling group "+o.Name, "autoscaling:DescribeWarmPool", err)
		}
		if out.WarmPoolConfiguration != nil {
			o.Pool = pool(out.WarmPoolConfiguration)
		}
		o.member(out.Instances)
		if out.NextToken == nil {
			break
		}
		in.NextToken = out.NextToken
	}
	return nil
}

// resolve finds the number of a template version such as $Latest. If that
// fails, the number stays unknown and instances are compared with each other.
func (a *API) resolve(ctx context.Context, s *Settings) {
	if s == nil || s.Template == nil {
		return
	}
	t := s.Template
	if _, err := strconv.Atoi(t.Version); err == nil {
		s.Current = t.Version
		return
	}
	if a.DescribeTemplates == nil {
		return
	}
	in := &ec2.DescribeLaunchTemplatesInput{}
	if t.ID != "" {
		in.LaunchTemplateIds = []string{t.ID}
	} else {
		in.LaunchTemplateNames = []string{t.Name}
	}
	out, err := a.DescribeTemplates(ctx, in)
	if err != nil || len(out.LaunchTemplates) != 1 {
		return
	}
	number := out.LaunchTemplates[0].DefaultVersionNumber
	if t.Version == "$Latest" {
		number = out.LaunchTemplates[0].LatestVersionNumber
	}
	if number != nil {
		s.Current = strconv.FormatInt(*number, 10)
	}
}

func isDenied(err error) bool {
	switch awshttp.Code(err) {
	case "AccessDenied", "AccessDeniedException", "UnauthorizedOperation":
		return true
	}
	return false
}
