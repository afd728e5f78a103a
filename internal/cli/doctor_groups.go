package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsas "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/awshttp"
	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/finding"
	"github.com/lifeboat-dev/lifeboat/internal/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/diagnose"
)

// mostGroups bounds how many groups are looked at: each takes three calls, of a rate
// that the whole account shares.
const mostGroups = 60

// seenGroup is an Auto Scaling group of the cluster as it was found.
type seenGroup struct {
	// object is the NodeGroup that stands for it; nil: none does.
	object *v1alpha1.NodeGroup
	wanted nodegroup.Wanted
	there  nodegroup.Observed
}

// lookAtGroups finds the cluster's Auto Scaling groups: those that NodeGroups name,
// those that its nodes are in, and those with its tags. It fills d.seen; what went
// wrong is told by who reports on groups.
func (d *examination) lookAtGroups(ctx context.Context) {
	d.progress.Step("looking at Auto Scaling groups")
	if d.groupsFailed = d.findGroups(ctx); d.groupsFailed == nil {
		return
	}
	if awshttp.IsDenied(d.groupsFailed) {
		d.groupsDenied, d.groupsFailed = d.groupsFailed, nil
	}
}

func (d *examination) findGroups(ctx context.Context) error {
	cfg, err := d.placedConfig(ctx)
	if err != nil {
		return nil // who looks at the wiring says so
	}
	objects, err := d.nodeGroupObjects(ctx)
	if err != nil {
		return err
	}
	if d.kube != nil {
		if d.nodes, err = d.kube.nodes(ctx); err != nil {
			return err
		}
	}
	api := nodegroup.NewAPI(cfg)
	names, err := d.groupNames(ctx, api, objects)
	if err != nil {
		return awsError{err}
	}
	if len(names) > mostGroups {
		d.notes = append(d.notes, fmt.Sprintf("Only %d of %d Auto Scaling groups were looked at.", mostGroups, len(names)))
		names = names[:mostGroups]
	}
	for _, name := range names {
		g := seenGroup{wanted: nodegroup.Want(&v1alpha1.NodeGroup{Spec: v1alpha1.NodeGroupSpec{AutoScalingGroup: name}}, d.clusterName())}
		if i := slices.IndexFunc(objects, func(o v1alpha1.NodeGroup) bool { return nodegroup.Name(&o) == name }); i >= 0 {
			g.object, g.wanted = &objects[i], nodegroup.Want(&objects[i], d.clusterName())
		}
		if g.there, err = api.Observe(ctx, name, d.now()); err != nil {
			return awsError{err}
		}
		d.seen = append(d.seen, g)
	}
	return d.lookAtMetadata(ctx, ec2.NewFromConfig(cfg).DescribeInstances)
}

// clusterName is the name of the cluster, as far as it is known.
func (d *examination) clusterName() string {
	if d.kube != nil {
		return cmp.Or(d.flags.cluster, d.kube.name)
	}
	return d.flags.cluster
}

// placedConfig is how to reach AWS in the cluster's region.
func (d *examination) placedConfig(ctx context.Context) (aws.Config, error) {
	cfg, sandbox, err := d.awsConfig(ctx)
	if err != nil {
		return aws.Config{}, err
	}
	cfg.Region = cmp.Or(d.flags.region, diagnose.RegionOfQueue(cmp.Or(d.flags.queueURL, sandbox.queueURL)), cfg.Region)
	if cfg.Region == "" {
		return aws.Config{}, &aws.MissingRegionError{}
	}
	return cfg, nil
}

// nodeGroupObjects are the cluster's NodeGroups. A cluster that does not know them
// has none.
func (d *examination) nodeGroupObjects(ctx context.Context) ([]v1alpha1.NodeGroup, error) {
	if d.kube == nil {
		return nil, nil
	}
	var all v1alpha1.NodeGroupList
	if err := d.kube.list(ctx, "NodeGroups", &all); err != nil {
		if command.IsNotInstalled(err) {
			return nil, nil
		}
		return nil, err
	}
	return all.Items, nil
}

// groupNames are the names of the cluster's groups, those with a NodeGroup first.
func (d *examination) groupNames(ctx context.Context, api *nodegroup.API, objects []v1alpha1.NodeGroup) ([]string, error) {
	var named, others []string
	for i := range objects {
		named = append(named, nodegroup.Name(&objects[i]))
	}
	in := &awsas.DescribeAutoScalingGroupsInput{MaxRecords: aws.Int32(100)}
	for {
		page, err := api.DescribeGroups(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("listing Auto Scaling groups: %w", err)
		}
		for _, g := range page.AutoScalingGroups {
			if name := aws.ToString(g.AutoScalingGroupName); !slices.Contains(named, name) && d.isOfCluster(g) {
				others = append(others, name)
			}
		}
		if aws.ToString(page.NextToken) == "" {
			return append(named, others...), nil
		}
		in.NextToken = page.NextToken
	}
}

// isOfCluster tells whether a group is the cluster's: by its tags (those that
// `lifeboat wire iam` goes by), or since one of the nodes is in it.
func (d *examination) isOfCluster(g types.AutoScalingGroup) bool {
	name := d.clusterName()
	for _, t := range g.Tags {
		key, value := aws.ToString(t.Key), aws.ToString(t.Value)
		if name != "" && (key == "kubernetes.io/cluster/"+name || key == "eks:cluster-name" && value == name) {
			return true
		}
	}
	return slices.ContainsFunc(g.Instances, func(i types.Instance) bool { return d.nodeOf(aws.ToString(i.InstanceId)) != nil })
}

// nodeOf is the node of an instance, or nil.
func (d *examination) nodeOf(instance string) *corev1.Node {
	for i := range d.nodes {
		if nodeindex.InstanceID(&d.nodes[i]) == instance {
			return &d.nodes[i]
		}
	}
	return nil
}

// answered tells whether the controller answers hooks of a name in any group: by the
// patterns that it was given, or else by its own.
func (d *examination) answered(hook string) bool {
	patterns := d.hookPatterns
	if len(patterns) == 0 {
		patterns = []string{"lifeboat-*"}
	}
	return slices.ContainsFunc(patterns, func(p string) bool {
		fits, err := path.Match(strings.TrimSpace(p), hook)
		return err == nil && fits
	})
}

// known are the groups as the rules are held against them.
func (d *examination) known() []diagnose.Group {
	var all []diagnose.Group
	for _, g := range d.seen {
		out := diagnose.Group{Name: g.there.Name}
		for _, h := range g.there.Hooks {
			named := g.object != nil && (h.Name == g.wanted.Launch.Name || h.Name == g.wanted.Terminate.Name)
			out.Hooks = append(out.Hooks, diagnose.Hook{Name: h.Name, Terminating: h.Terminating, Own: named || d.answered(h.Name), Timeout: h.Timeout, Target: h.Target})
		}
		all = append(all, out)
	}
	return all
}

// nodeGroups reports on the groups that were looked at.
func (d *examination) nodeGroups(ctx context.Context) ([]finding.Finding, error) {
	all, err := d.refusedAnswers(ctx)
	if d.groupsDenied != nil {
		all = append(all, finding.Finding{
			Severity: finding.Unknown, ID: groupsNotSeen, Object: "Auto Scaling groups",
			Problem: "they were not looked at, nor their hooks and warm pools: " + d.groupsDenied.Error(),
			Fix:     "allow autoscaling:DescribeAutoScalingGroups, DescribeLifecycleHooks and DescribeWarmPool, and ec2:DescribeInstances: `lifeboat wire iam` prints the policy",
		})
	}
	for _, g := range d.seen {
		all = append(all, judgeGroup(g, d.putHooks())...)
		all = append(all, judgeMembers(g, d.nodes)...)
	}
	return append(all, judgeMetadata(d.metadata, d.seen)...), errors.Join(err, d.groupsFailed)
}

// putHooks is the command that puts hooks on all groups that can have them: it also
// has the rules hear of these groups only.
func (d *examination) putHooks() string {
	var names []string
	for _, g := range d.seen {
		if !g.ofEKS() {
			names = append(names, g.there.Name)
		}
	}
	return fmt.Sprintf("lifeboat wire apply --cluster %s --groups %s", cmp.Or(d.clusterName(), "NAME"), strings.Join(names, ","))
}

// ofEKS tells whether EKS looks after the group: it has hooks of its own for these,
// and answers them.
func (g seenGroup) ofEKS() bool {
	return g.there.Operator != "" || g.there.Tags["eks:nodegroup-name"] != ""
}

// judgeGroup says what is wrong with a group. Of one that no NodeGroup stands for
// less is expected: that its pods are waited for, and that a warm pool has a hook.
// putHooks is the command that puts hooks on the cluster's groups.
func judgeGroup(g seenGroup, putHooks string) []finding.Finding {
	var h nodegroup.History
	if g.object != nil {
		s := g.object.Status
		h = nodegroup.History{Boots: s.Boots, Failures: s.ConsecutiveFailures}
		if len(s.Failures) > 0 {
			h.LastFailure = s.Failures[0].Message
		}
		h.Unhooked = s.Unhooked
	}
	h.Unhooked = nodegroup.Unhooked(h.Unhooked, g.there)
	all := nodegroup.Diff(g.wanted, g.there, h).Findings
	if g.object != nil {
		return all
	}
	if g.ofEKS() {
		return nil
	}
	var out []finding.Finding
	for _, f := range all {
		if f, keep := ofStranger(f, g, putHooks); keep {
			out = append(out, f)
		}
	}
	return out
}

// ofStranger is what a finding comes to for a group that was not handed to Lifeboat.
func ofStranger(f finding.Finding, g seenGroup, putHooks string) (finding.Finding, bool) {
	other := func(terminating bool) bool {
		return slices.ContainsFunc(g.there.Hooks, func(h nodegroup.Hook) bool { return h.Terminating == terminating })
	}
	switch f.ID {
	case "launch-hook-missing", "other-hook", "hook-target", "instances-before-hook", "warm-outdated", "pool-empty":
		return f, false
	case "terminate-hook-missing":
		f.Severity = finding.Warning
		f.Fix = putHooks
		return f, !other(true)
	case "pool-without-hook":
		f.Fix = putHooks + "; then replace the instances that are warm"
	}
	return f, true
}
