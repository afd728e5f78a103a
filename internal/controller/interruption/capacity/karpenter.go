package capacity

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/status"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// karpenter starts replacements with Karpenter.
type karpenter struct{ *Replacer }

func (k karpenter) early(ctx context.Context, in Input) (*v1beta1.ReplacementStatus, bool) {
	early := k.earlyFacts(in)
	if r, unknown := k.unknown(in, early); unknown {
		return r.Status, true
	}
	if s, ok := early.Decide(); ok {
		return s, true
	}
	return k.poolVerdict(ctx, in, early)
}

// unknown is the state while it is not known whether Karpenter is installed: for a moment
// after the start.
func (r *Replacer) unknown(in Input, early replacement.QuickFacts) (State, bool) {
	if installed, known := r.Claims.Installed(); installed || known || !early.Karpenters || early.Movable == 0 || early.InstanceGone {
		return State{}, false
	}
	s := early.ReadFailed(errors.New("whether Karpenter is installed is not known yet"), true)
	return State{Status: s, wake: in.Now.Add(requeueReplacement)}, true
}

func (r *Replacer) earlyFacts(in Input) replacement.QuickFacts {
	installed, _ := r.Claims.Installed()
	return replacement.QuickFacts{
		Now: in.Now, Deadline: in.Decision.Deadline, Was: in.Drain.Replacement, InstanceGone: in.Decision.InstanceGone || in.Node == nil,
		Movable: len(replacement.Movable(in.Pods)), Installed: installed, Karpenters: replacement.IsKarpenters(in.Node),
	}
}

// follow looks at the NodeClaim that was ordered. Only the API server itself can say that
// it is gone: the watch may be behind.
func (k karpenter) follow(ctx context.Context, in Input) State {
	was := in.Drain.Replacement
	claim := k.claimOf(in.instanceID(), was.Name)
	if claim == nil {
		var err error
		if claim, err = mutate.Claim(ctx, k.Client, was.Name); err != nil {
			log.FromContext(ctx).Error(err, "looking at the replacement")
			return State{Status: was, wake: in.Now.Add(requeueReplacement)}
		}
	}
	ready := false
	if claim != nil && claim.NodeName != "" {
		var node corev1.Node
		ready = k.Client.Get(ctx, client.ObjectKey{Name: claim.NodeName}, &node) == nil && nodeindex.Ready(&node)
	}
	s := replacement.Follow(replacement.Following{Now: in.Now, Deadline: in.Decision.Deadline, Was: *was, Claim: claim, NodeReady: ready})
	r := State{Status: s}
	switch {
	case s.Phase == v1beta1.ReplacementRetrying:
		r.wake = laterOf(replacement.RetryAt(s, in.Decision.Deadline), in.Now.Add(requeueReplacement))
	case s.Phase == v1beta1.ReplacementLaunched && claim != nil && claim.Initialized:
		r.wake = in.Now.Add(requeueCache) // the cache of nodes is behind
	case s.Phase != v1beta1.ReplacementReady:
		r.wake = in.Now.Add(requeueReplacement)
	}
	return r
}

// claimOf finds the NodeClaim of a replacement in the cache.
func (r *Replacer) claimOf(instanceID, name string) *replacement.Claim {
	for _, claim := range r.Claims.Claims() {
		if claim.Name == name && claim.Replaces() == instanceID {
			return claim
		}
	}
	return nil
}

// consider decides whether a replacement is needed, and which.
func (k karpenter) consider(ctx context.Context, in Input) State {
	early := k.earlyFacts(in)
	if r, unknown := k.unknown(in, early); unknown {
		return r
	}
	instanceID := in.instanceID()
	if early.Was != nil && early.Was.Phase == v1beta1.ReplacementOrdered {
		early.Was = early.Was.DeepCopy() // it is written, and was not created: this is the same try
		early.Was.Tries--
	}
	early.Unlaunched = k.Memory.reserveLaunch(instanceID, k.Claims.Claims(), in.Now)
	if s, ok := early.Decide(); ok {
		return State{Status: s, wake: in.Now.Add(requeueReplacement)}
	}
	facts, err := k.replacementFacts(ctx, in, early)
	if err != nil {
		k.Memory.releaseLaunch(instanceID)
		log.FromContext(ctx).Error(err, "finding out whether a replacement is needed")
		return State{Status: early.ReadFailed(err, !isRefused(err)), wake: in.Now.Add(requeueReplacement)}
	}
	decision := replacement.Decide(facts)
	if facts.Interrupted != nil && facts.Interrupted.Deleting {
		if err := mutate.Tighten(ctx, k.Client, facts.Interrupted, in.Decision.Deadline, in.Now); err != nil {
			k.Memory.releaseLaunch(instanceID)
			return State{Status: early.ReadFailed(err, !isRefused(err)), wake: in.Now.Add(requeueReplacement)}
		}
	}
	if decision.Order == nil {
		k.Memory.releaseLaunch(instanceID)
	}
	k.Memory.reserveNodes(decision.Used, in.Now)
	r := State{Status: decision.Status, wake: in.Now.Add(requeueReplacement)}
	if decision.Order != nil {
		r.order = func(ctx context.Context, in Input, p Progress) error { return k.create(ctx, in, p, decision.Order) }
	}
	return r
}

// isRefused reports whether a retry would get the same answer.
func isRefused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err) ||
		meta.IsNoMatchError(err) || errors.Is(err, mutate.ErrNameTaken)
}

// create creates the NodeClaim. The intent is written already.
func (k karpenter) create(ctx context.Context, in Input, p Progress, claim *unstructured.Unstructured) error {
	uid, err := mutate.Order(ctx, k.Client, claim)
	s := p.Drain().Replacement
	switch {
	case err == nil:
		s.UID = uid
	case isRefused(err):
		s.Phase, s.Reason, s.Message = v1beta1.NoReplacement, replacement.ReasonRefused, status.Clip(fmt.Sprintf("no replacement is brought up: %v", err))
		p.Record(v1beta1.ReasonNotReplaced, s.Message)
		k.Memory.releaseLaunch(in.instanceID())
	default:
		log.FromContext(ctx).Error(err, "ordering a replacement")
	}
	return nil
}

func (k karpenter) release(ctx context.Context, in Input, p Progress) error {
	s := p.Drain().Replacement
	if k.Claims == nil || s == nil || s.Name == "" || s.Phase == v1beta1.NoReplacement {
		return nil
	}
	claim, err := mutate.Claim(ctx, k.Client, s.Name)
	if err != nil || claim == nil || claim.Replaces() != in.instanceID() {
		return client.IgnoreNotFound(err)
	}
	if err := mutate.Release(ctx, k.Client, claim); err != nil && !isRefused(err) {
		return err
	}
	if !claim.Deleting {
		p.Record(v1beta1.ReasonReplacementReleased, released(claim))
	}
	return nil
}

func released(claim *replacement.Claim) string {
	if !claim.Launched {
		return fmt.Sprintf("replacement %s, which has no instance, is not brought up", claim.Name)
	}
	return fmt.Sprintf("replacement %s is a node like any other from now on", claim.Name)
}
