package interruption

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/action"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// +kubebuilder:rbac:groups=karpenter.sh,resources=nodeclaims,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=karpenter.sh,resources=nodepools,verbs=get
// +kubebuilder:rbac:groups=karpenter.k8s.aws,resources=ec2nodeclasses,verbs=get
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list
// +kubebuilder:rbac:groups="",resources=pods,verbs=list

// replaceAgain is when to look again at a replacement, should its watch have been
// lost, or the API server not have answered.
const replaceAgain = 2 * time.Second

// ClaimSource knows the NodeClaims that are replacements; claimwatch.Watcher is
// one.
type ClaimSource interface {
	// Installed reports whether Karpenter's API is served, and whether that is
	// known.
	Installed() (installed, known bool)
	// Claims returns the NodeClaims that are replacements.
	Claims() []*replacement.Claim
}

// replacing is how the replacement of a node stands in a pass.
type replacing struct {
	// status is nil where none is wanted, or nothing was found out yet.
	status *v1alpha1.ReplacementStatus
	// order is the NodeClaim to make now; nil: none.
	order *unstructured.Unstructured
	// unsure is set where it has to be found out yet whether one is needed.
	unsure bool
	wake   time.Time
}

// wantsReplacement reports whether policy wants capacity before pods are moved,
// and this loop can see to it.
func (c *Controller) wantsReplacement(d policy.Decision) bool {
	return c.Claims != nil && d.Replacement == v1alpha1.ReplacementBefore
}

// followed finds out how a replacement stands that was ordered, and whether one is
// needed at all, as far as that takes no questions. The rest is for the step that
// orders it: what comes before that in the pass may have to wait for its turn.
func (c *Controller) followed(ctx context.Context, f *facts, d policy.Decision) replacing {
	was := f.was.Replacement
	if !c.wantsReplacement(d) || !f.podsKnown {
		return replacing{status: was}
	}
	if replacement.Settled(was) {
		return replacing{status: was}
	}
	if replacement.IsOrdered(was) {
		return c.follow(ctx, f, d)
	}
	early := c.early(f, d)
	if r, unknown := c.unknown(f, early); unknown {
		return r
	}
	if s, ok := early.Decide(); ok && (was == nil || s.Reason == replacement.ReasonNoPods || s.Reason == replacement.ReasonInstanceGone) {
		return replacing{status: s}
	}
	return replacing{status: was, unsure: was == nil}
}

// unknown is how it stands while it is not known whether Karpenter is there, which
// lasts for a moment after the start.
func (c *Controller) unknown(f *facts, early replacement.Early) (replacing, bool) {
	if installed, known := c.Claims.Installed(); installed || known || !early.Karpenters || early.Movable == 0 || early.InstanceGone {
		return replacing{}, false
	}
	s := early.Failed(errors.New("whether Karpenter is installed is not known yet"), true)
	return replacing{status: s, wake: f.now.Add(replaceAgain)}, true
}

func (c *Controller) early(f *facts, d policy.Decision) replacement.Early {
	installed, _ := c.Claims.Installed()
	return replacement.Early{
		Now: f.now, Deadline: d.Deadline, Was: f.was.Replacement, InstanceGone: d.InstanceGone || f.node == nil,
		Movable: len(replacement.Movable(f.pods)), Installed: installed, Karpenters: replacement.IsKarpenters(f.node),
	}
}

// follow looks at the NodeClaim that was ordered. That it is gone is believed only
// of the API server itself: a watch may be behind.
func (c *Controller) follow(ctx context.Context, f *facts, d policy.Decision) replacing {
	was := f.was.Replacement
	claim := c.claimOf(f.in.Spec.InstanceID, was.Name)
	if claim == nil {
		var err error
		if claim, err = action.Claim(ctx, c.Client, was.Name); err != nil {
			log.FromContext(ctx).Error(err, "looking at the replacement")
			return replacing{status: was, wake: f.now.Add(replaceAgain)}
		}
	}
	ready := false
	if claim != nil && claim.NodeName != "" {
		var node corev1.Node
		ready = c.Client.Get(ctx, client.ObjectKey{Name: claim.NodeName}, &node) == nil && nodeindex.Ready(&node)
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

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
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

// replacementGate is what pods wait for, if they wait for a replacement.
func (f *facts) replacementGate(d policy.Decision) (drain.Gate, bool) {
	if f.replacing.unsure {
		return drain.Gate{Why: "whether their node needs a replacement is being found out"}, true
	}
	if d.Replacement != v1alpha1.ReplacementBefore { // policy may have changed since it was ordered
		return drain.Gate{}, false
	}
	return replacement.Gate(f.replacing.status, d.Deadline)
}

// consider finds out whether a replacement is needed, and what it is to be.
func (c *Controller) consider(ctx context.Context, f *facts, d policy.Decision) replacing {
	early := c.early(f, d)
	if r, unknown := c.unknown(f, early); unknown {
		return r
	}
	instanceID := f.in.Spec.InstanceID
	if early.Was != nil && early.Was.Phase == v1alpha1.ReplacementOrdered {
		early.Was = early.Was.DeepCopy() // it was written down, and not made: this is the same try
		early.Was.Tries--
	}
	early.Unlaunched = c.yard.place(instanceID, c.Claims.Claims(), f.now)
	if s, ok := early.Decide(); ok {
		return replacing{status: s, wake: f.now.Add(replaceAgain)}
	}
	facts, err := c.replacementFacts(ctx, f, d, early)
	if err != nil {
		c.yard.leave(instanceID)
		log.FromContext(ctx).Error(err, "finding out whether a replacement is needed")
		return replacing{status: early.Failed(err, !isRefused(err)), wake: f.now.Add(replaceAgain)}
	}
	decision := replacement.Decide(facts)
	if facts.Doomed != nil && facts.Doomed.Deleting {
		if err := action.Tighten(ctx, c.Client, facts.Doomed, d.Deadline); err != nil {
			c.yard.leave(instanceID)
			return replacing{status: early.Failed(err, !isRefused(err)), wake: f.now.Add(replaceAgain)}
		}
	}
	if decision.Order == nil {
		c.yard.leave(instanceID)
	}
	c.yard.take(decision.Used, f.now)
	return replacing{status: decision.Status, order: decision.Order, wake: f.now.Add(replaceAgain)}
}

// isRefused reports whether the API server will give the same answer again.
func isRefused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err) ||
		meta.IsNoMatchError(err) || errors.Is(err, action.ErrNameTaken)
}

// ordered orders the replacement that policy wants before pods are moved. Pods
// wait for it by a gate in the plan, which their last call opens; nothing else
// does, and nothing that goes wrong here holds up the drain.
func ordered(ctx context.Context, p *pass) (bool, error) {
	f := p.facts
	if !p.wantsReplacement(p.decision) || !f.podsKnown {
		return true, nil
	}
	now := f.replacing
	if p.isToConsider(now.status) {
		now = p.consider(ctx, f, p.decision)
		f.replacing = now
		p.report.replacement(now.status)
		if now.order != nil {
			if err := p.orderNow(ctx, now.order); err != nil {
				return false, err
			}
		}
	}
	p.outcome.sooner(now.wake)
	return true, nil
}

// isToConsider reports whether it has to be found out whether one is ordered.
func (p *pass) isToConsider(s *v1alpha1.ReplacementStatus) bool {
	switch {
	case replacement.Settled(s):
		return false
	case s != nil && s.Phase == v1alpha1.ReplacementRetrying:
		at := replacement.RetryAt(s, p.decision.Deadline)
		if p.facts.now.Before(at) {
			p.outcome.sooner(at)
			return false
		}
		return true
	case s != nil && s.Phase == v1alpha1.ReplacementOrdered && s.UID == "":
		return true // written down, and not made, as far as is known
	}
	return !replacement.IsOrdered(s)
}

// orderNow makes the NodeClaim. That it is ordered is written down before.
func (p *pass) orderNow(ctx context.Context, claim *unstructured.Unstructured) error {
	if err := p.writeDown(ctx); err != nil {
		return err
	}
	uid, err := action.Order(ctx, p.Client, claim)
	s := p.report.after.Status.Replacement
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

// unreplace lets go of a replacement: its node is one like any other from now on,
// or, where it never had an instance, is not brought up.
func (p *pass) unreplace(ctx context.Context) error {
	s := p.report.after.Status.Replacement
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
