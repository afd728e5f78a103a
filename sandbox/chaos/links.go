package chaos

import (
	"context"
	"sync"
	"time"

	"github.com/lifeboat-dev/lifeboat/sandbox/link"
)

// slowBy is the latency of a slow link, in each direction.
const slowBy = 300 * time.Millisecond

// editLinks serializes changes of the file of conditions by faults of one process.
var editLinks sync.Mutex

// links are faults of the network between two parts.
func links() []Fault {
	var all []Fault
	for _, one := range []struct{ link, part, what string }{
		{"lifeboatd-api", PartLifeboat, "lifeboatd and the API server"},
		{"lifeboatd-aws", PartLifeboat, "lifeboatd and AWS"},
		{"agents-api", PartAgents, "the agents and the API server"},
		{"karpenter-api", PartKarpenter, "Karpenter and the API server"},
		{"karpenter-aws", PartKarpenter, "Karpenter and AWS"},
		{"kubelets-api", PartKubelets, "the kubelets and the API server"},
	} {
		all = append(all,
			Fault{Name: "cut-" + one.link, Text: "keeps back all data between " + one.what + ", as a partition does", Lasts: true, Part: one.part, apply: disturbing(one.link, link.Condition{Cut: true})},
			Fault{Name: "slow-" + one.link, Text: "delays data between " + one.what + " by " + slowBy.String(), Lasts: true, Part: one.part, apply: disturbing(one.link, link.Condition{Latency: slowBy})},
			Fault{Name: "lossy-" + one.link, Text: "loses every fifth packet between " + one.what + ", which TCP sends again", Lasts: true, Part: one.part, apply: disturbing(one.link, link.Condition{Lossy: true})},
			Fault{Name: "flaky-" + one.link, Text: "resets connections between " + one.what + " at random", Lasts: true, Part: one.part, apply: disturbing(one.link, link.Condition{Flaky: true})},
		)
	}
	return all
}

func disturbing(name string, c link.Condition) func(context.Context, *broken) error {
	return func(_ context.Context, b *broken) error {
		c := c
		c.Until = b.until
		b.onUndo(func(context.Context) error {
			return b.editLinks(func(all link.Conditions) { delete(all, name) })
		})
		return b.editLinks(func(all link.Conditions) { all[name] = c })
	}
}

func (t *Target) editLinks(edit func(link.Conditions)) error {
	editLinks.Lock()
	defer editLinks.Unlock()
	all, err := link.Read(t.dir)
	if err != nil {
		return err
	}
	edit(all)
	return all.Write(t.dir)
}
