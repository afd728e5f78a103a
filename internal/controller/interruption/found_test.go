package interruption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// A node that is cordoned ahead, to be drained, has its record made with the pods that have
// to leave.
func TestARecordIsMadeWithThePodsOfItsNode(t *testing.T) {
	t.Parallel()
	agent := pod("agent-1")
	agent.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", Controller: new(true)}}
	done := pod("done-1")
	done.Status.Phase = corev1.PodSucceeded
	for name, tc := range map[string]struct {
		action  v1alpha1.Action
		unknown bool
		unled   bool
		behind  bool
		want    []string
	}{
		"drained":                                {action: v1alpha1.ActionDrain, want: []string{"web-1", "web-2"}},
		"terminated":                             {action: v1alpha1.ActionTerminate, want: []string{"web-1", "web-2"}},
		"only cordoned":                          {action: v1alpha1.ActionCordon},
		"not cordoned ahead":                     {action: v1alpha1.ActionNotify},
		"the list of its pods does not come":     {action: v1alpha1.ActionDrain, unknown: true},
		"another process leads by now":           {action: v1alpha1.ActionDrain, unled: true},
		"its record is there, and is not behind": {action: v1alpha1.ActionDrain, behind: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, node("a", instance), pod("web-1"), pod("web-2"), agent.DeepCopy(), done.DeepCopy(), policyThat(v1alpha1.Rule{Action: tc.action}))
			w.unknown = tc.unknown
			w.loop.Ahead(t.Context(), recordOf(spot()), w.node())
			w.loop.Leads = func() bool { return !tc.unled }
			if tc.behind {
				w.loop.muster.isThere(instance)
			}
			var names []string
			for _, found := range w.loop.Found(t.Context(), recordOf(spot()), w.node()) {
				names = append(names, found.Name)
				if found.Namespace != "default" || found.UID == "" {
					t.Errorf("found %+v", found)
				}
			}
			if !slices.Equal(names, tc.want) {
				t.Errorf("found %v, want %v", names, tc.want)
			}
		})
	}
	many := make([]*corev1.Pod, maxPodsLeft+1)
	for i := range many {
		many[i] = pod(fmt.Sprint("web-", i))
	}
	if got := found(many); len(got) > 0 {
		t.Errorf("of more pods than a record lists it has %d", len(got))
	}
	if got := found(many[1:]); len(got) != maxPodsLeft {
		t.Errorf("of as many pods as a record lists it has %d", len(got))
	}
}

// storm is a world in which it is not calm until that is closed.
func storm(t *testing.T, in *v1alpha1.Interruption, objects ...client.Object) (w *world, calm chan struct{}) {
	t.Helper()
	w, calm = newWorld(t, append(objects, in, node("a", instance))...), make(chan struct{})
	w.loop.Calm = func() <-chan struct{} { return calm }
	return w, calm
}

// foundOn is a record that was made with pods.
func foundOn(pods ...*corev1.Pod) *v1alpha1.Interruption {
	in := recordOf(spot())
	in.Spec.Pods = found(pods)
	return in
}

func isWritten(in *v1alpha1.Interruption) bool { return in.Status.LastNoticeID != "" }

// Where the record has the pods they are asked to stop first, and what is to be said of it
// is written once it is calm: the same as is written elsewhere.
func TestPodsThatTheRecordHasAreAskedFirst(t *testing.T) {
	web := []*corev1.Pod{pod("web-1"), pod("web-2")}
	w, _ := storm(t, foundOn(web...), web[0], web[1])
	w.lagging = true
	w.settle(time.Second)
	if len(w.evictions) != 2 || isWritten(w.record()) {
		t.Fatalf("evictions %v, status %+v", w.evictions, w.record().Status)
	}
	if w.wake <= 0 {
		t.Error("nothing has it looked at again")
	}
	w.loop.writeHeld(t.Context())
	got := w.record().Status

	other := newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"), pod("web-2"))
	other.lagging = true
	other.settle(time.Second)
	want := other.record().Status
	if len(got.PodsLeft) != 2 || got.PodsLeft[0].AskedTime == nil || got.Phase != want.Phase || len(got.Timeline) != len(want.Timeline) ||
		got.Timeline[len(got.Timeline)-1].Message != want.Timeline[len(want.Timeline)-1].Message {
		t.Errorf("status %+v, want %+v", got, want)
	}
	w.settle(time.Second)
	if len(w.evictions) != 2 {
		t.Errorf("asked again: %v", w.evictions)
	}
}

// A pass writes what the last one has held back before it does anything else.
func TestWhatIsHeldBackIsWrittenBeforeTheNextPass(t *testing.T) {
	web := pod("web-1")
	w, _ := storm(t, foundOn(web), web)
	if err := w.pass(time.Second); err != nil || isWritten(w.record()) {
		t.Fatalf("error %v, status %+v", err, w.record().Status)
	}
	if err := w.pass(time.Second); err != nil || !isWritten(w.record()) || w.wake != cacheBehind || len(w.loop.late.records()) > 0 {
		t.Fatalf("error %v, looks again after %s, status %+v", err, w.wake, w.record().Status)
	}
}

// What the record lacks, or what is not simply evicted, is written down first.
func TestWhatTheRecordLacksIsWrittenFirst(t *testing.T) {
	t.Parallel()
	held, cronjob := pod("db-1"), pod("job-1")
	held.Annotations = map[string]string{v1alpha1.AnnotationDoNotDisrupt: "true"}
	for name, tc := range map[string]struct {
		has, pods []*corev1.Pod
		refuse    error
	}{
		"a pod that came since":    {has: []*corev1.Pod{pod("web-1")}, pods: []*corev1.Pod{pod("web-1"), cronjob}},
		"a pod that waits":         {has: []*corev1.Pod{pod("web-1"), held}, pods: []*corev1.Pod{pod("web-1"), held}},
		"none":                     {pods: []*corev1.Pod{pod("web-1")}},
		"an eviction that failed":  {has: []*corev1.Pod{pod("web-1")}, pods: []*corev1.Pod{pod("web-1")}, refuse: errors.New("no route")},
		"a pod that was not found": {has: []*corev1.Pod{pod("web-2")}, pods: []*corev1.Pod{pod("web-1")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var objects []client.Object
			for _, p := range tc.pods {
				objects = append(objects, p.DeepCopy())
			}
			w, _ := storm(t, foundOn(tc.has...), objects...)
			w.refuse = tc.refuse
			if err := w.pass(time.Second); err != nil {
				t.Fatal(err)
			}
			if !isWritten(w.record()) || len(w.loop.late.records()) > 0 {
				t.Errorf("not written: %+v", w.record().Status)
			}
		})
	}
}

// Who crashes before that was written leaves pods that are accounted for: those that leave,
// and those that have left.
func TestPodsOfAStatusThatWasNeverWrittenAreAccountedFor(t *testing.T) {
	web := []*corev1.Pod{pod("web-1"), pod("web-2"), pod("web-3")}
	w, calm := storm(t, foundOn(web...), web[0], web[1], web[2])
	w.settle(time.Second)
	if len(w.evictions) != 3 {
		t.Fatalf("evictions %v", w.evictions)
	}
	w.stopped("web-2")
	w.loop = New(w.loop.Options) // another process leads
	close(calm)
	w.settle(10 * time.Second)
	s := w.record().Status
	if s.Pods.Total != 3 || s.Pods.Moved != 1 || s.Pods.Leaving != 2 || len(w.evictions) != 3 {
		t.Errorf("evictions %v, pods %+v", w.evictions, s.Pods)
	}
	w.stopped("web-1", "web-3")
	w.settle(10 * time.Second)
	if s := w.record().Status; s.Pods.Moved != 3 || s.Pods.Lost != 0 {
		t.Errorf("pods %+v", s.Pods)
	}
}

// Where the record has changed meanwhile, the next pass says that the pods were asked, though
// they do not show it yet.
func TestWhatCouldNotBeWrittenIsFoundAnew(t *testing.T) {
	web := pod("web-1")
	w, _ := storm(t, foundOn(web), web)
	w.lagging = true
	w.settle(time.Second)
	at := w.now
	w.hear(stateChange("stopping", start.Add(2*time.Second)))
	w.loop.writeHeld(t.Context())
	if isWritten(w.record()) {
		t.Fatal("a status was written over a notice that it does not know")
	}
	w.settle(time.Second)
	s := w.record().Status
	if len(s.PodsLeft) != 1 || s.PodsLeft[0].Verdict != "Leaving" || !s.PodsLeft[0].AskedTime.Time.Equal(at) || s.Phase != v1alpha1.PhaseDraining {
		t.Errorf("status %+v", s)
	}
	if len(w.evictions) != 1 {
		t.Errorf("asked again: %v", w.evictions)
	}
}

// It is written once it is calm, or after a minute.
func TestWhatHasTimeIsWrittenOnceItIsCalm(t *testing.T) {
	for name, tc := range map[string]struct{ calm, want time.Duration }{
		"calm":      {2 * time.Second, 2 * time.Second},
		"not calm":  {time.Hour, mostLate},
		"calm soon": {0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web := pod("web-1")
				w, calm := storm(t, foundOn(web), web)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- w.loop.Later().Start(ctx) }()
				w.settle(time.Second)
				began := time.Now()
				time.AfterFunc(tc.calm, func() { close(calm) })
				for !isWritten(w.record()) && time.Since(began) < 2*mostLate {
					time.Sleep(10 * time.Millisecond)
					synctest.Wait()
				}
				if got := time.Since(began); got < tc.want || got > tc.want+time.Second {
					t.Errorf("written after %s, want %s", got, tc.want)
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A process that ends writes it before.
func TestWhatHasTimeIsWrittenAsTheProcessEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := pod("web-1")
		w, _ := storm(t, foundOn(web), web)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.loop.Later().Start(ctx) }()
		w.settle(time.Second)
		synctest.Wait()
		if isWritten(w.record()) {
			t.Fatal("written before")
		}
		cancel()
		if err := <-ended; err != nil || !isWritten(w.record()) {
			t.Errorf("error %v, status %+v", err, w.record().Status)
		}
	})
}

// A record that is deleted while something is held of it is let go.
func TestWhatIsHeldOfADeletedRecordIsLetGo(t *testing.T) {
	web := pod("web-1")
	w, _ := storm(t, foundOn(web), web)
	w.settle(time.Second)
	if err := w.client.Delete(t.Context(), w.record()); err != nil {
		t.Fatal(err)
	}
	w.loop.writeHeld(t.Context())
	if w.record() != nil || len(w.loop.late.records()) > 0 {
		t.Error("it is there again, or still held")
	}
}
