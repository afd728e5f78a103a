package interruption

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/internal/action"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// abreast is how many pods of one node are asked to stop at the same time. The
// API server's priority and fairness is what limits the whole.
const abreast = 8

// carryOut asks the pods to stop that the plan says are to be asked now. One
// that cannot be asked holds up none of the others.
func (p *pass) carryOut(ctx context.Context) error {
	var (
		mu    sync.Mutex
		errs  []error
		group errgroup.Group
	)
	group.SetLimit(abreast)
	p.outcome.refused = map[types.UID]string{}
	for _, v := range p.plan.Verdicts {
		if v.Step != drain.StepEvict && v.Step != drain.StepDelete {
			continue
		}
		group.Go(func() error {
			answer, err := p.ask(ctx, v)
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
			p.heard(v, answer)
			return nil
		})
	}
	errs = append(errs, group.Wait())
	return errors.Join(errs...)
}

// ask makes the one request that the verdict says.
func (p *pass) ask(ctx context.Context, v drain.Verdict) (action.Answer, error) {
	if v.Step == drain.StepDelete {
		return action.Delete(ctx, p.Client, v.Pod, v.GraceSeconds)
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
