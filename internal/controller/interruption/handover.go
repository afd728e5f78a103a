package interruption

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/action"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

const (
	// handoverAgain is when a handover that failed is tried again, and
	// mostHandovers how often.
	handoverAgain = 2 * time.Second
	mostHandovers = 10
)

// handedOver gives the doomed node over to Karpenter, which ends it, once its pods
// have left. Where that fails the instance goes all the same, so nothing waits
// for it.
func handedOver(ctx context.Context, p *pass) (bool, error) {
	return true, p.handOver(ctx)
}

// handOver gives the node over if that is due. It is written down before.
func (p *pass) handOver(ctx context.Context) error {
	if !p.isToHandOver() {
		return nil
	}
	claim, err := p.doomedClaim(ctx)
	if err != nil {
		log.FromContext(ctx).Error(err, "looking for the NodeClaim to hand over")
		p.outcome.sooner(p.facts.now.Add(handoverAgain))
		return nil
	}
	s := p.report.drain()
	switch {
	case s.NodeClaimDeletion == nil && claim == nil:
		return nil // it is not Karpenter's
	case s.NodeClaimDeletion == nil:
		s.NodeClaimDeletion = &v1alpha1.NodeClaimDeletionStatus{NodeClaim: claim.Name, UID: claim.UID, Time: microTime(p.facts.now)}
		if err := p.writeDown(ctx); err != nil {
			return err
		}
	}
	p.give(ctx, claim)
	return nil
}

// tightened tells Karpenter the deadline of a node that it is ending already, for
// reasons of its own or because it heard first: it would not find it itself. An
// estimated deadline it is not told, since it would shorten the grace of pods to it.
func tightened(ctx context.Context, p *pass) (bool, error) {
	if p.facts.drain().NodeClaimDeletion != nil || !isHard(&p.decision) || notice.IsEstimated(p.decision.Deadline) || !p.isKarpenters() || !replacement.IsDisrupted(p.facts.node) {
		return true, nil
	}
	_, claim, err := p.doomed(ctx, p.facts)
	if err == nil && (claim == nil || !claim.Deleting) {
		return true, nil
	}
	if err == nil {
		err = action.Tighten(ctx, p.Client, claim, p.decision.Deadline)
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "telling Karpenter the deadline")
		p.outcome.sooner(p.facts.now.Add(handoverAgain))
		return true, nil
	}
	at := microTime(p.facts.now)
	p.report.drain().NodeClaimDeletion = &v1alpha1.NodeClaimDeletionStatus{NodeClaim: claim.Name, UID: claim.UID, Time: at, DeletedTime: &at}
	p.report.happen(v1alpha1.ReasonHandedOver, fmt.Sprintf("Karpenter is already deleting NodeClaim %s, and knows the deadline", claim.Name))
	return true, nil
}

// isKarpenters reports whether the node is one that Karpenter can end, for a notice
// that ends it.
func (p *pass) isKarpenters() bool {
	if p.Claims == nil || !replacement.IsKarpenters(p.facts.node) || !replacement.Ends(p.decision.Notice) {
		return false
	}
	installed, _ := p.Claims.Installed()
	return installed
}

func (p *pass) isToHandOver() bool {
	if !p.isKarpenters() {
		return false
	}
	if h := p.report.drain().NodeClaimDeletion; h != nil && (h.DeletedTime != nil && !p.isToForward(h) || h.Tries >= mostHandovers) {
		return false
	}
	if !p.isDone() && slices.ContainsFunc(p.decision.Hooks, func(h v1alpha1.Hook) bool { return h.When == v1alpha1.HookAfterDrain }) {
		return false // they want the instance to be there
	}
	if at := replacement.HandoverAt(p.decision.Deadline, p.Margin); at.After(p.facts.now) {
		p.outcome.sooner(at)
	}
	return replacement.HandoverDue(p.plan, p.decision.Deadline, p.Margin, p.facts.now)
}

// isToForward reports whether the notice is yet to be put on Karpenter's queue.
func (p *pass) isToForward(h *v1alpha1.NodeClaimDeletionStatus) bool {
	_, tells := p.karpentersMessage()
	return p.Forward != nil && tells && h.ForwardedTime == nil
}

func (p *pass) karpentersMessage() (string, bool) {
	return replacement.Message(p.decision.Notice, p.facts.in.Spec.InstanceID, p.facts.node.Labels[corev1.LabelTopologyZone], p.Place)
}

// doomedClaim returns the doomed node's NodeClaim, or nil. Once its name is
// written down it is that, and no other that came under its name.
func (p *pass) doomedClaim(ctx context.Context) (*replacement.Claim, error) {
	h := p.report.drain().NodeClaimDeletion
	if h == nil {
		_, claim, err := p.doomed(ctx, p.facts)
		return claim, err
	}
	claim, err := action.Claim(ctx, p.Client, h.NodeClaim)
	if claim != nil && claim.UID != h.UID {
		claim = nil
	}
	return claim, err
}

// give has the NodeClaim end by the deadline, and tells Karpenter of the notice.
func (p *pass) give(ctx context.Context, claim *replacement.Claim) {
	h := p.report.drain().NodeClaimDeletion
	err := p.endClaim(ctx, claim)
	at := microTime(p.facts.now)
	if err == nil && h.DeletedTime == nil {
		h.DeletedTime = &at
		p.report.happen(v1alpha1.ReasonHandedOver, fmt.Sprintf("NodeClaim %s is deleted, which has Karpenter end the node", h.NodeClaim))
	}
	if err == nil && p.isToForward(h) {
		text, _ := p.karpentersMessage()
		if err = p.Forward(ctx, text); err == nil {
			h.ForwardedTime = &at
		} else {
			err = fmt.Errorf("telling Karpenter of the notice: %w", err)
		}
	}
	h.Message = ""
	switch {
	case apierrors.IsConflict(err): // Karpenter has written to it meanwhile
		p.outcome.sooner(p.facts.now.Add(lookAgain))
	case err != nil:
		log.FromContext(ctx).Error(err, "handing over")
		h.Tries++
		h.Message = clip(err.Error())
		p.outcome.sooner(p.facts.now.Add(handoverAgain))
	}
}

func (p *pass) endClaim(ctx context.Context, claim *replacement.Claim) error {
	if claim == nil {
		return nil // it is gone
	}
	if err := action.Tighten(ctx, p.Client, claim, p.decision.Deadline); err != nil {
		return err
	}
	return action.End(ctx, p.Client, claim)
}
