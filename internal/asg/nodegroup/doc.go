// Package nodegroup compares an Auto Scaling group, its lifecycle hooks and its
// warm pool with a NodeGroup and applies the differences.
//
// It has three steps. [API.Observe] reads the current state. [Diff] is pure and
// returns the next steps and the findings. [API.Apply] performs one step. A
// plan contains a step only if its precondition was observed: a warm pool needs
// the launch hook. The caller repeats observe, diff and apply, and may stop at
// any point.
//
// Three things never happen. The desired capacity of an existing group does not
// change. A hook is updated in place, not deleted and created again. Nothing is
// deleted that holds an instance or would terminate a running node.
package nodegroup
