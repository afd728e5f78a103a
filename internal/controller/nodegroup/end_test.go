package nodegroup

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
)

// delete deletes the object as a user does.
func (w *world) delete() {
	w.t.Helper()
	if err := w.client.Delete(w.t.Context(), w.object()); err != nil {
		w.t.Fatal(err)
	}
}

func TestRetainedGroupIsUnchanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, declared())
	w.at = healthy()
	g := w.rest()
	if len(g.Finalizers) != 0 || !strings.HasPrefix(g.Status.Deletion, "nothing in AWS") {
		t.Errorf("finalizers %v; %s", g.Finalizers, g.Status.Deletion)
	}
	w.delete()
	w.pass()
	if w.object() != nil || len(w.steps) != 0 || !w.at.Exists {
		t.Errorf("did %v", w.steps)
	}
}

func TestGroupIsDeletedWithoutInstances(t *testing.T) {
	t.Parallel()
	w := newWorld(t, declared(deleting, func(g *v1beta1.NodeGroup) { g.Spec.WarmPool = &v1beta1.WarmPool{State: "Stopped"} }))
	w.at = healthy()
	w.at.Pool = &nodegroup.Pool{State: "Stopped"}
	w.pass() // puts the finalizer
	g := w.rest()
	if diff := cmp.Diff([]string{v1beta1.FinalizerNodeGroup}, g.Finalizers); diff != "" || !strings.Contains(g.Status.Deletion, "terminates no running node") {
		t.Fatalf("%s; %s", diff, g.Status.Deletion)
	}
	w.delete()
	w.newEvents()
	for range 10 {
		w.pass()
		w.now = w.now.Add(15 * time.Second)
	}
	if g = w.object(); g == nil || len(w.steps) != 0 {
		t.Fatalf("did %v with an instance in service", w.steps)
	}
	wants(t, g, v1beta1.ConditionReady, isFalse, reasonDeleting, "i-1 (InService)")
	if emitted := w.newEvents(); len(emitted) != 1 || !strings.Contains(emitted[0], "DeletionWaits") || !strings.Contains(emitted[0], "--min-size 0") {
		t.Errorf("events: %q", emitted)
	}
	// A direct read is needed: an instance may have appeared since the watch's.
	w.at.Instances = []nodegroup.Instance{member("i-2", "Warmed:Stopped")}
	w.watch()
	w.at.Instances = []nodegroup.Instance{member("i-3", "Pending")}
	w.pass()
	if len(w.steps) != 0 {
		t.Fatalf("did %v with an instance on its way", w.steps)
	}
	w.at.Instances = []nodegroup.Instance{member("i-2", "Warmed:Stopped")}
	w.now = w.now.Add(time.Minute)
	w.watch()
	w.pass()
	w.at.Instances = nil
	for w.object() != nil && len(w.steps) < 5 {
		w.now = w.now.Add(15 * time.Second)
		delete(w.watched, "workers")
		w.pass()
	}
	if diff := cmp.Diff([]string{"drop warm pool", "delete group"}, w.steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if w.object() != nil {
		t.Error("the object is still there")
	}
}

func TestDeletionCanBeAbandoned(t *testing.T) {
	t.Parallel()
	w := newWorld(t, declared(deleting))
	w.at = healthy()
	w.pass()
	w.rest()
	w.delete()
	w.lookErr, w.now = errors.New("no route to host"), w.now.Add(time.Hour)
	w.pass()
	wants(t, w.object(), v1beta1.ConditionReady, isFalse, reasonDeleting, "no route to host")
	g := w.object()
	g.Spec.DeletionPolicy = v1beta1.KeepGroup
	if err := w.client.Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	w.pass()
	if w.object() != nil || len(w.steps) != 0 {
		t.Errorf("it is still there, or did %v", w.steps)
	}
}

func TestFinalizerIsRemovedWithPolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, declared(deleting))
	w.at = healthy()
	w.pass()
	g := w.object()
	g.Spec.DeletionPolicy = v1beta1.KeepGroup
	if err := w.client.Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	w.pass()
	if g = w.object(); len(g.Finalizers) != 0 {
		t.Errorf("%v", g.Finalizers)
	}
}
