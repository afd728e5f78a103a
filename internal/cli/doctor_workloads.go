package cli

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/workloads"
	"github.com/lifeboat-dev/lifeboat/internal/drill"
)

// workloads looks for pods that an interruption would harm. It checks nothing
// without a cluster; reachCluster has added a note then.
func (d *doctorRun) workloads(ctx context.Context) ([]finding.Finding, error) {
	if d.kube == nil {
		return nil, nil
	}
	d.progress.Step("checking the workloads")
	spot, err := d.spotNodes(ctx)
	if err != nil {
		return nil, err
	}
	survey, err := workloads.Scan(ctx, d.kube, workloads.Options{Spot: spot})
	if err != nil {
		return nil, fmt.Errorf("checking the workloads: %w", err)
	}
	if c := survey.Counts(); c.Nodes > 0 {
		d.notes = append(d.notes, fmt.Sprintf("Checked %s of %s on %s, %d of them spot.",
			counted(c.Pods, "pod"), counted(c.Workloads, "workload"), counted(c.Nodes, "node"), c.Spot))
	}
	return survey.Findings(), nil
}

// spotNodes returns a function that reports whether a node is a spot instance.
// It uses the node labels. If no node has such a label, it asks EC2. If EC2
// fails, it treats no node as spot and adds a note.
func (d *doctorRun) spotNodes(ctx context.Context) (func(*corev1.Node) bool, error) {
	nodes, err := d.kube.nodes(ctx)
	if err != nil {
		return nil, err
	}
	all, byID := ec2Nodes(nodes)
	if len(all) == 0 {
		return workloads.IsSpot, nil
	}
	for _, node := range byID {
		if workloads.IsSpot(node) {
			return workloads.IsSpot, nil
		}
	}
	c, err := d.connectCloud(ctx, all[0].Zone)
	var spot []drill.Target
	if err == nil {
		spot, err = drill.Spot(ctx, c.instances, all)
	}
	if err != nil {
		d.notes = append(d.notes, fmt.Sprintf("No node has a label for spot instances, and EC2 could not be asked (%v): the checks for spot nodes were skipped.", err))
	}
	byName := map[string]bool{}
	for _, t := range spot {
		byName[t.Node] = true
	}
	return func(n *corev1.Node) bool { return byName[n.Name] }, nil
}
