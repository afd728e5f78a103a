package replacement

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Status is how a replacement stands.
type Status = v1alpha1.ReplacementStatus

// Early is what is known without asking anybody.
type Early struct {
	Now      time.Time
	Deadline *v1alpha1.Deadline
	// Was is how it stood when last written down; nil: it was never wanted.
	Was *Status
	// InstanceGone says that nothing runs on the node any more.
	InstanceGone bool
	// Movable is how many pods have to leave the node.
	Movable int
	// Installed is whether Karpenter's API is there.
	Installed bool
	// Karpenters is whether the node says that Karpenter launched it.
	Karpenters bool
	// Unlaunched is how many replacements of other nodes have no instance.
	Unlaunched int
}

// Decide says how a replacement that was not ordered, or is to be ordered again,
// stands, if that is clear already.
func (e Early) Decide() (*Status, bool) {
	switch {
	case e.Movable == 0:
		return e.none(ReasonNoPods, "no replacement is needed: no pod has to leave the node")
	case e.InstanceGone:
		return e.none(ReasonInstanceGone, "no replacement is brought up: the instance is gone, and there is nothing to wait with")
	case !e.Installed:
		return e.none(ReasonNoKarpenter, "no replacement is brought up: Karpenter is not installed (the API group karpenter.sh is not served)")
	case !e.Karpenters:
		return e.none(ReasonNoNodeClaim, "no replacement is brought up: Karpenter did not launch the node")
	case e.Unlaunched < MostUnlaunched:
		return nil, false
	case e.Now.Sub(e.start()) >= e.queuePatience():
		return e.none(ReasonCrowded, fmt.Sprintf("no replacement is brought up: for %s its turn did not come; Karpenter makes room for the pods as they leave", e.queuePatience()))
	}
	return e.as(v1alpha1.ReplacementQueued, ReasonQueued, "the replacement is ordered when one that was ordered before it has its instance"), true
}

// Failed says how it stands where what a decision takes cannot be read, because
// of an error: it is tried again for some seconds, unless it is not allowed.
func (e Early) Failed(err error, allowed bool) *Status {
	if !allowed || e.Now.Sub(e.start()) >= readPatience {
		s, _ := e.none(ReasonUnreadable, fmt.Sprintf("no replacement is brought up: %v", err))
		return s
	}
	return e.as(v1alpha1.ReplacementQueued, ReasonUnreadable, fmt.Sprintf("whether a replacement is needed could not be found out: %v", err))
}

func (e Early) start() time.Time {
	if e.Was == nil || e.Was.StartTime == nil {
		return e.Now
	}
	return e.Was.StartTime.Time
}

func (e Early) queuePatience() time.Duration {
	if notice.IsFirm(e.Deadline) {
		return queuePatience
	}
	return patience
}

func (e Early) none(reason, message string) (*Status, bool) {
	return e.as(v1alpha1.NoReplacement, reason, message), true
}

// as is the status with that phase; what was known besides stays known.
func (e Early) as(phase v1alpha1.ReplacementPhase, reason, message string) *Status {
	s := &Status{}
	if e.Was != nil {
		s = e.Was.DeepCopy()
	}
	if s.StartTime == nil {
		at := microTime(e.Now)
		s.StartTime = &at
	}
	s.Phase, s.Reason, s.Message = phase, reason, clip(message)
	return s
}

// Facts is all that a decision is made from.
type Facts struct {
	Early
	// Kind is that of the notice that rules.
	Kind string
	// InstanceID and Interruption tell what it is for.
	InstanceID, Interruption string
	// Node is the doomed node.
	Node *corev1.Node
	// Doomed is its NodeClaim, or nil; Pool its NodePool, or nil; Class the
	// NodeClass, or nil, which counts only if it is one of Karpenter for AWS.
	Doomed *Claim
	Pool   *Pool
	Class  *Class
	// Pods are all pods of the doomed node, whole.
	Pods []*corev1.Pod
	// Others are nodes that may have room.
	Others []Other
	// Claims are all NodeClaims that are replacements, this node's own included.
	Claims []*Claim
	// Name is what the replacement's NodeClaim is to be called, Standing the one
	// that is called so, or nil.
	Name     string
	Standing *Claim
}

// Decision is what is to be done about a replacement.
type Decision struct {
	Status *Status
	// Order is the NodeClaim to make; nil: none.
	Order *unstructured.Unstructured
	// Used are the nodes whose room the pods are counted on to take.
	Used []string
}

// check looks at the facts and says how the replacement stands, or has no
// opinion.
type check func(Facts) (Decision, bool)

// Decide says whether a replacement is ordered.
func Decide(f Facts) Decision {
	for _, c := range []check{
		early,     // what is known without asking
		claimless, // the node is not Karpenter's, or Karpenter ends it already
		poolless,  // there is no NodePool to make it from
		unready,   // the NodePool or its NodeClass cannot launch
		standing,  // it was ordered before, which was not written down
		fits,      // there is room elsewhere
		limits,    // the NodePool has no room for it
	} {
		if d, ok := c(f); ok {
			return d
		}
	}
	return order(f)
}

// DecidePool says that no replacement can be launched, where the NodePool alone tells
// that: it does not exist, has a fixed size, or is not ready. The answer is the same for
// all nodes of the pool. pool and class are nil where they do not exist.
func DecidePool(e Early, name string, pool *Pool, class *Class) (*Status, bool) {
	f := Facts{Early: e, Pool: pool, Class: class, Doomed: &Claim{Labels: map[string]string{LabelNodePool: name}}}
	for _, c := range []check{poolless, unready} {
		if d, ok := c(f); ok {
			return d.Status, true
		}
	}
	return nil, false
}

func early(f Facts) (Decision, bool) {
	s, ok := f.Early.Decide()
	return Decision{Status: s}, ok
}

func (f Facts) not(reason, message string) (Decision, bool) {
	return Decision{Status: f.as(v1alpha1.NoReplacement, reason, "no replacement is brought up: "+message)}, true
}

func claimless(f Facts) (Decision, bool) {
	switch {
	case f.Doomed == nil || f.Node == nil:
		return f.not(ReasonNoNodeClaim, "the node has no NodeClaim")
	case f.Doomed.Deleting:
		return f.not(ReasonDeleting, fmt.Sprintf("Karpenter is already deleting NodeClaim %s, and makes room for its pods itself", f.Doomed.Name))
	case f.Doomed.Pool() == "":
		return f.not(ReasonStandalone, fmt.Sprintf("NodeClaim %s is of no NodePool, so nothing says what to launch in its place", f.Doomed.Name))
	}
	return Decision{}, false
}

func poolless(f Facts) (Decision, bool) {
	pool := f.Doomed.Pool()
	switch {
	case f.Pool == nil:
		return f.not(ReasonNoPool, fmt.Sprintf("NodePool %s is no longer there", pool))
	case f.Pool.Deleting:
		return f.not(ReasonPoolDeleting, fmt.Sprintf("NodePool %s is being deleted", pool))
	case f.Pool.Static:
		return f.not(ReasonStatic, fmt.Sprintf("NodePool %s keeps a fixed number of nodes (spec.replicas), and would end one more as surplus", pool))
	}
	return Decision{}, false
}

func unready(f Facts) (Decision, bool) {
	p := f.Pool
	switch {
	case !p.Ready:
		return f.not(ReasonPoolNotReady, fmt.Sprintf("NodePool %s is not Ready; `kubectl describe nodepool %s` says why", p.Name, p.Name))
	case p.ClassGroup == GroupAWS && p.ClassKind == KindAWS && (f.Class == nil || !f.Class.Ready):
		return f.not(ReasonClassUnready, fmt.Sprintf("EC2NodeClass %s is not Ready; `kubectl describe ec2nodeclass %s` says why", p.ClassName, p.ClassName))
	}
	return Decision{}, false
}

// standing goes on with what stands there by the replacement's name. What is
// another's is left alone.
func standing(f Facts) (Decision, bool) {
	c := f.Standing
	switch {
	case c == nil:
		return Decision{}, false
	case c.Replaces() != f.InstanceID:
		return f.not(ReasonNameTaken, fmt.Sprintf("there is a NodeClaim %s that is not Lifeboat's", c.Name))
	}
	s := f.as(v1alpha1.ReplacementOrdered, ReasonOrdered, "")
	s.Name, s.Tries = c.Name, max(s.Tries, 1)
	if s.OrderTime == nil {
		at := microTime(f.Now)
		s.OrderTime = &at
	}
	return Decision{Status: Follow(Following{Now: f.Now, Deadline: f.Deadline, Was: *s, Claim: c})}, true
}

func fits(f Facts) (Decision, bool) {
	used, ok := roomFor(Movable(f.Pods), f.Others)
	if !ok {
		return Decision{}, false
	}
	s := f.as(v1alpha1.NoReplacement, ReasonRoom, fmt.Sprintf("no replacement is needed: the pods find room on %s", named(used)))
	return Decision{Status: s, Used: used}, true
}

// limits keeps to the NodePool's limits, which Karpenter checks only for the
// NodeClaims that it makes itself. What was ordered and is not counted yet counts
// too. It cannot know how large a node Karpenter launches; it is no smaller than
// what is asked for.
func limits(f Facts) (Decision, bool) {
	planned := f.Pool.Resources.DeepCopy()
	if planned == nil {
		planned = corev1.ResourceList{}
	}
	one := corev1.ResourceList{"nodes": *one()}
	for _, c := range f.Claims {
		if c != nil && !c.Launched && !c.Deleting && c.Pool() == f.Pool.Name && c.Name != f.Name {
			add(planned, c.Requests)
			add(planned, one)
		}
	}
	add(planned, f.requests())
	add(planned, one)
	for _, name := range sortedKeys(f.Pool.Limits) {
		limit, want := f.Pool.Limits[name], planned[name]
		if want.Cmp(limit) > 0 {
			return f.not(ReasonLimits, fmt.Sprintf("with it NodePool %s would have %s of %s, and its limit is %s", f.Pool.Name, want.String(), name, limit.String()))
		}
	}
	return Decision{}, false
}

// Try is which try an order now would be, counted from 1.
func (e Early) Try() int32 {
	if e.Was == nil {
		return 1
	}
	return e.Was.Tries + 1
}

func isHard(d *v1alpha1.Deadline) bool { return d != nil && d.Type == v1alpha1.DeadlineHard }

func microTime(t time.Time) metav1.MicroTime {
	return metav1.NewMicroTime(t.Truncate(time.Microsecond))
}
