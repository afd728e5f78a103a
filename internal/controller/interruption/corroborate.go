package interruption

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/status"
	"github.com/lifeboat-dev/lifeboat/internal/corroborate"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

const (
	// verdictTTL is for how long a verdict is reused, and when to look again at facts
	// that do not agree.
	verdictTTL = 10 * time.Second
	// firstRetry is when to look again for the first time, and each further wait is twice as long:
	// a description of EC2 can lag behind its own notice by some seconds.
	firstRetry = 2 * time.Second
	// conflictRequeue is when to look again at an instance that several nodes state, in
	// case the change of a node is missed.
	conflictRequeue = time.Minute
	waitsForFacts   = "waits until facts agree: "
)

// undecided ends a pass in which no notice counts.
func undecided(update *status.Update, f *facts) reconcile.Result {
	if f.gone != nil {
		update.SetUnconfirmed(*f.gone)
		return reconcile.Result{RequeueAfter: firstRetry}
	}
	return reconcile.Result{}
}

// verdicts remembers the last verdict about each instance. So the passes of an instance that waits
// call EC2 every ten seconds at most, after the first few. It is best effort.
type verdicts struct {
	mu    sync.Mutex
	known map[string]timedVerdict
}

type timedVerdict struct {
	corroborate.Verdict
	at  time.Time
	ttl time.Duration
}

// get returns the verdict under a key, and asks for a new one if it is too old.
func (v *verdicts) get(key string, now time.Time, ask func() corroborate.Verdict) corroborate.Verdict {
	v.mu.Lock()
	last, ok := v.known[key]
	v.mu.Unlock()
	if ok && now.Sub(last.at) < last.ttl {
		return last.Verdict
	}
	verdict := ask()
	ttl := verdictTTL
	if !verdict.Agrees() {
		ttl = min(max(firstRetry, 2*last.ttl), verdictTTL)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for other, old := range v.known {
		if now.Sub(old.at) >= 2*verdictTTL {
			delete(v.known, other)
		}
	}
	set(&v.known, key, timedVerdict{verdict, now, ttl})
	return verdict
}

// expiry is when the verdict under a key is too old, and whether facts have not agreed for several
// questions.
func (v *verdicts) expiry(key string) (at time.Time, lasts bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	last := v.known[key]
	return last.at.Add(last.ttl), last.ttl >= verdictTTL
}

// lastDisagreement returns the last verdict about an instance if it did not agree and is not too old.
func (v *verdicts) lastDisagreement(instanceID string, now time.Time) *corroborate.Verdict {
	v.mu.Lock()
	defer v.mu.Unlock()
	var last *timedVerdict
	for key, t := range v.known {
		if strings.HasPrefix(key, instanceID+"/") && now.Sub(t.at) < 2*verdictTTL && (last == nil || t.at.After(last.at)) {
			last = &t
		}
	}
	if last == nil || last.Agrees() {
		return nil
	}
	return &last.Verdict
}

// doubt returns why something irreversible waits. A pass between two questions keeps the last
// answer: otherwise the status would change with every question.
func (p *pass) doubt() *corroborate.Verdict {
	if p.outcome.Uncorroborated != nil {
		return p.outcome.Uncorroborated
	}
	v := p.verdicts.lastDisagreement(p.facts.in.Spec.InstanceID, p.facts.now)
	if v != nil && p.outcome.Waits == "" {
		p.outcome.Waits = waitsForFacts + v.Why
	}
	return v
}

// unconfirmed returns why notices that the instance is gone do not count: EC2 contradicts them, or
// its kubelet is Ready and EC2 does not answer. One message is no proof. Its pods would be deleted
// with a grace of 0, and a StatefulSet would run its pods twice.
func (c *Controller) unconfirmed(ctx context.Context, f *facts) *corroborate.Verdict {
	if f.node == nil || !f.saysGone() {
		return nil
	}
	v := c.verdicts.get(goneKey(f.in), f.now, func() corroborate.Verdict {
		if c.Cloud == nil {
			return corroborate.Verdict{Answer: corroborate.Unknown, Why: "this controller has no cloud to confirm that the instance is gone"}
		}
		i, err := c.Cloud.Describe(ctx, f.in.Spec.InstanceID)
		if err != nil {
			return corroborate.Verdict{Answer: corroborate.Unknown, Why: fmt.Sprintf("cannot confirm that the instance is gone: %v", err)}
		}
		return corroborate.Gone(i, f.node, f.now)
	})
	if v.Agrees() || v.Answer == corroborate.Unknown && !nodeindex.Ready(f.node) {
		return nil
	}
	return &v
}

// requeueForGone requests a pass that asks EC2 again whether the instance is gone. Until then another
// notice decides. The status says so only if EC2 contradicts for long: it often lags a moment behind.
func (p *pass) requeueForGone() {
	if p.facts.gone == nil {
		return
	}
	at, lasts := p.verdicts.expiry(goneKey(p.facts.in))
	p.outcome.requeueAt(at)
	if lasts {
		p.outcome.Uncorroborated = p.facts.gone
	}
}

// goneKey is the key of the verdict whether the instance is gone.
func goneKey(in *v1beta1.Interruption) string { return "gone/" + in.Spec.InstanceID }

// isTerminating reports whether EC2 confirms that the instance terminates, as it was asked to.
func (p *pass) isTerminating(ctx context.Context) bool {
	id := p.facts.in.Spec.InstanceID
	return p.verdicts.get("terminating/"+id, p.facts.now, func() corroborate.Verdict {
		i, err := p.Cloud.Describe(ctx, id)
		if err != nil {
			return corroborate.Verdict{Answer: corroborate.Unknown, Why: err.Error()}
		}
		return corroborate.Terminating(i, p.facts.node, p.facts.now)
	}).Agrees()
}

// saysGone reports whether a notice that counts says that the instance no longer runs.
func (f *facts) saysGone() bool {
	lived := notice.Lived(f.in.Spec.Notices, f.node)
	for _, n := range notice.Unanswered(f.in.Spec.Notices, notice.Handled(&f.was)) {
		if notice.NeedsConfirmation(&n) && n.Time.After(lived) {
			return true
		}
	}
	return false
}

// Corroborated reports whether the API server and EC2 agree that the node is the instance's, and
// whether EC2 confirms the notice. An act that ends an instance needs it. If they do not agree, the
// act waits, and the status says why. claim is the NodeClaim to compare with; nil: none. An
// instance without a node has no kubelet that could state a false one.
func (p *pass) Corroborated(ctx context.Context, claim *corroborate.Claim) bool {
	return p.corroborated(ctx, claim, &p.decision.Notice)
}

// identified is Corroborated for what the instance's group confirms itself, by a lifecycle action
// that is pending or by its state: only the node is compared.
func (p *pass) identified(ctx context.Context) bool { return p.corroborated(ctx, nil, nil) }

func (p *pass) corroborated(ctx context.Context, claim *corroborate.Claim, n *v1beta1.Notice) bool {
	if p.facts.node == nil {
		return true
	}
	key := fmt.Sprintf("%s/%s", p.facts.in.Spec.InstanceID, p.facts.node.UID)
	if claim != nil {
		key += "/" + string(claim.UID)
	}
	if n != nil {
		key += "/" + n.ID
	}
	v := p.verdicts.get(key, p.facts.now, func() corroborate.Verdict { return p.corroborate(ctx, claim, n) })
	if v.Agrees() {
		return true
	}
	p.outcome.Uncorroborated = &v
	at, _ := p.verdicts.expiry(key)
	p.outcome.wait(at, waitsForFacts+v.Why)
	return false
}

func (p *pass) corroborate(ctx context.Context, claim *corroborate.Claim, n *v1beta1.Notice) corroborate.Verdict {
	node, id := p.facts.node, p.facts.in.Spec.InstanceID
	if p.Live != nil { // the cache lacks addresses and owners
		var live corev1.Node
		if err := p.Live.Get(ctx, client.ObjectKeyFromObject(node), &live); apierrors.IsNotFound(err) || err == nil && live.UID != node.UID {
			return corroborate.Verdict{Answer: corroborate.Unknown, Why: fmt.Sprintf("node %s has just been deleted", node.Name)}
		} else if err != nil {
			return corroborate.Verdict{Answer: corroborate.Unknown, Why: fmt.Sprintf("cannot read node %s: %v", node.Name, err)}
		}
		node = &live
	}
	if claim != nil {
		if v := corroborate.NodeOfClaim(node, *claim, id); !v.Agrees() {
			return v
		}
	}
	if p.Cloud == nil {
		return corroborate.Verdict{Answer: corroborate.Unknown, Why: "this controller has no cloud to compare the node with its instance"}
	}
	i, err := p.Cloud.Describe(ctx, id)
	if err != nil {
		return corroborate.Verdict{Answer: corroborate.Unknown, Why: fmt.Sprintf("cannot compare the node with its instance: %v", err)}
	}
	if v := corroborate.Node(node, i); !v.Agrees() || n == nil {
		return v
	}
	return corroborate.Genuine(n, p.facts.in.Spec.Notices, i)
}
