package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/workloads"
	"github.com/lifeboat-dev/lifeboat/internal/drill"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

// workloads looks for pods that an interruption would harm. It checks nothing
// without a cluster; reachCluster has added a note then.
func (d *doctorRun) workloads(ctx context.Context) ([]finding.Finding, error) {
	if d.kube == nil {
		return nil, nil
	}
	d.progress.Step("checking the workloads")
	options := workloads.Options{Spot: d.spotNodes(ctx)}
	if d.policiesRead {
		options.Governed, options.Deregisters = d.governed, d.deregisters
	}
	survey, err := workloads.Scan(ctx, d.kube, options)
	if c := survey.Counts(); c.Nodes > 0 {
		d.notes = append(d.notes, fmt.Sprintf("Checked %s of %s on %s, %d of them spot.",
			counted(c.Pods, "pod"), counted(c.Workloads, "workload"), counted(c.Nodes, "node"), c.Spot))
	}
	return survey.Findings(), err
}

// governed reports whether an InterruptionPolicy selects a node.
func (d *doctorRun) governed(n *corev1.Node) bool {
	return policy.Of(d.policiesFound, n) != nil
}

// deregisters reports whether the policy of a node waits for load balancers.
func (d *doctorRun) deregisters(n *corev1.Node) bool {
	of := policy.Of(d.policiesFound, n)
	return of != nil && of.Spec.WaitForDeregistration != nil
}

// spotNodes returns a function that reports whether a node is a spot instance.
// It uses the node labels. If no node has such a label, it asks EC2. If EC2
// fails, it treats no node as spot, and that is unknown.
func (d *doctorRun) spotNodes(ctx context.Context) func(*corev1.Node) bool {
	nodes, err := d.kube.nodes(ctx)
	d.notChecked("workloads", err)
	all, byID := ec2Nodes(nodes)
	if len(all) == 0 {
		return workloads.IsSpot
	}
	for _, node := range byID {
		if workloads.IsSpot(node) {
			return workloads.IsSpot
		}
	}
	c, err := d.connectCloud(ctx, all[0].Zone)
	isSpot := map[string]bool{}
	if err == nil {
		isSpot, err = spotInstances(ctx, c.instances, all)
	}
	if err != nil {
		d.notChecked("workloads on spot nodes", fmt.Errorf("no node has a label for spot instances, and EC2 did not tell: %w", err))
	}
	return func(n *corev1.Node) bool { return isSpot[nodeindex.InstanceID(n)] }
}

// spotInstances returns which of the instances are spot instances. It asks by a filter:
// EC2 rejects a whole list of ids if one instance is gone.
func spotInstances(ctx context.Context, describe drill.DescribeInstances, all []drill.Target) (map[string]bool, error) {
	isSpot := map[string]bool{}
	for some := range slices.Chunk(all, instancesPerCall) {
		var ids []string
		for _, t := range some {
			ids = append(ids, t.InstanceID)
		}
		out, err := describe(ctx, &ec2.DescribeInstancesInput{Filters: []types.Filter{{Name: aws.String("instance-id"), Values: ids}}})
		if err != nil {
			return nil, fmt.Errorf("asking EC2 which instances are spot instances: %w", err)
		}
		for _, r := range out.Reservations {
			for _, i := range r.Instances {
				isSpot[aws.ToString(i.InstanceId)] = i.InstanceLifecycle == types.InstanceLifecycleTypeSpot
			}
		}
	}
	return isSpot, nil
}
