package interruption

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestModelOracleAgrees compares the model's oracle with the product's decision in
// random worlds. A failure shows both, and either can be wrong: read the guide. The
// laws of TestModel use the oracle only.
func TestModelOracleAgrees(t *testing.T) {
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	compared, failures := 0, 0
	for seed := uint64(1); seed <= worlds()/5 && failures < maxFailures(); seed++ {
		r := playModel(t, seed, metrics, func(r *modelRun) {
			r.compares = true
			if seed%10 == 0 {
				r.group = &modelGroup{modelRun: r, members: map[string]*modelMember{}}
			}
		})
		compared += r.books.compared
		for _, wrong := range r.wrong {
			t.Errorf("run %d: %s", seed, wrong)
			failures++
		}
	}
	t.Logf("%d decisions compared", compared)
	if least := int(worlds()) * 10; !t.Failed() && compared < least {
		t.Errorf("too few: want %d", least)
	}
}

// compareAll compares what is decided about each record now and for later moments, as
// it is and before its drain began.
func (b *books) compareAll() {
	var names []string
	b.run.Each("Interruption", func(o client.Object) { names = append(names, o.GetName()) })
	slices.Sort(names)
	for _, name := range names {
		in := reopenedCopy(b.recordOf(name))
		for _, after := range []time.Duration{0, time.Second, 10 * time.Minute, 59 * time.Minute, 90 * time.Minute, 25 * time.Hour} {
			b.decide(in, b.run.c.Now().Add(after))
		}
		b.free(in, b.run.c.Now())
	}
}
