package cli

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/internal/drill"
	"github.com/lifeboat-dev/lifeboat/internal/finding"
	"github.com/lifeboat-dev/lifeboat/internal/readiness"
)

// workloads looks for pods that would come to harm in an interruption. Without
// a cluster there is nothing to look at; reachCluster has said so.
func (d *examination) workloads(ctx context.Context) ([]finding.Finding, error) {
	if d.kube == nil {
		return nil, nil
	}
	d.progress.Step("looking at the workloads")
	spot, err := d.spotNodes(ctx)
	if err != nil {
		return nil, err
	}
	survey, err := readiness.Scan(ctx, d.kube, readiness.Options{Spot: spot})
	if err != nil {
		return nil, fmt.Errorf("looking at the workloads: %w", err)
	}
	if c := survey.Counts(); c.Nodes > 0 {
		d.notes = append(d.notes, fmt.Sprintf("Looked at %s of %s on %s, %d of them spot.",
			counted(c.Pods, "pod"), counted(c.Workloads, "workload"), counted(c.Nodes, "node"), c.Spot))
	}
	return survey.Findings(), nil
}

// spotNodes tells spot nodes from others: by their labels, or, where no node
// carries any that tells, by asking EC2. Where that does not answer either, no
// node is taken for one, which is noted.
func (d *examination) spotNodes(ctx context.Context) (func(*corev1.Node) bool, error) {
	nodes, err := d.kube.nodes(ctx)
	if err != nil {
		return nil, err
	}
	all, byID := ec2Nodes(nodes)
	if len(all) == 0 {
		return readiness.IsSpot, nil
	}
	for _, node := range byID {
		if readiness.IsSpot(node) {
			return readiness.IsSpot, nil
		}
	}
	c, err := d.connectCloud(ctx, all[0].Zone)
	var spot []drill.Target
	if err == nil {
		spot, err = drill.Spot(ctx, c.instances, all)
	}
	if err != nil {
		d.notes = append(d.notes, fmt.Sprintf("No node's labels say that it is a spot instance, and EC2 did not tell (%v): what matters on spot nodes only was not looked for.", err))
	}
	byName := map[string]bool{}
	for _, t := range spot {
		byName[t.Node] = true
	}
	return func(n *corev1.Node) bool { return byName[n.Name] }, nil
}
