package interruption

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

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/action"
	"github.com/lifeboat-dev/lifeboat/internal/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// karpenters brings up replacements by Karpenter.
type karpenters struct{ *Controller }

func (k karpenters) early(ctx context.Context, f *facts, d policy.Decision) (*v1alpha1.ReplacementStatus, bool) {
	early := k.earlyFacts(f, d)
	if r, unknown := k.unknown(f, early); unknown {
		return r.status, true
	}
	if s, ok := early.Decide(); ok {
		return s, true
	}
	return k.poolVerdict(ctx, f, early)
}

// unknown is how it stands while it is not known whether Karpenter is there, which
// lasts for a moment after the start.
func (c *Controller) unknown(f *facts, early replacement.QuickFacts) (replacing, bool) {
	if installed, known := c.Claims.Installed(); installed || known || !early.Karpenters || early.Movable == 0 || early.InstanceGone {
		return replacing{}, false
	}
	s := early.ReadFailed(errors.New("whether Karpenter is installed is not known yet"), true)
	return replacing{status: s, wake: f.now.Add(replaceAgain)}, true
}

func (c *Controller) earlyFacts(f *facts, d policy.Decision) replacement.QuickFacts {
	installed, _ := c.Claims.Installed()
	return replacement.QuickFacts{
		Now: f.now, Deadline: d.Deadline, Was: f.drain().Replacement, InstanceGone: d.InstanceGone || f.node == nil,
		Movable: len(replacement.Movable(f.pods)), Installed: installed, Karpenters: replacement.IsKarpenters(f.node),
	}
}

// follow looks at the NodeClaim that was ordered. That it is gone is believed only
// of the API server itself: a watch may be behind.
func (k karpenters) follow(ctx context.Context, f *facts, d policy.Decision) replacing {
	was := f.drain().Replacement
	claim := k.claimOf(f.in.Spec.InstanceID, was.Name)
	if claim == nil {
		var err error
		if claim, err = action.Claim(ctx, k.Client, was.Name); err != nil {
			log.FromContext(ctx).Error(err, "looking at the replacement")
			return replacing{status: was, wake: f.now.Add(replaceAgain)}
		}
	}
	ready := false
	if claim != nil && claim.NodeName != "" {
		var node corev1.Node
		ready = k.Client.Get(ctx, client.ObjectKey{Name: claim.NodeName}, &node) == nil && nodeindex.Ready(&node)
	}
	s := replacement.Follow(replacement.Following{Now: f.now, Deadline: d.Deadline, Was: *was, Claim: claim, NodeReady: ready})
	r := replacing{status: s}
	switch {
	case s.Phase == v1alpha1.ReplacementRetrying:
		r.wake = laterOf(replacement.RetryAt(s, d.Deadline), f.now.Add(replaceAgain))
	case s.Phase == v1alpha1.ReplacementLaunched && claim != nil && claim.Initialized:
		r.wake = f.now.Add(lookAgain) // the cache of nodes is behind
	case s.Phase != v1alpha1.ReplacementReady:
		r.wake = f.now.Add(replaceAgain)
	}
	return r
}

// claimOf finds a replacement's NodeClaim in what is watched.
func (c *Controller) claimOf(instanceID, name string) *replacement.Claim {
	for _, claim := range c.Claims.Claims() {
		if claim.Name == name && claim.Replaces() == instanceID {
			return claim
		}
	}
	return nil
}

// consider finds out whether a replacement is needed, and what it is to be.
func (k karpenters) consider(ctx context.Context, f *facts, d policy.Decision) replacing {
	early := k.earlyFacts(f, d)
	if r, unknown := k.unknown(f, early); unknown {
		return r
	}
	instanceID := f.in.Spec.InstanceID
	if early.Was != nil && early.Was.Phase == v1alpha1.ReplacementOrdered {
		early.Was = early.Was.DeepCopy() // it was written down, and not made: this is the same try
		early.Was.Tries--
	}
	early.Unlaunched = k.yard.place(instanceID, k.Claims.Claims(), f.now)
	if s, ok := early.Decide(); ok {
		return replacing{status: s, wake: f.now.Add(replaceAgain)}
	}
	facts, err := k.replacementFacts(ctx, f, d, early)
	if err != nil {
		k.yard.leave(instanceID)
		log.FromContext(ctx).Error(err, "finding out whether a replacement is needed")
		return replacing{status: early.ReadFailed(err, !isRefused(err)), wake: f.now.Add(replaceAgain)}
	}
	decision := replacement.Decide(facts)
	if facts.Interrupted != nil && facts.Interrupted.Deleting {
		if err := action.Tighten(ctx, k.Client, facts.Interrupted, d.Deadline); err != nil {
			k.yard.leave(instanceID)
			return replacing{status: early.ReadFailed(err, !isRefused(err)), wake: f.now.Add(replaceAgain)}
		}
	}
	if decision.Order == nil {
		k.yard.leave(instanceID)
	}
	k.yard.take(decision.Used, f.now)
	r := replacing{status: decision.Status, wake: f.now.Add(replaceAgain)}
	if decision.Order != nil {
		r.order = func(ctx context.Context, p *pass) error { return p.orderNow(ctx, decision.Order) }
	}
	return r
}

// isRefused reports whether the API server will give the same answer again.
func isRefused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err) ||
		meta.IsNoMatchError(err) || errors.Is(err, action.ErrNameTaken)
}

// orderNow makes the NodeClaim. That it is ordered is written down by now.
func (p *pass) orderNow(ctx context.Context, claim *unstructured.Unstructured) error {
	uid, err := action.Order(ctx, p.Client, claim)
	s := p.report.drain().Replacement
	switch {
	case err == nil:
		s.UID = uid
	case isRefused(err):
		s.Phase, s.Reason, s.Message = v1alpha1.NoReplacement, replacement.ReasonRefused, clip(fmt.Sprintf("no replacement is brought up: %v", err))
		p.report.happen(v1alpha1.ReasonNotReplaced, s.Message)
		p.yard.leave(p.facts.in.Spec.InstanceID)
	default:
		log.FromContext(ctx).Error(err, "ordering a replacement")
	}
	return nil
}

func (k karpenters) release(ctx context.Context, p *pass) error {
	s := p.report.drain().Replacement
	if p.Claims == nil || s == nil || s.Name == "" || s.Phase == v1alpha1.NoReplacement {
		return nil
	}
	claim, err := action.Claim(ctx, p.Client, s.Name)
	if err != nil || claim == nil || claim.Replaces() != p.facts.in.Spec.InstanceID {
		return client.IgnoreNotFound(err)
	}
	if err := action.Release(ctx, p.Client, claim); err != nil && !isRefused(err) {
		return err
	}
	if !claim.Deleting {
		p.report.happen(v1alpha1.ReasonReplacementReleased, released(claim))
	}
	return nil
}

func released(claim *replacement.Claim) string {
	if !claim.Launched {
		return fmt.Sprintf("replacement %s, which has no instance, is not brought up", claim.Name)
	}
	return fmt.Sprintf("replacement %s is a node like any other from now on", claim.Name)
}
