package report

import (
	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// karpenterDoes says what Karpenter does about a kind without Lifeboat, if its queue or its poll has it
// (karpenter-provider-aws v1.14.1, pkg/controllers/interruption and pkg/controllers/capacityreservation).
func karpenterDoes(kind string) string {
	switch kind {
	case notice.KindSpotInterruption, notice.KindCapacityReservationInterruption:
		return "deletes the NodeClaim at once, and knows no deadline"
	case notice.KindScheduledChange:
		return "deletes the NodeClaim at once, however far ahead the change is"
	case notice.KindInstanceStateChange:
		return "deletes the NodeClaim, without a deadline for the pods"
	case notice.KindInstanceStatus:
		return "deletes the NodeClaim after two minutes, and forces the pods off"
	case notice.KindCapacityBlockExpiration:
		return "deletes the NodeClaim 40 minutes before the end of the block"
	}
	return "does nothing"
}

// compared says, for an Interruption that Lifeboat only observed, what it would have done differently from
// Karpenter; empty: Lifeboat acted.
func compared(in *v1beta1.Interruption) string {
	if !record.IsObserved(in) {
		return ""
	}
	d := in.Status.Decision
	text := "Karpenter, on its own nodes: " + karpenterDoes(in.Status.Kind) + ". Lifeboat: " + d.Message
	if d.Replacement == v1beta1.ReplacementBefore && record.Drains(d.Action) {
		text += "; on nodes of Karpenter a replacement first"
	}
	return text
}
