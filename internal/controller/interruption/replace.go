package interruption

import (
	"context"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
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

// provider brings up replacements.
type provider interface {
	// follow looks at one that was ordered.
	follow(ctx context.Context, f *facts, d policy.Decision) replacing
	// early says how one stands that was not ordered, if that takes no request for the
	// node.
	early(ctx context.Context, f *facts, d policy.Decision) (*v1alpha1.ReplacementStatus, bool)
	// consider finds out whether one is ordered.
	consider(ctx context.Context, f *facts, d policy.Decision) replacing
	// release lets go of one: its node is one like any other from now on.
	release(ctx context.Context, p *pass) error
}

// replacing is how the replacement of a node stands in a pass.
type replacing struct {
	// status is nil where none is wanted, or nothing was found out yet.
	status *v1alpha1.ReplacementStatus
	// order orders it, once the status is written down; nil: nothing is to be
	// ordered. written tells that it is.
	order   func(context.Context, *pass) error
	written bool
	// unsure is set where it has to be found out yet whether one is needed.
	unsure bool
	wake   time.Time
}

// wantsReplacement reports whether policy wants capacity before pods are moved,
// and this loop can see to it.
func (c *Controller) wantsReplacement(d policy.Decision) bool {
	return (c.Claims != nil || c.Groups != nil) && d.Replacement == v1alpha1.ReplacementBefore
}

// provider is who replaces the node: its Auto Scaling group, or else Karpenter.
func (c *Controller) provider(f *facts) provider {
	if c.isOfGroup(f) {
		return scaling{c}
	}
	return karpenters{c}
}

// followed finds out how a replacement stands that was ordered, and whether one is
// needed at all, as far as that takes no questions. The rest is for the step that
// orders it: what comes before that in the pass may have to wait for its turn.
func (c *Controller) followed(ctx context.Context, f *facts, d policy.Decision) replacing {
	was := f.drain().Replacement
	switch {
	case !f.podsKnown, !c.wantsReplacement(d) && !replacement.IsDetached(was), replacement.Settled(was):
		return replacing{status: was}
	case replacement.IsOrdered(was):
		return c.provider(f).follow(ctx, f, d)
	}
	s, ok := c.provider(f).early(ctx, f, d)
	switch {
	case ok && s.Reason == replacement.ReasonUnreadable:
		return replacing{status: s, wake: f.now.Add(replaceAgain)}
	case ok && (was == nil || s.Reason == replacement.ReasonNoPods || s.Reason == replacement.ReasonInstanceGone):
		return replacing{status: s}
	}
	return replacing{status: was, unsure: was == nil}
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
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
		now = p.provider(f).consider(ctx, f, p.decision)
		f.replacing = now
		p.report.replacement(now.status)
	}
	if now.order != nil {
		if !now.written {
			if err := p.writeDown(ctx); err != nil {
				return false, err
			}
		}
		if err := now.order(ctx, p); err != nil {
			return false, err
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
	case s != nil && s.Phase == v1alpha1.ReplacementOrdered && s.UID == "" && s.Group == "":
		return true // written down, and not made, as far as is known
	}
	return !replacement.IsOrdered(s)
}

// unreplace lets go of a replacement: its node is one like any other from now on,
// or, where it never had an instance, is not brought up.
func (p *pass) unreplace(ctx context.Context) error {
	return p.provider(p.facts).release(ctx, p)
}
