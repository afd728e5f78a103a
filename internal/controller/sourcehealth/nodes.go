package sourcehealth

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
)

// maxNodeEvents bounds the Events about nodes that no notice can reach.
const maxNodeEvents = 10

// ReportNodes warns once, when the leader starts, of the nodes that no notice can reach: an Event on
// each of the first ten, and one line in the log. The metric lifeboat_nodes_without_provider_id has
// their number at any time.
func ReportNodes(ctx context.Context, nodes client.Reader, recorder events.EventRecorder) {
	var list corev1.NodeList
	if err := nodes.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Info("cannot look for nodes without a provider id", "error", err.Error())
		return
	}
	names := nodeindex.Unreachable(list.Items)
	if len(names) == 0 {
		return
	}
	log.FromContext(ctx).Info("no notice can reach nodes on EC2 without spec.providerID", "nodes", len(names), "first", names[0], "fix", nodeindex.ProviderIDFix)
	left := maxNodeEvents
	for i := range list.Items {
		if node := &list.Items[i]; left > 0 && nodeindex.IsUnreachable(node) {
			left--
			recorder.Eventf(node, nil, corev1.EventTypeWarning, v1beta1.ReasonNoProviderID, "Listen",
				"the node runs on EC2 and has no spec.providerID, so no notice about its instance reaches it: %s", nodeindex.ProviderIDFix)
		}
	}
}
