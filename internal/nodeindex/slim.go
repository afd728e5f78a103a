package nodeindex

import (
	"hash/maphash"
	"maps"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/lifeboat-dev/lifeboat/internal/nodelabel"
)

// ownPrefix begins the names of Lifeboat's own annotations, the only ones of a
// node that are read.
const ownPrefix = "lifeboat.dev/"

// maxShared bounds the strings that a Slim remembers in order to share them, and
// maxSets the sets of labels.
const maxShared, maxSets = 4096, 256

// Slim returns a transform that makes a node small before it is cached: every
// node of the cluster is held, and what is read of one is a tenth of its bytes.
// It keeps the names and times of its metadata, labels (a policy may select by
// any), Lifeboat's own annotations, its provider id, taints and whether it is schedulable, and of its
// status whether it is Ready and when its kubelet last said so, what is attached to
// it, and when it booted.
//
// Nodes share labels, in which the host's name is missing where it is the node's:
// Whole puts it back.
//
// A patch made from a cached node is none the worse for it: a merge patch names
// what changed, and what both sides lack has not.
func Slim() cache.TransformFunc {
	s := newSlimmer()
	return func(object any) (any, error) {
		if node, ok := object.(*corev1.Node); ok {
			return s.slim(node), nil
		}
		return object, nil
	}
}

// slimmer makes nodes small. Many nodes have the same labels, and others nearly the
// same, whose text is held once.
type slimmer struct {
	seed maphash.Seed

	mu     sync.Mutex
	shared map[string]string
	sets   map[uint64]map[string]string // by hash
}

func newSlimmer() *slimmer {
	return &slimmer{seed: maphash.MakeSeed(), shared: map[string]string{}, sets: map[uint64]map[string]string{}}
}

func (s *slimmer) slim(full *corev1.Node) *corev1.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
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

// labels returns the labels of a node, which it shares with the nodes that have the
// same: a map of as many labels as a node has takes more than a KiB. The host's name
// is most often its node's, and no other's; the map says no more than that.
func (s *slimmer) labels(node *corev1.Node) map[string]string {
	if node.Labels == nil {
		return nil
	}
	valueOf := func(key, value string) string {
		if key == corev1.LabelHostname && value == node.Name {
			return nodelabel.AsNamed
		}
		return value
	}
	var hash uint64 // the order of a map is none
	for key, value := range node.Labels {
		hash += maphash.Comparable(s.seed, [2]string{key, valueOf(key, value)})
	}
	labels := make(map[string]string, len(node.Labels))
	for key, value := range node.Labels {
		labels[s.share(key)] = s.share(valueOf(key, value))
	}
	if known := s.sets[hash]; maps.Equal(known, labels) {
		return known
	}
	if len(s.sets) >= maxSets {
		clear(s.sets)
	}
	s.sets[hash] = labels
	return labels
}

// share returns a string of the same text that others use as well. When there
// are too many it begins anew, so that text of nodes that are gone does not stay.
func (s *slimmer) share(text string) string {
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
