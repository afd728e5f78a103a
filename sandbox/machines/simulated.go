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

// Simulated is hardware that consists only of Nodes: kwok simulates their kubelets, with heartbeats
// and pods. No condition of a Node is faked, except at a reboot.
type Simulated struct {
	client kubernetes.Interface

	mu sync.Mutex
	// registered is the boot in which a machine created its Node, by instance.
	registered map[string]string
}

// NewSimulated returns Simulated hardware for a cluster with kwok.
func NewSimulated(client kubernetes.Interface) *Simulated {
	return &Simulated{client: client, registered: map[string]string{}}
}

// Boot reports that a machine runs while kwok simulates its kubelet. A machine whose Node a user
// deleted still runs: a kubelet registers only when it starts.
func (s *Simulated) Boot(m Machine) (id string, on bool) {
	switch {
	case m.Node == nil:
		id = s.registeredIn(m)
		return id, id != ""
	case !managed(m.Node):
		return "", false
	case !nodeindex.Ready(m.Node):
		return m.BootID, true // kwok is making it Ready
	default:
		return m.Node.Status.NodeInfo.BootID, true
	}
}

// Start creates the Node, or makes kwok simulate it again.
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
		return nil // the cache is stale
	}
	if err == nil {
		s.remember(m.ID, m.BootID)
	}
	return err
}

// Cut stops kwok's simulation of the Node: its heartbeat ends.
func (s *Simulated) Cut(ctx context.Context, m Machine) error {
	s.remember(m.ID, "")
	if m.Node == nil {
		return nil
	}
	return s.patch(ctx, m.Node, map[string]any{"labels": map[string]any{kwok.ManagedLabel: nil}})
}

// remember records the boot in which a machine created its Node; empty: none.
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

// patch patches a Node's metadata, which has the label for kwok.
func (s *Simulated) patch(ctx context.Context, n *corev1.Node, metadata map[string]any) error {
	metadata["uid"] = n.UID
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	_, err = s.client.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return ignoreGone(err)
}

// Restart shows the effects of a reboot: a NotReady Node and a new boot id. kwok makes the Node Ready
// again.
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
				Reason: "KubeletNotReady", Message: "the machine is rebooting",
			}},
		},
	})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	_, err = s.client.CoreV1().Nodes().Patch(ctx, m.Node.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return ignoreGone(err)
}

// managed reports whether kwok simulates the node's kubelet.
func managed(n *corev1.Node) bool { return n.Labels[kwok.ManagedLabel] == kwok.ManagedValue }
