package machines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/sandbox/kwok"
)

// The configuration of kubelets in the EKS AL2023 images from Kubernetes 1.34 on:
// shutdownGracePeriod and shutdownGracePeriodCriticalPods (amazon-eks-ami, pull request 2390,
// nodeadm/internal/kubelet/config.go). Ordinary pods stop in the first part of ShutdownGrace,
// critical ones in the last.
const (
	ShutdownGrace         = 150 * time.Second
	CriticalShutdownGrace = 30 * time.Second
)

// ordinaryShutdown is how long ordinary pods may take.
const ordinaryShutdown = ShutdownGrace - CriticalShutdownGrace

// Shutdown simulates the kubelet's graceful node shutdown (kubernetes pkg/kubelet/nodeshutdown).
// The Node becomes NotReady. Ordinary pods stop within their own grace period or this limit, then
// critical ones. The kubelet deletes none of them.
func (s *Simulated) Shutdown(ctx context.Context, m Machine) (done bool, err error) {
	if m.Node == nil {
		return true, nil
	}
	if _, marked := m.Node.Annotations[kwok.ShutdownAnnotation]; !marked {
		if err := s.markDown(ctx, m); err != nil {
			return false, err
		}
	}
	pods, err := s.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", m.Node.Name).String(),
	})
	if err != nil {
		return false, fmt.Errorf("listing the pods of a node that shuts down: %w", err)
	}
	for _, group := range []struct {
		critical bool
		until    time.Time
		most     time.Duration
	}{
		{false, m.ShutdownTime.Add(ordinaryShutdown), ordinaryShutdown},
		{true, m.ShutdownTime.Add(ShutdownGrace), CriticalShutdownGrace},
	} {
		left, err := s.askAll(ctx, pods.Items, group.critical, group.most)
		if err != nil {
			return false, err
		}
		if left > 0 && time.Now().Before(group.until) {
			return false, nil
		}
	}
	return true, nil
}

// markDown writes the shutdown into the Node's condition, as its kubelet does.
func (s *Simulated) markDown(ctx context.Context, m Machine) error {
	at := m.ShutdownTime.Format(time.RFC3339)
	if err := s.patch(ctx, m.Node, map[string]any{"annotations": map[string]any{kwok.ShutdownAnnotation: at}}); err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": m.Node.UID},
		"status": map[string]any{"conditions": []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now(),
			Reason: "KubeletNotReady", Message: "node is shutting down",
		}}},
	})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	_, err = s.client.CoreV1().Nodes().Patch(ctx, m.Node.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return ignoreGone(err)
}

// askAll asks the pods of one group to stop, if they were not asked yet. It returns how many have not
// stopped.
func (s *Simulated) askAll(ctx context.Context, pods []corev1.Pod, critical bool, most time.Duration) (left int, err error) {
	var errs []error
	for i := range pods {
		pod := &pods[i]
		if isCritical(pod) != critical || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		if _, asked := kwok.ShutsDown(pod); !asked {
			errs = append(errs, s.ask(ctx, pod, most))
		}
		left++
	}
	return left, errors.Join(errs...)
}

// ask asks a pod to stop within its own grace period, or most.
func (s *Simulated) ask(ctx context.Context, pod *corev1.Pod, most time.Duration) error {
	grace := most
	if own := pod.Spec.TerminationGracePeriodSeconds; own != nil {
		grace = min(grace, time.Duration(*own)*time.Second)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID,
		"annotations": map[string]any{
			kwok.ShutdownAnnotation:             time.Now().UTC().Format(time.RFC3339),
			kwok.ShutdownGraceSecondsAnnotation: strconv.Itoa(int(grace.Seconds())),
		},
	}})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	_, err = s.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return ignoreGone(err)
}

// isCritical reports whether the kubelet stops a pod with the critical ones (kubernetes
// pkg/apis/scheduling, SystemCriticalPriority).
func isCritical(pod *corev1.Pod) bool {
	const systemCritical = 2_000_000_000
	return pod.Spec.Priority != nil && *pod.Spec.Priority >= systemCritical
}
