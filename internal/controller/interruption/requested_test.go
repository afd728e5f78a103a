package interruption

import (
	"context"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

func requested() v1beta1.Notice {
	n := spot()
	n.Kind, n.Source, n.Deadline, n.InstanceAction = notice.KindRequested, notice.SourceUser, nil, ""
	return n
}

// A policy that terminates does not make a request end the instance.
func TestRequestedDrainEndsNoInstance(t *testing.T) {
	w := newWorld(t, recordOf(requested()), node("a", instance), pod("web-1"), team(terminate))
	cloud := &fakeTerminator{world: w}
	w.loop.Cloud = cloud
	w.settle(time.Second)
	if len(w.evictions) != 1 {
		t.Fatalf("evicted %v", w.evictions)
	}
	w.stopped("web-1")
	for range 30 {
		w.settle(10 * time.Minute)
	}
	if s := w.record().Status; len(cloud.asked) > 0 || s.Phase != v1beta1.PhaseDrained || !w.node().Spec.Unschedulable {
		t.Errorf("after five hours: terminated %v, phase %s, cordoned %v", cloud.asked, s.Phase, w.node().Spec.Unschedulable)
	}
	in := w.record()
	before := in.DeepCopy()
	in.Spec.Notices[0].Withdrawn = true
	if err := w.client.Patch(t.Context(), in, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	w.settle(time.Second)
	if s := w.record().Status; s.CompletionTime == nil || w.node().Spec.Unschedulable {
		t.Errorf("withdrawn: phase %s, cordoned %v", s.Phase, w.node().Spec.Unschedulable)
	}
}

func TestRequestedDrainKeepsNodeClaim(t *testing.T) {
	k := withKarpenter(t, recordOf(requested()), sized("web-1"))
	k.loop.Forward = func(_ context.Context, m string) error { k.forwarded = append(k.forwarded, m); return nil }
	k.settle(time.Second)
	k.launch()
	k.boot()
	k.settle(30 * time.Second)
	k.stopped("web-1")
	for range 10 {
		k.settle(time.Minute)
	}
	if k.claim("web-x7k2p") == nil || len(k.forwarded) > 0 || k.record().Status.Phase != v1beta1.PhaseDrained {
		t.Errorf("the NodeClaim is there: %v; sent %v; phase %s", k.claim("web-x7k2p") != nil, k.forwarded, k.record().Status.Phase)
	}
}

func TestRequestedDrainDetachesNothing(t *testing.T) {
	g := withGroup(t, recordOf(requested()), pod("web-1"))
	g.look()
	g.run(65*time.Second, nil)
	if s := g.replaces(); s.Reason != replacement.ReasonSurvives || len(g.detached) > 0 || len(g.ended) > 0 {
		t.Errorf("detached %v, ended %v: %+v", g.detached, g.ended, s)
	}
	if _, asked := g.asked["web-1"]; !asked {
		t.Error("the pod was not asked to leave")
	}
}

// The time of a request ends nothing, so no pod loses grace.
func TestRequestedTimeOverridesBudgetWithFullGrace(t *testing.T) {
	n := requested()
	n.Deadline = notice.At(start.Add(10*time.Minute), v1beta1.DeadlineEstimated)
	w := newWorld(t, recordOf(n), node("a", instance), pod("web-1"), budget(0))
	w.settle(time.Second)
	w.settle(5 * time.Minute)
	if len(w.deletions) > 0 {
		t.Fatalf("deleted %v five minutes early", w.deletions)
	}
	for range 20 {
		w.settle(time.Minute)
	}
	if grace, deleted := w.deletions["web-1"]; !deleted || grace != -1 {
		t.Errorf("deleted %v with a grace of %d s, want its own, -1", deleted, grace)
	}
}

// A person can end the wait for a budget also while lifecycle hooks hold the instance.
func TestRequestedTimeAddsHasteToTermination(t *testing.T) {
	n := requested()
	n.ID, n.Deadline = "request", notice.At(start.Add(10*time.Minute), v1beta1.DeadlineEstimated)
	g := withGroup(t, recordOf(terminating(notice.SourceQueue), n), pod("web-1"), budget(0))
	g.hold("Terminating:Wait")
	g.run(20*time.Minute, g.stopsIn(20*time.Second))
	by := n.Deadline.Time.Time
	if asked, ok := g.asked["web-1"]; !ok || asked.After(by) || g.deletions["web-1"] != -1 {
		t.Errorf("asked %t at %s, want before %s; deleted %v, want with its own grace, -1", ok, asked, by, g.deletions)
	}
	if len(g.completed) != 1 {
		t.Errorf("answered %v: %+v", g.completed, g.answerStatus())
	}
}
