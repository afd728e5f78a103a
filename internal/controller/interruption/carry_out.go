package interruption

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/action"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// abreast is how many pods of one node are asked to stop at the same time. The
// API server's priority and fairness is what limits the whole.
const abreast = 8

// inFlight is how many requests to stop pods may be under way for all nodes. More
// are not faster, and once there are more than the API server lets one client
// queue (300 at the level of service accounts, of which some are other requests)
// it refuses with 429, and a request that is refused waits for a whole second
// (Kubernetes, "API Priority and Fairness").
const inFlight = 200

// askedAgain is when a pod that was asked to stop, and does not show it, is
// asked again: the watch has caught up by then, so the request was lost.
const askedAgain = 3 * time.Second

// carryOut asks the pods to stop that the plan says are to be asked now. One
// that cannot be asked holds up none of the others.
func (p *pass) carryOut(ctx context.Context) error {
	verdicts := p.toAsk()
	if err := p.ownUp(ctx, verdicts); err != nil {
		return err
	}
	answers, errs := make([]action.Answer, len(verdicts)), make([]error, len(verdicts))
	var group errgroup.Group
	group.SetLimit(abreast)
	for i, v := range verdicts {
		group.Go(func() error {
			if p.Busy != nil {
				p.Busy()
			}
			if errs[i] = p.asking.Acquire(ctx, 1); errs[i] != nil {
				return nil // the process ends
			}
			defer p.asking.Release(1)
			answers[i], errs[i] = p.ask(ctx, v)
			return nil // an error here would hold up the others
		})
	}
	errs = append(errs, group.Wait())
	p.outcome.refused, p.outcome.unasked = map[types.UID]string{}, map[types.UID]bool{}
	for i, v := range verdicts {
		p.heard(v, answers[i])
		p.outcome.unasked[v.Pod.UID] = !answers[i].Asked
	}
	return errors.Join(errs...)
}

// ownUp writes down what is about to be overridden: who starts after a crash
// would see no more than a pod that is leaving.
func (p *pass) ownUp(ctx context.Context, verdicts []drain.Verdict) error {
	var overriding outcome
	for _, v := range verdicts {
		if v.Overrides != "" {
			overriding.asked = append(overriding.asked, v)
		}
	}
	if len(overriding.asked) == 0 {
		return nil
	}
	p.report.asked(overriding)
	return p.writeDown(ctx)
}

// toAsk returns the verdicts that want something done now.
func (p *pass) toAsk() []drain.Verdict {
	var verdicts []drain.Verdict
	for _, v := range p.plan.Verdicts {
		switch {
		case v.Step != drain.StepEvict && v.Step != drain.StepDelete && v.Step != drain.StepSurge:
		case p.facts.askedLately(v.Pod.UID):
			p.outcome.sooner(p.facts.now.Add(askedAgain))
		default:
			verdicts = append(verdicts, v)
		}
	}
	return verdicts
}

// askedLately reports whether the record says that the pod was asked to stop a
// moment ago.
func (f *facts) askedLately(pod types.UID) bool {
	for _, left := range f.was.PodsLeft {
		if left.UID == pod {
			return lately(left, f.now)
		}
	}
	return false
}

func lately(left v1alpha1.PodLeft, now time.Time) bool {
	return left.AskedTime != nil && now.Sub(left.AskedTime.Time) < askedAgain
}

// ask makes the one request that the verdict says.
func (p *pass) ask(ctx context.Context, v drain.Verdict) (action.Answer, error) {
	switch v.Step {
	case drain.StepDelete:
		return action.Delete(ctx, p.Client, v.Pod, v.GraceSeconds)
	case drain.StepSurge:
		return action.Surge(ctx, p.Client, v.Pod, p.facts.now, v.Origin.Seen)
	}
	return action.Evict(ctx, p.Client, v.Pod, v.GraceSeconds)
}

// heard notes what the API server answered.
func (p *pass) heard(v drain.Verdict, answer action.Answer) {
	switch {
	case answer.Asked:
		p.outcome.asked = append(p.outcome.asked, v)
	case answer.Refused != "":
		p.outcome.refused[v.Pod.UID] = answer.Refused
		p.outcome.sooner(p.facts.now.Add(refusedAgain))
		p.Metrics.refused()
	case answer.RetryAfter > 0:
		p.outcome.sooner(p.facts.now.Add(answer.RetryAfter))
		p.Metrics.busy()
	}
}
