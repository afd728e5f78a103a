package replacement

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Status is the status of a replacement.
type Status = v1beta1.ReplacementStatus

// QuickFacts are the facts that need no API call.
type QuickFacts struct {
	Now      time.Time
	Deadline *v1beta1.Deadline
	// Was is the stored status; nil: no replacement was requested yet.
	Was *Status
	// InstanceGone is true if the instance no longer exists.
	InstanceGone bool
	// Movable is the number of pods that must leave the node.
	Movable int
	// Installed is true if Karpenter's API is served.
	Installed bool
	// Karpenters is true if the node's labels say that Karpenter launched it.
	Karpenters bool
	// Unlaunched is the number of replacements of other nodes that have no
	// instance yet.
	Unlaunched int
}

// Decide returns the status of a replacement that is not ordered or must be
// ordered again, if QuickFacts alone decide it.
func (e QuickFacts) Decide() (*Status, bool) {
	switch {
	case e.Movable == 0:
		return e.none(ReasonNoPods, "no replacement is needed: no pod has to leave the node")
	case e.InstanceGone:
		return e.none(ReasonInstanceGone, "no replacement is launched: the instance is already gone")
	case !e.Installed:
		return e.none(ReasonNoKarpenter, "no replacement is launched: Karpenter is not installed (the API group karpenter.sh is not served)")
	case !e.Karpenters:
		return e.none(ReasonNoNodeClaim, "no replacement is launched: Karpenter did not launch the node")
	case e.Unlaunched < MostUnlaunched:
		return nil, false
	case e.Now.Sub(e.start()) >= e.queuePatience():
		return e.none(ReasonCrowded, fmt.Sprintf("no replacement is launched: other replacements took all slots for %s; Karpenter launches capacity when the pods leave", e.queuePatience()))
	}
	return e.as(v1beta1.ReplacementQueued, ReasonQueued, "queued: the replacement is ordered when an earlier one has its instance"), true
}

// ReadFailed returns the status after a read error: it is retried for some seconds,
// unless access is denied.
func (e QuickFacts) ReadFailed(err error, allowed bool) *Status {
	if !allowed || e.Now.Sub(e.start()) >= readPatience {
		s, _ := e.none(ReasonUnreadable, fmt.Sprintf("no replacement is launched: %v", err))
		return s
	}
	return e.as(v1beta1.ReplacementQueued, ReasonUnreadable, fmt.Sprintf("cannot decide whether a replacement is needed, retrying: %v", err))
}

func (e QuickFacts) start() time.Time {
	if e.Was == nil || e.Was.StartTime == nil {
		return e.Now
	}
	return e.Was.StartTime.Time
}

func (e QuickFacts) queuePatience() time.Duration {
	if notice.IsFirm(e.Deadline) {
		return queuePatience
	}
	return patience
}

func (e QuickFacts) none(reason, message string) (*Status, bool) {
	return e.as(v1beta1.NoReplacement, reason, message), true
}

// as returns the stored status with a new phase; all other fields are kept.
func (e QuickFacts) as(phase v1beta1.ReplacementPhase, reason, message string) *Status {
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

// Facts is the input of Decide.
type Facts struct {
	QuickFacts
	// Kind is the kind of the governing notice.
	Kind string
	// InstanceID and Interruption identify the interrupted instance and its
	// record.
	InstanceID, Interruption string
	// Node is the interrupted node.
	Node *corev1.Node
	// Interrupted is its NodeClaim, Pool its NodePool, Class its NodeClass;
	// each may be nil. Class counts only for Karpenter for AWS.
	Interrupted *Claim
	Pool        *Pool
	Class       *Class
	// Pods are all pods of the interrupted node, with full specs.
	Pods []*corev1.Pod
	// Others are nodes that may have free capacity.
	Others []Other
	// Claims are all replacement NodeClaims, including this node's.
	Claims []*Claim
	// Name is the name of the replacement's NodeClaim; Existing is the
	// NodeClaim of that name, or nil.
	Name     string
	Existing *Claim
}

// Decision says what to do about a replacement.
type Decision struct {
	Status *Status
	// Order is the NodeClaim to create; nil: none.
	Order *unstructured.Unstructured
	// Used are the nodes whose free capacity the pods are expected to use.
	Used []string
}

// check returns a decision, or false if it has none.
type check func(Facts) (Decision, bool)

// Decide decides whether to order a replacement.
func Decide(f Facts) Decision {
	for _, c := range []check{
		quick,       // no API call needed
		noNodeClaim, // the node is not Karpenter's, or Karpenter already deletes it
		noNodePool,  // there is no usable NodePool
		unready,     // the NodePool or its NodeClass cannot launch
		existing,    // it was ordered, but the status write failed
		fits,        // the pods fit on other nodes
		limits,      // the NodePool's limits are reached
	} {
		if d, ok := c(f); ok {
			return d
		}
	}
	return order(f)
}

// DecidePool decides from the NodePool alone that no replacement can be
// launched: it does not exist, has a fixed size, or is not ready. The result
// holds for all nodes of the pool. pool and class are nil if they do not exist.
func DecidePool(e QuickFacts, name string, pool *Pool, class *Class) (*Status, bool) {
	f := Facts{QuickFacts: e, Pool: pool, Class: class, Interrupted: &Claim{Labels: map[string]string{LabelNodePool: name}}}
	for _, c := range []check{noNodePool, unready} {
		if d, ok := c(f); ok {
			return d.Status, true
		}
	}
	return nil, false
}

func quick(f Facts) (Decision, bool) {
	s, ok := f.QuickFacts.Decide()
	return Decision{Status: s}, ok
}

func (f Facts) not(reason, message string) (Decision, bool) {
	return Decision{Status: f.as(v1beta1.NoReplacement, reason, "no replacement is launched: "+message)}, true
}

func noNodeClaim(f Facts) (Decision, bool) {
	switch {
	case f.Interrupted == nil || f.Node == nil:
		return f.not(ReasonNoNodeClaim, "the node has no NodeClaim")
	case f.Interrupted.Deleting:
		return f.not(ReasonDeleting, fmt.Sprintf("Karpenter is already deleting NodeClaim %s and launches capacity for its pods itself", f.Interrupted.Name))
	case f.Interrupted.Pool() == "":
		return f.not(ReasonStandalone, fmt.Sprintf("NodeClaim %s belongs to no NodePool, so there is no template for a replacement", f.Interrupted.Name))
	}
	return Decision{}, false
}

func noNodePool(f Facts) (Decision, bool) {
	pool := f.Interrupted.Pool()
	switch {
	case f.Pool == nil:
		return f.not(ReasonNoPool, fmt.Sprintf("NodePool %s no longer exists", pool))
	case f.Pool.Deleting:
		return f.not(ReasonPoolDeleting, fmt.Sprintf("NodePool %s is being deleted", pool))
	case f.Pool.Static:
		return f.not(ReasonStatic, fmt.Sprintf("NodePool %s keeps a fixed number of nodes (spec.replicas) and would delete an additional one as surplus", pool))
	}
	return Decision{}, false
}

func unready(f Facts) (Decision, bool) {
	p := f.Pool
	switch {
	case !p.Ready:
		return f.not(ReasonPoolNotReady, fmt.Sprintf("NodePool %s is not Ready; see `kubectl describe nodepool %s`", p.Name, p.Name))
	case p.ClassGroup == GroupAWS && p.ClassKind == KindAWS && (f.Class == nil || !f.Class.Ready):
		return f.not(ReasonClassUnready, fmt.Sprintf("EC2NodeClass %s is not Ready; see `kubectl describe ec2nodeclass %s`", p.ClassName, p.ClassName))
	}
	return Decision{}, false
}

// existing adopts the NodeClaim that already has the replacement's name, if it
// is Lifeboat's.
func existing(f Facts) (Decision, bool) {
	c := f.Existing
	switch {
	case c == nil:
		return Decision{}, false
	case c.Replaces() != f.InstanceID:
		return f.not(ReasonNameTaken, fmt.Sprintf("NodeClaim %s exists and is not Lifeboat's", c.Name))
	}
	s := f.as(v1beta1.ReplacementOrdered, ReasonOrdered, "")
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
	s := f.as(v1beta1.NoReplacement, ReasonRoom, fmt.Sprintf("no replacement is needed: the pods fit on %s", named(used)))
	return Decision{Status: s, Used: used}, true
}

// limits enforces the NodePool's limits; Karpenter checks them only for its own
// NodeClaims. Ordered NodeClaims that the NodePool does not count yet are
// added. The size of the launched node is unknown; it is at least what the
// NodeClaim requests.
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
			return f.not(ReasonLimits, fmt.Sprintf("with the replacement NodePool %s would have %s of %s, and its limit is %s", f.Pool.Name, want.String(), name, limit.String()))
		}
	}
	return Decision{}, false
}

// Try is the number of the next order, from 1.
func (e QuickFacts) Try() int32 {
	if e.Was == nil {
		return 1
	}
	return e.Was.Tries + 1
}

func isHard(d *v1beta1.Deadline) bool { return d != nil && d.Type == v1beta1.DeadlineHard }

func microTime(t time.Time) metav1.MicroTime {
	return metav1.NewMicroTime(t.Truncate(time.Microsecond))
}
