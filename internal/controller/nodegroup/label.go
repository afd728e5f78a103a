package nodegroup

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/corroborate"
)

// label sets the name of the NodeGroup as a label on the group's nodes, so that
// policies can select them. An existing label is kept.
func (c *Controller) label(ctx context.Context, g *v1beta1.NodeGroup, o nodegroup.Observed) error {
	for _, i := range o.Instances {
		if i.At.Phase != lifecycle.Joining && i.At.Phase != lifecycle.Serving {
			continue
		}
		node, err := c.Nodes.NodeByInstance(ctx, i.ID)
		if err := corroborate.IgnoreConflict(err); err != nil {
			return err
		}
		if node == nil || node.Labels[v1beta1.LabelNodeGroup] != "" {
			continue
		}
		base := client.MergeFrom(node.DeepCopy())
		labelled := node.DeepCopy()
		if labelled.Labels == nil {
			labelled.Labels = map[string]string{}
		}
		labelled.Labels[v1beta1.LabelNodeGroup] = g.Name
		if err := c.Client.Patch(ctx, labelled, base); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("labelling node %s: %w", node.Name, err)
		}
		log.FromContext(ctx).Info("labelled node of the group", "node", node.Name)
	}
	return nil
}
