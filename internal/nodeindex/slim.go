package nodeindex

import (
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// ownPrefix begins the names of Lifeboat's own annotations, the only ones of a
// node that are read.
const ownPrefix = "lifeboat.dev/"

// maxShared bounds the strings that a Slim remembers in order to share them.
const maxShared = 4096

// Slim returns a transform that makes a node small before it is cached: every
// node of the cluster is held, and what is read of one is a tenth of its bytes.
// It keeps the names and times of its metadata, labels (a policy may select by
// any), Lifeboat's own annotations, its provider id, taints and whether it is schedulable, and of its
// status whether it is Ready and when its kubelet last said so, what is attached to
// it, and when it booted.
//
// A patch made from a cached node is none the worse for it: a merge patch names
// what changed, and what both sides lack has not.
func Slim() cache.TransformFunc {
	s := &slimmer{shared: map[string]string{}}
	return func(object any) (any, error) {
		if node, ok := object.(*corev1.Node); ok {
			return s.slim(node), nil
		}
		return object, nil
	}
}

// slimmer makes nodes small. Nodes have nearly the same labels, whose text is
// held once.
type slimmer struct {
	mu     sync.Mutex
	shared map[string]string
}

func (s *slimmer) slim(full *corev1.Node) *corev1.Node {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: full.Name, UID: full.UID, ResourceVersion: full.ResourceVersion, Generation: full.Generation,
			CreationTimestamp: full.CreationTimestamp, DeletionTimestamp: full.DeletionTimestamp,
			Labels: s.labels(full), Annotations: own(full.Annotations),
		},
		Spec: corev1.NodeSpec{ProviderID: full.Spec.ProviderID, Unschedulable: full.Spec.Unschedulable, Taints: full.Spec.Taints},
		Status: corev1.NodeStatus{
			NodeInfo: corev1.NodeSystemInfo{BootID: full.Status.NodeInfo.BootID}, VolumesAttached: full.Status.VolumesAttached,
		},
	}
	for _, c := range full.Status.Conditions {
		if c.Type == corev1.NodeReady {
			node.Status.Conditions = []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionStatus(s.share(string(c.Status))),
				LastHeartbeatTime: c.LastHeartbeatTime, LastTransitionTime: c.LastTransitionTime,
			}}
		}
	}
	return node
}

// labels returns the labels of a node, in memory that it shares with other
// nodes where it can.
func (s *slimmer) labels(node *corev1.Node) map[string]string {
	if node.Labels == nil {
		return nil
	}
	labels := make(map[string]string, len(node.Labels))
	for key, value := range node.Labels {
		switch value {
		case node.Name: // a host's name is most often its node's, and no other's
			value = node.Name
		default:
			value = s.share(value)
		}
		labels[s.share(key)] = value
	}
	return labels
}

// share returns a string of the same text that others use as well. When there
// are too many it begins anew, so that text of nodes that are gone does not stay.
func (s *slimmer) share(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if shared, ok := s.shared[text]; ok {
		return shared
	}
	if len(s.shared) >= maxShared {
		clear(s.shared)
	}
	s.shared[text] = text
	return text
}

// own returns Lifeboat's own annotations.
func own(annotations map[string]string) map[string]string {
	var kept map[string]string
	for key, value := range annotations {
		if !strings.HasPrefix(key, ownPrefix) {
			continue
		}
		if kept == nil {
			kept = map[string]string{}
		}
		kept[key] = value
	}
	return kept
}
