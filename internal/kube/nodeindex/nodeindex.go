// Package nodeindex finds the node of an instance in the manager's cache, and has helpers that
// read nodes.
package nodeindex

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/corroborate"
)

// field is the name of the index; it is no path of the object.
const field = "lifeboat.instanceID"

// Index finds nodes by instance.
type Index struct{ reader client.Reader }

// New adds the index to a cache and returns it.
func New(ctx context.Context, indexer client.FieldIndexer, reader client.Reader) (*Index, error) {
	if err := indexer.IndexField(ctx, &corev1.Node{}, field, keys); err != nil {
		return nil, fmt.Errorf("indexing nodes by instance: %w", err)
	}
	return &Index{reader: reader}, nil
}

// keys are the index keys of a node.
func keys(o client.Object) []string {
	if node, ok := o.(*corev1.Node); ok {
		if id := InstanceID(node); id != "" {
			return []string{id}
		}
	}
	return nil
}

// NodeByInstance returns the current node of an instance, or nil. If several Ready nodes state
// the instance, it returns a *corroborate.ConflictError.
func (x *Index) NodeByInstance(ctx context.Context, instanceID string) (*corev1.Node, error) {
	var list corev1.NodeList
	if err := x.reader.List(ctx, &list, client.MatchingFields{field: instanceID}); err != nil {
		return nil, fmt.Errorf("finding the node of instance %s: %w", instanceID, err)
	}
	nodes := make([]*corev1.Node, 0, len(list.Items))
	for i := range list.Items {
		nodes = append(nodes, &list.Items[i])
	}
	return corroborate.Current(instanceID, nodes)
}

// InstanceID returns the id of a node's EC2 instance, or "" if it has none. It is the end of the
// provider id, which on AWS is aws:///us-east-1a/i-0a1b2c3d4e5f60718 or the bare id
// (cloud-provider-aws; on Fargate it has no instance id). Node names are no key: on EC2 they are
// DNS names, which are reused.
func InstanceID(node *corev1.Node) string {
	scheme, id, ok := strings.Cut(node.Spec.ProviderID, "://")
	switch {
	case !ok:
		id = node.Spec.ProviderID
	case scheme != "aws":
		return ""
	}
	if id = id[strings.LastIndex(id, "/")+1:]; !strings.HasPrefix(id, "i-") {
		return ""
	}
	return id
}

// Ready reports whether a node exists and is Ready.
func Ready(node *corev1.Node) bool { return readiness(node) == corev1.ConditionTrue }

// Silent reports whether the kubelet of a node does not report: the node lifecycle controller then sets
// Ready to Unknown.
func Silent(node *corev1.Node) bool { return readiness(node) == corev1.ConditionUnknown }

func readiness(node *corev1.Node) corev1.ConditionStatus {
	if node == nil {
		return ""
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status
		}
	}
	return ""
}
