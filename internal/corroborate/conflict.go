package corroborate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ConflictError says that several Ready Nodes state the same instance. Lifeboat acts on none of
// them.
type ConflictError struct {
	InstanceID string
	// Nodes are the names of the Nodes, sorted.
	Nodes []string
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("nodes %s all state instance %s as their own: delete each Node that is not this instance's, "+
		"and examine its machine, because its kubelet states a false spec.providerID", strings.Join(e.Nodes, " and "), e.InstanceID)
}

// IgnoreConflict returns nil for a *ConflictError, else err: the caller treats the instance as one
// without a Node.
func IgnoreConflict(err error) error {
	if conflict := (*ConflictError)(nil); errors.As(err, &conflict) {
		return nil
	}
	return err
}

// Current returns the Node of an instance, from all Nodes that state it; nil if there is none.
// An instance that was renamed leaves a Node that is not Ready behind, so one Ready Node is the
// current one. If none is Ready, it is the one that was Ready last. If several are, it returns a
// *ConflictError.
func Current(instanceID string, nodes []*corev1.Node) (*corev1.Node, error) {
	var last *corev1.Node
	var ready []string
	for _, n := range nodes {
		isReady, since := readiness(n)
		if isReady {
			ready = append(ready, n.Name)
		}
		if last == nil {
			last = n
			continue
		}
		lastReady, lastSince := readiness(last)
		later := since.After(lastSince) || since.Equal(lastSince) && last.CreationTimestamp.Before(&n.CreationTimestamp)
		if isReady && !lastReady || isReady == lastReady && later {
			last = n
		}
	}
	if len(ready) > 1 {
		slices.Sort(ready)
		return nil, &ConflictError{InstanceID: instanceID, Nodes: ready}
	}
	return last, nil
}

// readiness reports whether a Node is Ready, and since when it is that or not.
func readiness(node *corev1.Node) (ready bool, since time.Time) {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time
		}
	}
	return false, time.Time{}
}
