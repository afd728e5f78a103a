//go:build e2e

package real

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// states lists the state of each pod, for messages.
func states(pods []corev1.Pod) string {
	var all []string
	for i := range pods {
		p := &pods[i]
		state := fmt.Sprintf("%s on %q %s", p.Name, p.Spec.NodeName, p.Status.Phase)
		for _, c := range p.Status.Conditions {
			if c.Status != corev1.ConditionTrue {
				state += fmt.Sprintf(", not %s: %s %s", c.Type, c.Reason, c.Message)
			}
		}
		for _, c := range p.Status.ContainerStatuses {
			if c.State.Waiting != nil {
				state += fmt.Sprintf(", waits: %s %s", c.State.Waiting.Reason, c.State.Waiting.Message)
			}
		}
		all = append(all, state)
	}
	return strings.Join(all, "; ")
}
