package interruption

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/action"
)

// policyThat is a policy of one rule for everything.
func policyThat(rule v1alpha1.Rule) *v1alpha1.InterruptionPolicy {
	rule.Kinds = []string{"*"}
	return &v1alpha1.InterruptionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "batch"}, Spec: v1alpha1.InterruptionPolicySpec{Rules: []v1alpha1.Rule{rule}}}
}

// Before there is a record, a node is cordoned where the record's first pass would do that
// at once, and nothing else is done to any.
func TestNodesAreCordonedAheadOfTheirRecords(t *testing.T) {
	t.Parallel()
	cordoned := action.Marked(node("a", instance), action.MarkDoomed, "SpotInterruption")
	for name, tc := range map[string]struct {
		notice v1alpha1.Notice
		policy *v1alpha1.InterruptionPolicy
		node   *corev1.Node
		leads  bool
		want   bool
	}{
		"a spot warning":                {notice: spot(), leads: true, want: true},
		"an instance that stops":        {notice: stateChange("stopping", start), leads: true, want: true},
		"a hint":                        {notice: rebalance(), leads: true},
		"another process leads":         {notice: spot()},
		"a policy that ignores it":      {notice: spot(), policy: policyThat(v1alpha1.Rule{Action: v1alpha1.ActionIgnore}), leads: true},
		"a policy that only cordons":    {notice: spot(), policy: policyThat(v1alpha1.Rule{Action: v1alpha1.ActionCordon}), leads: true, want: true},
		"a policy that asks":            {notice: spot(), policy: policyThat(v1alpha1.Rule{Action: v1alpha1.ActionDrain, Approval: v1alpha1.ApprovalRequired}), leads: true},
		"a node that is cordoned by us": {notice: spot(), node: cordoned, leads: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.node == nil {
				tc.node = node("a", instance)
			}
			objects := []client.Object{tc.node, pod("web-1")}
			if tc.policy != nil {
				objects = append(objects, tc.policy)
			}
			w := newWorld(t, objects...)
			w.loop.Leads = func() bool { return tc.leads }
			if got := w.loop.Ahead(t.Context(), recordOf(tc.notice), w.node()); got != tc.want {
				t.Errorf("cordoned: %t, want %t", got, tc.want)
			}
			if got := action.IsMarked(w.node(), action.MarkDoomed); got != (tc.want || tc.node == cordoned) {
				t.Errorf("the node is marked: %t", got)
			}
			if w.record() != nil || len(w.evictions)+len(w.deletions) > 0 {
				t.Error("more was done")
			}
			if (w.loop.Unrecorded(instance) > 0) != tc.want {
				t.Errorf("its record is to come within %s", w.loop.Unrecorded(instance))
			}
		})
	}
}

// The record then tells when the node was cordoned, and goes on from there.
func TestARecordGoesOnFromWhatWasDoneAhead(t *testing.T) {
	w := newWorld(t, node("a", instance), pod("web-1"))
	if !w.loop.Ahead(t.Context(), recordOf(spot()), w.node()) {
		t.Fatal("not cordoned")
	}
	at, revision := w.now, w.node().ResourceVersion
	if got := w.loop.Unrecorded(instance); got != mostUnrecorded {
		t.Errorf("its record is to come within %s", got)
	}
	in := recordOf(spot())
	if err := w.client.Create(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	w.loop.muster.hears(w.loop.Clock).Create(event.CreateEvent{Object: in})
	if got := w.loop.Unrecorded(instance); got != 0 {
		t.Errorf("it is there, and said to come within %s", got)
	}
	w.settle(time.Second)
	s := w.record().Status
	if s.DrainStartTime == nil || !s.DrainStartTime.Time.Equal(at) || len(w.evictions) != 1 {
		t.Errorf("evictions %v, status %+v", w.evictions, s)
	}
	if w.node().ResourceVersion != revision {
		t.Error("the node was written to again")
	}
}

// While a record cannot be made its notice comes again and again: the node is not put back in
// between. One that was cordoned by another process is not known of.
func TestARecordThatComesAgainIsWaitedForAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node("a", instance))
	if !w.loop.Ahead(t.Context(), recordOf(spot()), w.node()) {
		t.Fatal("not cordoned")
	}
	for range 3 {
		w.now = w.now.Add(mostUnrecorded - time.Second)
		if w.loop.Ahead(t.Context(), recordOf(spot()), w.node()) {
			t.Error("cordoned twice")
		}
		if got := w.loop.Unrecorded(instance); got != mostUnrecorded {
			t.Errorf("its record is to come within %s", got)
		}
	}
	w = newWorld(t, action.Marked(node("a", instance), action.MarkDoomed, "SpotInterruption"))
	w.loop.Ahead(t.Context(), recordOf(spot()), w.node())
	if got := w.loop.Unrecorded(instance); got != 0 {
		t.Errorf("of another process' node the record is to come within %s", got)
	}
}

// A policy that is written in between may want otherwise: the node is not left cordoned.
func TestWhatWasDoneAheadIsUndoneWherePolicyWantsNothing(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]v1alpha1.Rule{
		"ignores": {Action: v1alpha1.ActionIgnore}, "notifies": {Action: v1alpha1.ActionNotify},
		"asks": {Action: v1alpha1.ActionDrain, Approval: v1alpha1.ApprovalRequired},
	} {
		w := newWorld(t, node("a", instance), pod("web-1"))
		if !w.loop.Ahead(t.Context(), recordOf(spot()), w.node()) {
			t.Fatal("not cordoned")
		}
		for _, o := range []client.Object{recordOf(spot()), policyThat(rule)} {
			if err := w.client.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		w.settle(time.Second)
		if n := w.node(); n.Spec.Unschedulable || action.IsMarked(n, action.MarkDoomed) {
			t.Errorf("%s: the node is still cordoned: %+v", name, n.Spec)
		}
	}
}

// A node that others wait for is waited for from when it is about to be cordoned.
func TestWhatIsCordonedAheadIsMustered(t *testing.T) {
	now := start
	var m muster
	m.foretold("i-b", now, true)
	marked := false
	cordoned := func(string) (bool, error) { return marked, nil }
	if n, err := m.others("i-a", now, cordoned); n != 1 || err != nil {
		t.Errorf("%d others, error %v", n, err)
	}
	marked = true
	if n, err := m.others("i-a", now, cordoned); n != 0 || err != nil {
		t.Errorf("once it is cordoned: %d others, error %v", n, err)
	}
	for i := range 10_000 {
		at := now.Add(time.Duration(i) * time.Second)
		m.foretold(fmt.Sprint("i-", i), at, true)
		m.cordoned(fmt.Sprint("i-", i), at)
	}
	if len(m.ahead)+len(m.marked) > 40*swarm {
		t.Errorf("%d and %d that never were recorded are remembered", len(m.ahead), len(m.marked))
	}
}
