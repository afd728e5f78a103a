package nodenotice

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/corroborate"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// verdict says whether a NodeNotice counts, and why not.
type verdict struct {
	accepted        bool
	reason, message string
}

// refused adds what is wrong with single notices of a NodeNotice that counts.
func (v *verdict) refused(err error) {
	if err != nil {
		v.message += "; not recorded: " + notice.Cut(err.Error(), 512)
	}
}

// verify compares a NodeNotice with its node and with the other nodes.
func (s *Source) verify(ctx context.Context, own *v1beta1.NodeNotice, node *corev1.Node) (verdict, error) {
	if isOf := nodeindex.InstanceID(node); isOf != own.Spec.InstanceID {
		return mismatch(own, node, isOf), nil
	}
	holder, err := s.o.Nodes.NodeByInstance(ctx, own.Spec.InstanceID)
	var conflict *corroborate.ConflictError
	if errors.As(err, &conflict) {
		return claimedTwice(own, conflict.Error()), nil
	}
	if err != nil {
		return verdict{}, fmt.Errorf("finding the node of instance %s: %w", own.Spec.InstanceID, err)
	}
	switch {
	case holder == nil:
		return verdict{}, errStaleNode
	case holder.Name != node.Name:
		return claimedTwice(own, fmt.Sprintf("node %s states the same instance in spec.providerID", holder.Name)), nil
	}
	return verdict{accepted: true, reason: v1beta1.ReasonRecorded, message: "Interruption " + own.Spec.InstanceID + " has the notices that still matter"}, nil
}

func mismatch(own *v1beta1.NodeNotice, node *corev1.Node, isOf string) verdict {
	is := "is instance " + isOf
	if isOf == "" {
		is = "has no EC2 instance in spec.providerID"
	}
	return verdict{reason: v1beta1.ReasonInstanceMismatch, message: fmt.Sprintf(
		"the agent reports instance %s, but node %s %s. Nothing is recorded. Find out who uses the token of the agent on that node",
		own.Spec.InstanceID, node.Name, is)}
}

func claimedTwice(own *v1beta1.NodeNotice, why string) verdict {
	return verdict{reason: v1beta1.ReasonInstanceClaimedTwice, message: fmt.Sprintf(
		"the agent reports instance %s, but %s. Nothing is recorded. Delete the Node that is not the instance's", own.Spec.InstanceID, why)}
}

// report writes the verdict to the status if it changes, after a delay. It
// returns how long to wait.
func (s *Source) report(ctx context.Context, st *state, own *v1beta1.NodeNotice, v verdict) (time.Duration, error) {
	if !s.leads() {
		return 0, nil
	}
	before := own.DeepCopy()
	own.Status.ObservedGeneration = own.Generation
	status := metav1.ConditionFalse
	if v.accepted {
		status = metav1.ConditionTrue
	}
	changed := meta.SetStatusCondition(&own.Status.Conditions, metav1.Condition{
		Type: v1beta1.ConditionAccepted, Status: status, Reason: v.reason, Message: notice.Printable(v.message), ObservedGeneration: own.Generation,
		LastTransitionTime: metav1.NewTime(s.o.Clock()),
	})
	if !changed && before.Status.ObservedGeneration == own.Generation {
		return 0, nil
	}
	if wait := st.seen.Add(statusDelay).Sub(s.o.Clock()); wait > 0 {
		return wait, nil
	}
	if !v.accepted {
		s.explain(ctx, v.reason, "refused a NodeNotice", "node", own.Name, "instance", own.Spec.InstanceID, "reason", v.reason, "message", v.message)
	}
	if err := s.o.Client.Status().Patch(ctx, own, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return 0, errors.Join(fmt.Errorf("writing the status of NodeNotice %s", own.Name), err)
	}
	return 0, nil
}
