package machines

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/sandbox/kwok"
)

// Simulated is hardware that is nothing but Nodes: kwok plays the kubelets'
// part, heartbeats and pods, of those that are given to it. No condition of a Node
// is faked, but at a reboot.
type Simulated struct {
	client kubernetes.Interface

	mu sync.Mutex
	// registered is in which boot a machine made its Node, by instance.
	registered map[string]string
}

// NewSimulated makes it, on a cluster in which kwok runs.
func NewSimulated(client kubernetes.Interface) *Simulated {
	return &Simulated{client: client, registered: map[string]string{}}
}

// Boot takes a machine for on while kwok plays its kubelet. One whose Node a user
// deleted runs on without it: a kubelet registers when it starts, and not again.
func (s *Simulated) Boot(m Machine) (id string, on bool) {
	switch {
	case m.Node == nil:
		id = s.registeredIn(m)
		return id, id != ""
	case !lit(m.Node):
		return "", false
	case !nodeindex.Ready(m.Node):
		return m.BootID, true // kwok is bringing it up
	default:
		return m.Node.Status.NodeInfo.BootID, true
	}
}

// Start makes the Node, or gives it back to kwok.
func (s *Simulated) Start(ctx context.Context, m Machine, register *corev1.Node) error {
	if m.Node != nil {
		err := s.patch(ctx, m.Node, map[string]any{
			"labels":      map[string]any{kwok.ManagedLabel: kwok.ManagedValue},
			"annotations": map[string]any{kwok.ShutdownAnnotation: nil},
		})
		if err == nil {
			s.remember(m.ID, m.BootID)
		}
		return err
	}
	register.Labels[kwok.ManagedLabel] = kwok.ManagedValue
	_, err := s.client.CoreV1().Nodes().Create(ctx, register, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil // the cache is behind
	}
	if err == nil {
		s.remember(m.ID, m.BootID)
	}
	return err
}

// Cut takes the Node from kwok: it falls silent.
func (s *Simulated) Cut(ctx context.Context, m Machine) error {
	s.remember(m.ID, "")
	if m.Node == nil {
		return nil
	}
	return s.patch(ctx, m.Node, map[string]any{"labels": map[string]any{kwok.ManagedLabel: nil}})
}

// remember notes in which boot a machine made its Node; empty: in none.
func (s *Simulated) remember(instanceID, boot string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if boot == "" {
		delete(s.registered, instanceID)
		return
	}
	s.registered[instanceID] = boot
}

func (s *Simulated) registeredIn(m Machine) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.registered[m.ID]
}

// patch patches a Node's metadata. By its label kwok plays the node's kubelet.
func (s *Simulated) patch(ctx context.Context, n *corev1.Node, metadata map[string]any) error {
	metadata["uid"] = n.UID
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	_, err = s.client.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return ignoreGone(err)
}

// Restart shows what a reboot shows: a kubelet that was away, and another boot
// id. kwok finds the Node NotReady and brings it up.
func (s *Simulated) Restart(ctx context.Context, m Machine, register *corev1.Node) error {
	if m.Node == nil {
		return s.Start(ctx, m, register)
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": m.Node.UID},
		"status": map[string]any{
			"nodeInfo": map[string]any{"bootID": m.BootID},
			"conditions": []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now(),
				Reason: "KubeletNotReady", Message: "the machine is starting again",
			}},
		},
	})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	_, err = s.client.CoreV1().Nodes().Patch(ctx, m.Node.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return ignoreGone(err)
}

// lit reports whether kwok plays the node's kubelet.
func lit(n *corev1.Node) bool { return n.Labels[kwok.ManagedLabel] == kwok.ManagedValue }
