package policy

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// karpenterKinds are the kinds for which Karpenter deletes a NodeClaim at once
// (karpenter-provider-aws, pkg/controllers/interruption and capacityreservation/expiration).
func karpenterKinds() []string {
	return []string{
		notice.KindSpotInterruption, notice.KindCapacityReservationInterruption, notice.KindScheduledChange,
		notice.KindInstanceStateChange, notice.KindInstanceStatus, notice.KindCapacityBlockExpiration, "*",
	}
}

// Restriction returns the governing policy of a node, and what in it is void if Karpenter
// deletes the node at once. It is empty if nothing is.
func Restriction(policies []v1beta1.InterruptionPolicy, node *corev1.Node) (name, what string) {
	q := &matchContext{node: node}
	for _, p := range ranked(policies) {
		if _, objects := q.policyMismatch(p); objects {
			continue
		}
		if what := restriction(p); what != "" {
			return p.Name, what
		}
		return "", ""
	}
	return "", ""
}

func restriction(p *v1beta1.InterruptionPolicy) string {
	if len(Validate(p.Spec)) > 0 {
		return "it is not valid, so drains wait for approval"
	}
	for i, r := range p.Spec.Rules {
		if what := ruleRestriction(r); what != "" {
			return describeRule(i, r) + " has " + what
		}
	}
	switch {
	case p.Spec.Budget != nil:
		return "it has a budget"
	case slices.ContainsFunc(p.Spec.Hooks, func(h v1beta1.Hook) bool { return h.When == v1beta1.HookBeforeDrain }):
		return "it has a hook before the drain"
	}
	return ""
}

func ruleRestriction(r v1beta1.Rule) string {
	if !slices.ContainsFunc(r.Kinds, func(kind string) bool { return slices.Contains(karpenterKinds(), kind) }) {
		return ""
	}
	switch {
	case r.Action == v1beta1.ActionIgnore, r.Action == v1beta1.ActionNotify, r.Action == v1beta1.ActionCordon:
		return fmt.Sprintf("action: %s", r.Action)
	case r.Approval == v1beta1.ApprovalRequired:
		return "approval: Required"
	case r.Window != nil:
		return "a window"
	case r.NotBefore != nil:
		return "notBefore"
	}
	return ""
}
