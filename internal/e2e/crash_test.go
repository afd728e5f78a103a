package e2e

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/action"
	"github.com/lifeboat-dev/lifeboat/internal/awsemu/ec2"
)

// stage puts three Deployments' worth of pods on one spot node and makes room
// for them elsewhere.
func (r *rig) stage() (doomed ec2.Instance, pods int) {
	r.t.Helper()
	doomed = r.launch(1)[0]
	r.apply(
		deployment("web", 6, 4*time.Second), budget("web", 5),
		deployment("single", 1, 8*time.Second),
		statefulSet("db", 2, 6*time.Second),
	)
	r.waitPods(doomed, 9)
	r.launch(2)
	return doomed, 9
}

// reclaim has EC2 take an instance back; the notice goes through EventBridge.
func (r *rig) reclaim(in ec2.Instance) {
	r.t.Helper()
	if err := r.EC2().Interrupt([]string{in.ID}, ec2.InterruptOptions{}); err != nil {
		r.t.Fatal(err)
	}
}

// check holds the books against what must always hold: every pod of the doomed
// node was asked once and left with its grace before the deadline, and no pod
// anywhere else was touched.
func (l *ledger) check(t *testing.T, doomed ec2.Instance, pods int, record *v1alpha1.Interruption) {
	t.Helper()
	deadline := record.Status.Deadline.Time.Time
	l.closeOn(t, doomed)
	left := l.on(doomed.PrivateDNSName)
	if len(left) != pods {
		t.Errorf("%d pods were on the doomed node, %d in the books: one landed on it after the notice", pods, len(left))
	}
	for _, a := range left {
		switch {
		case a.gone.IsZero():
			t.Errorf("%s never left", a.name)
		case a.gone.After(deadline):
			t.Errorf("%s left %s after the deadline", a.name, a.gone.Sub(deadline))
		case a.asked.IsZero(): // what deletes a pod at once is seen to have asked it
			t.Logf("the books did not see %s being asked to stop: their watch was away", a.name)
		case a.grace != 30:
			t.Errorf("%s was given %d s of its 30", a.name, a.grace)
		}
	}
	was := map[string]bool{}
	for _, a := range left {
		was[a.name] = true
	}
	for _, a := range l.notOn(doomed.PrivateDNSName) {
		// kwok removes a pod that has ended by its name alone, and on a slow
		// machine meets its successor; nothing else deletes without grace here, as
		// the checks of what left show.
		if a.grace == 0 && was[a.name] {
			t.Logf("kwok removed %s on %s in place of the one before it", a.name, a.node)
			continue
		}
		// A StatefulSet's controller may take back a pod that has no node yet.
		if !a.asked.IsZero() && a.node != "" {
			t.Errorf("%s on %s was asked to stop, with grace %d s: it had moved already", a.name, a.node, a.grace)
		}
	}
	if want := (v1alpha1.PodCounts{Total: int32(pods), Moved: int32(pods)}); record.Status.Pods != want {
		t.Errorf("the record counts %+v, want %+v", record.Status.Pods, want)
	}
}

// closeOn waits until the books know that every pod of the node is gone: their
// own watch may be behind the record, by seconds where the API server was away.
func (l *ledger) closeOn(t *testing.T, doomed ec2.Instance) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 45*time.Second)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		open := l.where(func(a account) bool { return a.node == doomed.PrivateDNSName && a.gone.IsZero() })
		if len(open) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func TestKilledAtRandomMomentsItStillEvacuates(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	books := r.openLedger()
	doomed, pods := r.stage()
	r.reclaim(doomed)

	const least = 3 // fewer prove little
	kills := 0
	for start := time.Now(); time.Since(start) < 90*time.Second; {
		if kills%2 == 1 { // on a slow machine it would always be killed before it has begun
			if err := r.StartLifeboat(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		moment := time.NewTimer(time.Duration(rand.IntN(2500)) * time.Millisecond)
		select {
		case <-moment.C:
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
		record, err := r.record(t.Context(), doomed.ID)
		if err != nil {
			t.Fatal(err)
		}
		if kills >= least && record != nil && record.Status.Phase == v1alpha1.PhaseDrained {
			break // on a slow machine it may be drained before: to be killed then is as good a moment
		}
		if err := r.KillLifeboat(); err == nil { // it may not be back yet
			kills++
		}
	}
	t.Logf("killed %d times", kills)
	if kills < least {
		t.Errorf("killed only %d times: the test proves little", kills)
	}
	record := r.reaches(doomed.ID, v1alpha1.PhaseDrained, time.Minute)
	books.check(t, doomed, pods, record)
	r.finish(doomed)
}

// finish lets the instance go at once, and follows the record to its end.
func (r *rig) finish(doomed ec2.Instance) {
	r.t.Helper()
	node, err := r.node(r.t.Context(), doomed)
	if err != nil {
		r.t.Fatal(err)
	}
	if !action.IsMarked(node, action.MarkDoomed) {
		r.t.Errorf("the doomed node is not cordoned: %+v", node.Spec)
	}
	if _, err := r.EC2().Terminate([]string{doomed.ID}); err != nil {
		r.t.Fatal(err)
	}
	r.reaches(doomed.ID, v1alpha1.PhaseCompleted, 2*time.Minute)
}

func TestTheAPIServerGoesAwayInTheMiddle(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	books := r.openLedger()
	doomed, pods := r.stage()
	r.reclaim(doomed)
	r.reaches(doomed.ID, v1alpha1.PhaseDraining, 30*time.Second)

	r.StopAPIServer()
	away(t, 20*time.Second)
	if err := r.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	record := r.reaches(doomed.ID, v1alpha1.PhaseDrained, 80*time.Second)
	books.check(t, doomed, pods, record)
}

func TestSQSGoesAwayWhenTheNoticeComes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	books := r.openLedger()
	doomed, pods := r.stage()

	r.StopAWS()
	r.reclaim(doomed)
	away(t, 20*time.Second)
	if up := r.metric("lifeboat_source_up", `source="sqs"`); up != 0 {
		t.Errorf("the source counts as up (%v) while its queue is away", up)
	}
	r.StartAWS()
	record := r.reaches(doomed.ID, v1alpha1.PhaseDrained, 80*time.Second)
	books.check(t, doomed, pods, record)
	if up := r.metric("lifeboat_source_up", `source="sqs"`); up != 1 {
		t.Errorf("the source does not count as up again: %v", up)
	}
}

// away is the outage itself: a span of time, not a wait for anything.
func away(t *testing.T, span time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), span)
	defer cancel()
	<-ctx.Done()
}

func TestNodeThatIsOnlyAtRiskKeepsItsPods(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	in := r.launch(1)[0]
	r.apply(deployment("web", 2, time.Second))
	r.waitPods(in, 2)
	if err := r.EC2().Recommend([]string{in.ID}); err != nil {
		t.Fatal(err)
	}
	record := r.reaches(in.ID, v1alpha1.PhaseNotified, 30*time.Second)
	node, err := r.node(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if !action.IsMarked(node, action.MarkAtRisk) || node.Spec.Unschedulable {
		t.Errorf("node: %+v", node.Spec)
	}
	// A person calls it off by deleting the record: the node is as it was.
	if err := r.client.Delete(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	r.until("the node to be put back", 30*time.Second, func(ctx context.Context) (bool, error) {
		node, err := r.node(ctx, in)
		return err == nil && len(node.Spec.Taints) == 0 && node.Annotations[v1alpha1.AnnotationBefore] == "", err
	})
	for _, pod := range r.podsOn(in) {
		if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
			t.Errorf("pod %s was touched", pod.Name)
		}
	}
}
