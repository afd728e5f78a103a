// Package capacity replaces interrupted nodes: it orders a replacement from Karpenter or
// an Auto Scaling group before pods are moved, and hands the node over to Karpenter.
package capacity

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/corroborate"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// +kubebuilder:rbac:groups=karpenter.sh,resources=nodeclaims,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=karpenter.sh,resources=nodepools,verbs=get
// +kubebuilder:rbac:groups=karpenter.k8s.aws,resources=ec2nodeclasses,verbs=get
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list
// +kubebuilder:rbac:groups="",resources=pods,verbs=list

const (
	// requeueReplacement is when to look again at a replacement, in case its watch was
	// lost or the API server did not answer.
	requeueReplacement = 2 * time.Second
	// requeueCache is when to look again after a stale cache or a conflict.
	requeueCache = 250 * time.Millisecond
)

// ClaimSource knows the NodeClaims that are replacements; claimwatch.Watcher is one.
type ClaimSource interface {
	// Installed reports whether Karpenter's API is served, and whether that is known.
	Installed() (installed, known bool)
	// Claims returns the NodeClaims that are replacements.
	Claims() []*replacement.Claim
}

// Detacher takes instances out of their groups; aws.Lifecycle is one.
type Detacher interface {
	// Detach is that of cloud.Lifecycle.
	Detach(ctx context.Context, group, instanceID string) error
}

// Replacer orders and follows replacements. Without Claims it leaves Karpenter alone,
// without Groups Auto Scaling.
type Replacer struct {
	Client client.Client
	// Live reads past the cache, which holds nodes without their resources and pods
	// without their requests.
	Live   client.Reader
	Claims ClaimSource
	// Groups refreshes what is known about an Auto Scaling group.
	Groups   interface{ RequestRefresh(group string) }
	Detacher Detacher
	Cloud    cloud.Cloud
	// ScalingGroup reads the group of the interrupted instance; nil: none is known.
	ScalingGroup func(context.Context) (*replacement.ScalingGroup, error)
	// Forward puts a message on Karpenter's own queue; nil: Lifeboat does not feed it.
	Forward func(ctx context.Context, message string) error
	// Place is where the cluster is on AWS.
	Place replacement.Place
	// Margin is kept between the last call of a pod and a hard deadline.
	Margin time.Duration
	// Memory is shared by all Replacers of a process.
	Memory *Memory
}

// Memory is what a process remembers between passes. It is best effort.
type Memory struct {
	Reservations
	pools poolCache
}

// Input is what a pass knows about the node to replace.
type Input struct {
	Now          time.Time
	Interruption *v1beta1.Interruption
	Decision     policy.Decision
	// Drain is the drain as it is written.
	Drain *v1beta1.DrainStatus
	// Node is nil where the instance has none.
	Node      *corev1.Node
	NodeName  string
	Pods      []*corev1.Pod
	PodsKnown bool
	// Group is the Auto Scaling group of the instance, or "".
	Group string
}

func (in *Input) instanceID() string { return in.Interruption.Spec.InstanceID }

// Progress is the pass that a replacement is part of.
type Progress interface { //nolint:interfacebloat // the pass has one more question than actions: whether facts agree
	// Drain is the drain of the status that is being built.
	Drain() *v1beta1.DrainStatus
	// SetReplacement notes the state of the replacement.
	SetReplacement(*v1beta1.ReplacementStatus)
	// Corroborated reports whether the node is that of the instance, and of a NodeClaim
	// that is not nil. If not, it notes why, and asks for another pass.
	Corroborated(context.Context, *corroborate.Claim) bool
	// Record adds a timeline entry.
	Record(reason, message string)
	// RequeueAt asks for a pass at a time; zero: none.
	RequeueAt(time.Time)
	// Checkpoint writes the status before a call that must not repeat.
	Checkpoint(context.Context) error
}

// State is the state of the replacement in a pass.
type State struct {
	// Status is nil where none is wanted, or nothing is known yet.
	Status *v1beta1.ReplacementStatus
	// order orders it, once the status is written; nil: nothing is ordered. written is
	// set where the status is written already.
	order   func(context.Context, Input, Progress) error
	written bool
	// ends is set where the order ends the instance, so that facts must agree before it.
	ends bool
	// unsure is set while it is not known whether one is needed.
	unsure bool
	wake   time.Time
}

// provider starts replacements.
type provider interface {
	// follow looks at a replacement that was ordered.
	follow(context.Context, Input) State
	// early returns the state of one that was not ordered, if that needs no request for
	// the node.
	early(context.Context, Input) (*v1beta1.ReplacementStatus, bool)
	// consider decides whether one is ordered.
	consider(context.Context, Input) State
	// release ends the interest in a replacement: it becomes a node like any other.
	release(context.Context, Input, Progress) error
}

// Wants reports whether policy wants capacity before pods are moved, and this process
// can order it.
func (r *Replacer) Wants(d policy.Decision) bool {
	return (r.Claims != nil || r.Groups != nil) && d.Replacement == v1beta1.ReplacementBefore
}

// provider replaces the node: its Auto Scaling group, or else Karpenter.
func (r *Replacer) provider(in Input) provider {
	if r.isOfGroup(in) {
		return scaling{r}
	}
	return karpenter{r}
}

// Follow returns the state of a replacement that was ordered, and whether one is needed
// at all, as far as that needs no requests. Order does the rest: the steps before it may
// have to wait.
func (r *Replacer) Follow(ctx context.Context, in Input) State {
	was := in.Drain.Replacement
	switch {
	case !in.PodsKnown, !r.Wants(in.Decision) && !replacement.IsDetached(was), replacement.Settled(was):
		return State{Status: was}
	case replacement.IsOrdered(was):
		return r.provider(in).follow(ctx, in)
	}
	s, ok := r.provider(in).early(ctx, in)
	switch {
	case ok && s.Reason == replacement.ReasonUnreadable:
		return State{Status: s, wake: in.Now.Add(requeueReplacement)}
	case ok && (was == nil || s.Reason == replacement.ReasonNoPods || s.Reason == replacement.ReasonInstanceGone):
		return State{Status: s}
	}
	return State{Status: was, unsure: was == nil}
}

// Gate is what pods wait for, if they wait for a replacement.
func (s State) Gate(d policy.Decision) (drain.Gate, bool) {
	if s.unsure {
		return drain.Gate{Why: "whether their node needs a replacement is being found out"}, true
	}
	if d.Replacement != v1beta1.ReplacementBefore { // policy may have changed since it was ordered
		return drain.Gate{}, false
	}
	return replacement.Gate(s.Status, d.Deadline)
}

// ExpectedAt is when the replacement that pods wait for is expected to be Ready; zero: they wait
// for none. began is when the drain began.
func (r *Replacer) ExpectedAt(s State, d policy.Decision, began time.Time) time.Time {
	if _, waits := s.Gate(d); !waits {
		return time.Time{}
	}
	if s.unsure {
		return began.Add(replacement.BootTime)
	}
	var claims []*replacement.Claim
	if r.Claims != nil {
		claims = r.Claims.Claims()
	}
	return replacement.ExpectedAt(s.Status, d.Deadline, claims)
}

// Order orders the replacement that policy wants before pods are moved. Pods wait for
// it by a gate in the plan, which opens at their last call. A failure here does not hold
// up the drain.
func (r *Replacer) Order(ctx context.Context, in Input, now State, p Progress) (State, error) {
	if isDue(in, now.Status, p) {
		next := r.provider(in).consider(ctx, in)
		if next.ends && !p.Corroborated(ctx, nil) {
			facts := scaling{r}.groupFacts(in, nil)
			next = State{Status: facts.Unconfirmed()}
		}
		now = next
		p.SetReplacement(now.Status)
	}
	if now.order != nil {
		if !now.written {
			if err := p.Checkpoint(ctx); err != nil {
				return now, err
			}
		}
		if err := now.order(ctx, in, p); err != nil {
			return now, err
		}
	}
	p.RequeueAt(now.wake)
	return now, nil
}

// isDue reports whether it has to be decided whether a replacement is ordered.
func isDue(in Input, s *v1beta1.ReplacementStatus, p Progress) bool {
	switch {
	case replacement.Settled(s):
		return false
	case s != nil && s.Phase == v1beta1.ReplacementRetrying:
		at := replacement.RetryAt(s, in.Decision.Deadline)
		if in.Now.Before(at) {
			p.RequeueAt(at)
			return false
		}
		return true
	case s != nil && s.Phase == v1beta1.ReplacementOrdered && s.UID == "" && s.Group == "":
		return true // it is written, and as far as is known not created
	}
	return !replacement.IsOrdered(s)
}

// Release ends the interest in a replacement: it becomes a node like any other, or, if
// it has no instance yet, is not started.
func (r *Replacer) Release(ctx context.Context, in Input, p Progress) error {
	return r.provider(in).release(ctx, in, p)
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
