package status

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/kube/writes"
)

// refusedReasons are the reasons of the condition, by the kind of what is written.
var refusedReasons = map[string]string{
	writes.Node: v1beta1.ReasonNodeWriteRefused, writes.Pod: v1beta1.ReasonPodWriteRefused,
	writes.Interruption: v1beta1.ReasonStatusWriteRefused, writes.NodeClaim: v1beta1.ReasonNodeClaimWriteRefused,
	writes.Job: v1beta1.ReasonJobWriteRefused, writes.Instance: v1beta1.ReasonTerminationRefused,
}

// RefusedReason is the reason of a refused write of a kind.
func RefusedReason(kind string) string { return refusedReasons[kind] }

// RefusedMessage says what is refused, why, and what comes next.
func RefusedMessage(r writes.Refusal) string {
	if r.Kind == writes.Instance {
		return fmt.Sprintf("EC2 refuses to terminate instance %s: %s. The request is repeated, at last every hour. "+
			"Permit ec2:TerminateInstances for this instance, or end its termination protection", r.Name, Clip(r.Err.Error()))
	}
	next := "Each pod is asked to leave by its last call nevertheless, and the write is repeated"
	if r.Kind == writes.Job { // package runner counts a refused Job as a failed try
		next = "Its hook is tried again while it has retries, and then fails. Each pod is asked to leave by its last call nevertheless"
	}
	return fmt.Sprintf("the API server refuses what Lifeboat writes to %s %s: %s. %s. "+
		"Allow it in the policy, webhook or role that the answer names", r.Kind, r.Name, Clip(r.Err.Error()), next)
}

// SetRefused notes which requests are refused. What is refused stays in the condition until
// a request of the same kind is accepted: a pass need not try each.
func (u *Update) SetRefused(written *writes.Log) {
	if refused := written.Refused(); len(refused) > 0 {
		message := RefusedMessage(refused[0])
		if more := len(refused) - 1; more > 0 {
			message += fmt.Sprintf(" (and %d other kinds of writes)", more)
		}
		u.setCondition(v1beta1.ConditionRequestsAccepted, false, RefusedReason(refused[0].Kind), message)
		return
	}
	c := meta.FindStatusCondition(u.after.Status.Conditions, v1beta1.ConditionRequestsAccepted)
	if c == nil || c.Status != metav1.ConditionFalse {
		return
	}
	for kind, reason := range refusedReasons {
		if reason == c.Reason && written.Accepted(kind) {
			u.setCondition(v1beta1.ConditionRequestsAccepted, true, v1beta1.ReasonRequestsAccepted, "what was refused is accepted now")
		}
	}
}

// Name is the name of the Interruption.
func (u *Update) Name() string { return u.before.Name }

// Object is the Interruption, for Events.
func (u *Update) Object() *v1beta1.Interruption { return u.after }

// Node is the node that the pass observed, or nil.
func (u *Update) Node() *corev1.Node { return u.node }
