package cli

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsas "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
	"github.com/lifeboat-dev/lifeboat/internal/doctor"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
)

// maxGroups limits how many groups are checked. Each needs three API calls,
// and the whole account shares the rate limit.
const maxGroups = 60

// seenGroup is the observed state of one of the cluster's Auto Scaling groups.
type seenGroup struct {
	// object is the group's NodeGroup, or nil if it has none.
	object *v1beta1.NodeGroup
	wanted nodegroup.Wanted
	there  nodegroup.Observed
}

// readGroups reads the cluster's Auto Scaling groups into d.seen: the groups
// that NodeGroups name, that contain its nodes, or that have its tags.
// nodeGroups reports the errors.
func (d *doctorRun) readGroups(ctx context.Context) {
	d.progress.Step("reading Auto Scaling groups")
	err := d.findGroups(ctx)
	if awshttp.IsDenied(err) {
		d.groupsDenied = err
		return
	}
	d.notChecked("node groups", err)
}

func (d *doctorRun) findGroups(ctx context.Context) error {
	cfg, err := d.placedConfig(ctx)
	if err != nil {
		return nil // the check of the AWS resources reports this error
	}
	objects, err := d.nodeGroupObjects(ctx)
	d.notChecked("node groups", err)
	if d.kube != nil {
		d.nodes, err = d.kube.nodes(ctx)
		d.notChecked("node groups", err)
	}
	api := nodegroup.NewCommandAPI(cfg)
	names, err := d.groupNames(ctx, api, objects)
	if err != nil {
		return awsError{err}
	}
	if len(names) > maxGroups {
		d.notes = append(d.notes, fmt.Sprintf("Only %d of %d Auto Scaling groups were checked.", maxGroups, len(names)))
		names = names[:maxGroups]
	}
	for _, name := range names {
		g := seenGroup{wanted: nodegroup.Want(&v1beta1.NodeGroup{Spec: v1beta1.NodeGroupSpec{AutoScalingGroup: name}}, d.clusterName())}
		if i := slices.IndexFunc(objects, func(o v1beta1.NodeGroup) bool { return nodegroup.Name(&o) == name }); i >= 0 {
			g.object, g.wanted = &objects[i], nodegroup.Want(&objects[i], d.clusterName())
		}
		if g.there, err = api.Observe(ctx, name, d.now()); err != nil {
			return awsError{err}
		}
		d.seen = append(d.seen, g)
	}
	d.readMetadata(ctx, ec2.NewFromConfig(cfg).DescribeInstances)
	return nil
}

// clusterName returns the name of the cluster, if known.
func (d *doctorRun) clusterName() string {
	if d.kube != nil {
		return cmp.Or(d.flags.cluster, d.kube.name)
	}
	return d.flags.cluster
}

// placedConfig returns the AWS configuration for the cluster's region.
func (d *doctorRun) placedConfig(ctx context.Context) (aws.Config, error) {
	cfg, sandbox, err := d.awsConfig(ctx)
	if err != nil {
		return aws.Config{}, err
	}
	cfg.Region = cmp.Or(d.flags.region, doctor.RegionOfQueue(cmp.Or(d.flags.queueURL, sandbox.queueURL)), cfg.Region)
	if cfg.Region == "" {
		return aws.Config{}, &aws.MissingRegionError{}
	}
	return cfg, nil
}

// nodeGroupObjects returns the cluster's NodeGroups. A cluster without the CRD
// has none.
func (d *doctorRun) nodeGroupObjects(ctx context.Context) ([]v1beta1.NodeGroup, error) {
	if d.kube == nil {
		return nil, nil
	}
	var all v1beta1.NodeGroupList
	if err := d.kube.list(ctx, "NodeGroups", &all); err != nil {
		if command.IsNotInstalled(err) {
			return nil, nil
		}
		return nil, err
	}
	return all.Items, nil
}

// groupNames returns the names of the cluster's groups, those with a NodeGroup
// first.
func (d *doctorRun) groupNames(ctx context.Context, api *nodegroup.API, objects []v1beta1.NodeGroup) ([]string, error) {
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

// isOfCluster reports whether a group belongs to the cluster: it has one of the
// tags that `lifeboat aws iam` uses, or it contains one of the cluster's
// nodes.
func (d *doctorRun) isOfCluster(g types.AutoScalingGroup) bool {
	name := d.clusterName()
	for _, t := range g.Tags {
		key, value := aws.ToString(t.Key), aws.ToString(t.Value)
		if name != "" && (key == "kubernetes.io/cluster/"+name || key == "eks:cluster-name" && value == name) {
			return true
		}
	}
	return slices.ContainsFunc(g.Instances, func(i types.Instance) bool { return d.nodeOf(aws.ToString(i.InstanceId)) != nil })
}

// nodeOf returns the node of an instance, or nil.
func (d *doctorRun) nodeOf(instance string) *corev1.Node {
	for i := range d.nodes {
		if nodeindex.InstanceID(&d.nodes[i]) == instance {
			return &d.nodes[i]
		}
	}
	return nil
}

// answered reports whether the controller answers hooks of this name in any
// group, according to its configured name patterns or the default one.
func (d *doctorRun) answered(hook string) bool {
	patterns := d.hookPatterns
	if len(patterns) == 0 {
		patterns = []string{"lifeboat-*"}
	}
	return slices.ContainsFunc(patterns, func(p string) bool {
		fits, err := path.Match(strings.TrimSpace(p), hook)
		return err == nil && fits
	})
}

// ruleGroups returns the groups in the form that the rule checks need.
func (d *doctorRun) ruleGroups() []doctor.Group {
	var all []doctor.Group
	for _, g := range d.seen {
		out := doctor.Group{Name: g.there.Name}
		for _, h := range g.there.Hooks {
			named := g.object != nil && (h.Name == g.wanted.Launch.Name || h.Name == g.wanted.Terminate.Name)
			out.Hooks = append(out.Hooks, doctor.Hook{Name: h.Name, Terminating: h.Terminating, Own: named || d.answered(h.Name), Timeout: h.Timeout, Target: h.Target})
		}
		all = append(all, out)
	}
	return all
}

// nodeGroups reports the findings about the groups.
func (d *doctorRun) nodeGroups(ctx context.Context) ([]finding.Finding, error) {
	all, err := d.refusedAnswers(ctx)
	if d.groupsDenied != nil {
		all = append(all, finding.Finding{
			Severity: finding.Unknown, ID: groupsNotSeen, Object: "Auto Scaling groups",
			Problem: "the groups, their hooks and their warm pools could not be read: " + d.groupsDenied.Error(),
			Fix:     "allow autoscaling:DescribeAutoScalingGroups, DescribeLifecycleHooks and DescribeWarmPool, and ec2:DescribeInstances: `lifeboat aws iam` prints the policy",
		})
	}
	for _, g := range d.seen {
		all = append(all, groupFindings(g, d.putHooksCommand())...)
		all = append(all, memberFindings(g, d.nodes)...)
	}
	return append(all, metadataFindings(d.metadata, d.seen)...), err
}

// putHooksCommand returns the command that creates hooks on all groups that can have
// them. The command also limits the EventBridge rules to these groups.
func (d *doctorRun) putHooksCommand() string {
	var names []string
	for _, g := range d.seen {
		if !g.ofEKS() {
			names = append(names, g.there.Name)
		}
	}
	return fmt.Sprintf("lifeboat aws setup --cluster %s --groups %s", cmp.Or(d.clusterName(), "NAME"), strings.Join(names, ","))
}

// ofEKS reports whether EKS manages the group. EKS has its own hooks for such
// groups and answers them.
func (g seenGroup) ofEKS() bool {
	return g.there.Operator != "" || g.there.Tags["eks:nodegroup-name"] != ""
}

// groupFindings returns the findings about one group. For a group without a
// NodeGroup it reports less: whether its terminations wait for a drain, and
// whether its warm pool has a hook. putHooksCommand is the command that creates hooks
// on the cluster's groups.
func groupFindings(g seenGroup, putHooksCommand string) []finding.Finding {
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
		if f, keep := adaptUnmanaged(f, g, putHooksCommand); keep {
			out = append(out, f)
		}
	}
	return out
}

// adaptUnmanaged adapts a finding to a group that Lifeboat does not manage, and
// reports whether to keep it.
func adaptUnmanaged(f finding.Finding, g seenGroup, putHooksCommand string) (finding.Finding, bool) {
	other := func(terminating bool) bool {
		return slices.ContainsFunc(g.there.Hooks, func(h nodegroup.Hook) bool { return h.Terminating == terminating })
	}
	switch f.ID {
	case "launch-hook-missing", "other-hook", "hook-target", "instances-before-hook", "warm-outdated", "pool-empty":
		return f, false
	case "terminate-hook-missing":
		f.Severity = finding.Warning
		f.Fix = putHooksCommand
		return f, !other(true)
	case "pool-without-hook":
		f.Fix = putHooksCommand + "; then replace the instances in the warm pool"
	}
	return f, true
}
