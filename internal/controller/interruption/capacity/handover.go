package capacity

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/status"
	"github.com/lifeboat-dev/lifeboat/internal/corroborate"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

const (
	// retryHandover is when a handover that failed is retried. Each further wait is twice as long,
	// up to maxRetryHandover: as long as the NodeClaim exists, Karpenter does not end the node.
	retryHandover    = 2 * time.Second
	maxRetryHandover = time.Minute
)

// HandOver deletes the NodeClaim of the interrupted node if that is due, so that
// Karpenter ends the node. The intent is written first. plan is the plan of the pods;
// done is set where no pod is waited for. A failure holds up nothing, because the
// instance goes anyway.
func (r *Replacer) HandOver(ctx context.Context, in Input, plan drain.Plan, done bool, p Progress) error {
	if !r.isHandoverDue(in, plan, done, p) {
		return nil
	}
	claim, err := r.interruptedClaim(ctx, in, p)
	if err != nil {
		log.FromContext(ctx).Error(err, "looking for the NodeClaim to hand over")
		p.RequeueAt(in.Now.Add(retryHandover))
		return nil
	}
	s := p.Drain()
	switch {
	case s.NodeClaimDeletion == nil && claim == nil:
		return nil // the node has no NodeClaim
	case s.NodeClaimDeletion == nil:
		if !p.Corroborated(ctx, &corroborate.Claim{Name: claim.Name, UID: claim.UID, NodeName: claim.NodeName, InstanceID: claim.InstanceID}) {
			return nil
		}
		s.NodeClaimDeletion = &v1beta1.NodeClaimDeletionStatus{NodeClaim: claim.Name, UID: claim.UID, Time: status.MicroTime(in.Now)}
		if err := p.Checkpoint(ctx); err != nil {
			return err
		}
	}
	r.deleteClaim(ctx, in, claim, p)
	return nil
}

// SetTerminationTimestamp tells Karpenter the deadline of a node that it deletes already:
// it does not learn the deadline by other means. It does not set an estimated deadline,
// because Karpenter would shorten the grace of pods to it.
func (r *Replacer) SetTerminationTimestamp(ctx context.Context, in Input, p Progress) {
	d := &in.Decision
	if in.Drain.NodeClaimDeletion != nil || !notice.IsFirm(d.Deadline) || notice.IsEstimated(d.Deadline) || !r.isKarpenters(in) || !replacement.IsDisrupted(in.Node) {
		return
	}
	_, claim, err := r.interrupted(ctx, in)
	if err == nil && (claim == nil || !claim.Deleting) {
		return
	}
	if err == nil {
		err = mutate.Tighten(ctx, r.Client, claim, d.Deadline, in.Now)
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "telling Karpenter the deadline")
		p.RequeueAt(in.Now.Add(retryHandover))
		return
	}
	at := status.MicroTime(in.Now)
	p.Drain().NodeClaimDeletion = &v1beta1.NodeClaimDeletionStatus{NodeClaim: claim.Name, UID: claim.UID, Time: at, DeletedTime: &at}
	p.Record(v1beta1.ReasonNodeClaimDeleted, fmt.Sprintf("Karpenter is already deleting NodeClaim %s, and knows the deadline", claim.Name))
}

// isKarpenters reports whether Karpenter can end the node, for a notice that ends it.
func (r *Replacer) isKarpenters(in Input) bool {
	if r.Claims == nil || !replacement.IsKarpenters(in.Node) || !replacement.Ends(in.Decision.Notice) {
		return false
	}
	installed, _ := r.Claims.Installed()
	return installed
}

func (r *Replacer) isHandoverDue(in Input, plan drain.Plan, done bool, p Progress) bool {
	if !r.isKarpenters(in) {
		return false
	}
	if h := p.Drain().NodeClaimDeletion; h != nil && h.DeletedTime != nil && !r.isForwardDue(in, h) {
		return false
	}
	if at := r.Memory.handoverRetry(in.instanceID()); at.After(in.Now) {
		p.RequeueAt(at)
		return false
	}
	if !done && slices.ContainsFunc(in.Decision.Hooks, func(h v1beta1.Hook) bool { return h.When == v1beta1.HookAfterDrain }) {
		return false // these hooks need the instance
	}
	if at := replacement.HandoverAt(in.Decision.Deadline, r.Margin); at.After(in.Now) {
		p.RequeueAt(at)
	}
	return done || replacement.HandoverDue(plan, in.Decision.Deadline, r.Margin, in.Now)
}

// isForwardDue reports whether the notice has to be put on Karpenter's queue.
func (r *Replacer) isForwardDue(in Input, h *v1beta1.NodeClaimDeletionStatus) bool {
	_, ok := r.message(in)
	return r.Forward != nil && ok && h.ForwardedTime == nil && !in.Decision.Notice.Drill // it tells nothing about EC2's capacity
}

// message is the notice as Karpenter reads it from its queue.
func (r *Replacer) message(in Input) (string, bool) {
	return replacement.Message(in.Decision.Notice, in.instanceID(), in.Node.Labels[corev1.LabelTopologyZone], r.Place)
}

// interruptedClaim returns the NodeClaim of the interrupted node, or nil. Once its name
// is written, a later NodeClaim of the same name does not count.
func (r *Replacer) interruptedClaim(ctx context.Context, in Input, p Progress) (*replacement.Claim, error) {
	h := p.Drain().NodeClaimDeletion
	if h == nil {
		_, claim, err := r.interrupted(ctx, in)
		return claim, err
	}
	claim, err := mutate.Claim(ctx, r.Client, h.NodeClaim)
	if claim != nil && claim.UID != h.UID {
		claim = nil
	}
	return claim, err
}

// deleteClaim deletes the NodeClaim, which ends by the deadline, and forwards the notice
// to Karpenter.
func (r *Replacer) deleteClaim(ctx context.Context, in Input, claim *replacement.Claim, p Progress) {
	h := p.Drain().NodeClaimDeletion
	err := r.endClaim(ctx, in, claim)
	at := status.MicroTime(in.Now)
	if err == nil && h.DeletedTime == nil {
		h.DeletedTime = &at
		p.Record(v1beta1.ReasonNodeClaimDeleted, fmt.Sprintf("NodeClaim %s is deleted, which has Karpenter end the node", h.NodeClaim))
	}
	if err == nil && r.isForwardDue(in, h) {
		text, _ := r.message(in)
		if err = r.Forward(ctx, text); err == nil {
			h.ForwardedTime = &at
		} else {
			err = fmt.Errorf("telling Karpenter of the notice: %w", err)
		}
	}
	h.Message = ""
	switch {
	case apierrors.IsConflict(err): // Karpenter wrote to it at the same time
		p.RequeueAt(in.Now.Add(requeueCache))
	case err != nil:
		log.FromContext(ctx).Error(err, "handing over")
		h.Tries++
		h.Message = status.Clip(err.Error())
		again := in.Now.Add(handoverBackoff(h.Tries))
		r.Memory.retryHandoverAt(in.instanceID(), again, in.Now)
		p.RequeueAt(again)
	}
}

// handoverBackoff is how long to wait after a number of tries that failed.
func handoverBackoff(tries int32) time.Duration {
	wait := retryHandover
	for range min(tries-1, 5) {
		wait = min(2*wait, maxRetryHandover)
	}
	return wait
}

func (r *Replacer) endClaim(ctx context.Context, in Input, claim *replacement.Claim) error {
	if claim == nil {
		return nil // it is gone
	}
	if err := mutate.Tighten(ctx, r.Client, claim, in.Decision.Deadline, in.Now); err != nil {
		return err
	}
	return mutate.End(ctx, r.Client, claim)
}
