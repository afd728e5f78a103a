package nodeindex

import (
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// ownPrefix begins the names of Lifeboat's own annotations.
const ownPrefix = "lifeboat.dev/"

// maxInterned bounds how many strings an interner holds.
const maxInterned = 4096

// Slim returns a transform that strips a node before it is cached. The cache holds
// every node of the cluster, and Lifeboat reads about a tenth of each. The transform
// keeps:
//   - the names and times of the metadata, and all labels, because a policy may select
//     by any of them;
//   - Lifeboat's own annotations, and Karpenter's do-not-disrupt;
//   - the provider ID, the taints and spec.unschedulable;
//   - of the status, the Ready condition without its message, the boot ID and the
//     attached volumes; of a node without a provider ID also the system UUID.
//
// Do not send a cached node in an update: that deletes what the transform stripped. A
// merge patch made from a cached node is safe, because it names only what changed.
func Slim() cache.TransformFunc {
	s := newInterner()
	return func(object any) (any, error) {
		if node, ok := object.(*corev1.Node); ok {
			return slim(node, s), nil
		}
		return object, nil
	}
}

func slim(full *corev1.Node, s *interner) *corev1.Node {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: full.Name, UID: full.UID, ResourceVersion: full.ResourceVersion, Generation: full.Generation,
			CreationTimestamp: full.CreationTimestamp, DeletionTimestamp: full.DeletionTimestamp,
			Labels: s.labels(full.Labels), Annotations: own(full.Annotations), OwnerReferences: claims(full.OwnerReferences),
		},
		Spec: corev1.NodeSpec{ProviderID: full.Spec.ProviderID, Unschedulable: full.Spec.Unschedulable, Taints: full.Spec.Taints},
		Status: corev1.NodeStatus{
			NodeInfo:        corev1.NodeSystemInfo{BootID: full.Status.NodeInfo.BootID, SystemUUID: uuidWithoutProviderID(full)},
			VolumesAttached: full.Status.VolumesAttached,
		},
	}
	for _, c := range full.Status.Conditions {
		if c.Type == corev1.NodeReady {
			node.Status.Conditions = []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: c.Status, LastHeartbeatTime: c.LastHeartbeatTime, LastTransitionTime: c.LastTransitionTime,
			}}
		}
	}
	return node
}

// uuidWithoutProviderID is by what IsUnreachable knows an instance.
func uuidWithoutProviderID(node *corev1.Node) string {
	if node.Spec.ProviderID != "" {
		return ""
	}
	return node.Status.NodeInfo.SystemUUID
}

// interner makes equal strings share memory. Most labels of a node have the same text on
// many other nodes.
type interner struct {
	mu    sync.Mutex
	known map[string]string
}

func newInterner() *interner { return &interner{known: map[string]string{}} }

// labels returns a copy of a node's labels whose strings are interned.
func (s *interner) labels(from map[string]string) map[string]string {
	if from == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	labels := make(map[string]string, len(from))
	for key, value := range from {
		labels[s.intern(key)] = s.intern(value)
	}
	return labels
}

// intern returns the known string of the same text. A full interner starts over, so that
// it does not keep the text of deleted nodes. It needs the lock.
func (s *interner) intern(text string) string {
	if known, ok := s.known[text]; ok {
		return known
	}
	if len(s.known) >= maxInterned {
		clear(s.known)
	}
	s.known[text] = text
	return text
}

// claims returns the references to NodeClaims: Karpenter's nodes have one.
func claims(owners []metav1.OwnerReference) []metav1.OwnerReference {
	for _, o := range owners {
		if o.Kind == "NodeClaim" {
			return []metav1.OwnerReference{{Kind: o.Kind, Name: o.Name, UID: o.UID}}
		}
	}
	return nil
}

// own returns the annotations that Lifeboat reads.
func own(annotations map[string]string) map[string]string {
	var kept map[string]string
	for key, value := range annotations {
		if !strings.HasPrefix(key, ownPrefix) && key != v1beta1.AnnotationKarpenterDoNotDisrupt {
			continue
		}
		if kept == nil {
			kept = map[string]string{}
		}
		kept[key] = value
	}
	return kept
}
