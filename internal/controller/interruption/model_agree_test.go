package interruption

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/status"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record/recordtest"
)

// TestModelOracleAgrees compares the model's oracle with the product's decision for random
// records in random worlds. A failure shows both, and either can be wrong: read the guide. The
// invariants of TestModel use the oracle only.
func TestModelOracleAgrees(t *testing.T) {
	metrics, err := status.NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	compared, failures := 0, 0
	record := func(r *modelRun) {
		compared += r.bookkeeping.compared
		for _, wrong := range r.wrong {
			t.Errorf("run %d: %s", r.seed, wrong)
			failures++
		}
	}
	for seed := uint64(1); seed <= worlds() && failures < maxFailures(); seed++ {
		synctest.Test(t, func(*testing.T) {
			r := newModelRun(seed, metrics)
			r.compares, r.chaos = true, r.drawChaos()
			r.setUp()
			for range 10 {
				r.changePolicy()
				r.compareRandom()
			}
			record(r)
		})
	}
	// In these runs the product writes the records: records of groups occur only here.
	for seed := uint64(1); seed <= worlds()/40 && failures < maxFailures(); seed++ {
		record(playModel(t, seed, metrics, func(r *modelRun) {
			r.compares = true
			r.group = &modelGroup{modelRun: r, members: map[string]*modelMember{}}
		}))
	}
	t.Logf("%d decisions compared", compared)
	if least := int(worlds()) * 80; !t.Failed() && compared < least {
		t.Errorf("too few: want %d", least)
	}
}

// compareRandom compares the decisions about random records that the model's scenarios can
// produce.
func (r *modelRun) compareRandom() {
	in := &v1beta1.Interruption{ObjectMeta: metav1.ObjectMeta{Name: "i-1"}, Spec: v1beta1.InterruptionSpec{InstanceID: "i-1", NodeName: "n1"}}
	s := &instanceScenario{modelRun: r, node: "n1", instance: "i-1", at: r.c.Now().Add(r.c.Between(0, 3*time.Hour))}
	s.sink = func(n notice.Notice, at time.Time) {
		n.ReceivedTime = metav1.NewMicroTime(at)
		in.Spec.Notices, _ = notice.Join(in.Spec.Notices, n.Notice)
	}
	for range 1 + r.c.Rand.IntN(3) {
		s.draw()
	}
	if r.c.Chance(.4) {
		n := s.notice(notice.KindRequested, s.at.Add(r.c.Between(-time.Hour, time.Hour)))
		n.Source = notice.SourceUser
		if r.c.Chance(.8) {
			n.Deadline = deadlineAt(s.at.Add(r.c.Between(-time.Hour, 3*time.Hour)).Truncate(time.Second), v1beta1.DeadlineEstimated)
		}
		s.sink(n, n.Time.Time)
	}
	near := func() time.Time { return s.at.Add(r.c.Between(-time.Hour, 4*time.Hour)) }
	micro := func() *metav1.MicroTime { at := metav1.NewMicroTime(near()); return &at }
	if r.c.Chance(.3) {
		in.Status.History = recordtest.CompletedBefore(micro().Time)
	}
	for _, n := range in.Spec.Notices {
		if r.c.Chance(.2) {
			recordtest.Handle(in, n.ID)
		}
	}
	if r.c.Chance(.4) {
		in.Status.Drain = &v1beta1.DrainStatus{StartTime: micro()}
	}
	if r.c.Chance(.3) {
		in.Spec.Approval = &v1beta1.UserAction{By: "ann", Time: *micro(), About: subjectOf(in.Spec.Notices[0])}
	}
	if r.c.Chance(.3) {
		until := metav1.NewTime(near().Truncate(time.Second))
		in.Spec.Hold = &v1beta1.UserAction{By: "ann", Time: *micro(), Until: &until}
	}
	for range 10 {
		r.bookkeeping.decide(in, near())
	}
	r.bookkeeping.decide(in, s.at.Add(r.c.Between(0, 26*time.Hour)))
}

// compareAll compares the current decision about each record, as it is and as it was before its
// drain began.
func (b *bookkeeping) compareAll() {
	b.run.Each("Interruption", func(o client.Object) {
		if in, ok := o.(*v1beta1.Interruption); ok {
			in = reopenedCopy(in)
			b.decide(in, b.run.c.Now())
			b.earliestStart(in, b.run.c.Now())
		}
	})
}
