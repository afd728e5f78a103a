package podcache

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

func pod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "5", ManagedFields: []metav1.ManagedFieldsEntry{{}}},
		Spec:       corev1.PodSpec{NodeName: node},
	}
}

// fixture is a Watcher of node a.
type fixture struct {
	*testing.T
	*server
	w       *Watcher
	changed chan string
}

// play starts the watch, runs the test and ends the watch.
func play(t *testing.T, begin func(s *server), run func(s *fixture)) {
	synctest.Test(t, func(t *testing.T) {
		s := &fixture{T: t, server: newServer(t, pod("one", "a"), pod("other", "b")), changed: make(chan string, 100)}
		begin(s.server)
		s.w = New(t.Context(), s.client(), func(node string) { s.changed <- node })
		s.names()
		run(s)
		s.w.Forget("a")
		synctest.Wait()
	})
}

func asItIs(*server) {}

// names returns the names of the pods that are known, and whether all are.
func (s *fixture) names() ([]string, bool) {
	s.T.Helper()
	synctest.Wait()
	pods, known, err := s.w.Pods(s.T.Context(), "a")
	if err != nil {
		s.T.Fatal(err)
	}
	synctest.Wait()
	var names []string
	for _, p := range pods {
		names = append(names, p.Name)
		if p.ManagedFields != nil {
			s.T.Error("managed fields are kept in memory")
		}
	}
	slices.Sort(names)
	return names, known
}

// are fails unless all pods are known and are these.
func (s *fixture) are(want ...string) {
	s.T.Helper()
	if got, known := s.names(); !known || !slices.Equal(got, want) {
		s.T.Errorf("pods %v, known %v, want %v", got, known, want)
	}
}

// notifications returns the number of notifications since its last call.
func (s *fixture) notifications() int {
	synctest.Wait()
	n := len(s.changed)
	for range n {
		if node := <-s.changed; node != "a" {
			s.T.Errorf("notified of node %q", node)
		}
	}
	return n
}

func TestOnlyRequestedNodesAreCached(t *testing.T) {
	play(t, asItIs, func(s *fixture) {
		s.are("one")
		if s.notifications() != 1 {
			t.Error("there was not exactly one notification that the pods are known")
		}
		asked := s.requests()
		if len(asked) != 2 {
			t.Fatalf("asked %d times, want for a list and for a watch: %v", len(asked), asked)
		}
		for i, wants := range []map[string]string{
			{"fieldSelector": "spec.nodeName=a", "resourceVersion": "0"},
			{"fieldSelector": "spec.nodeName=a", "resourceVersion": "10", "watch": "true", "allowWatchBookmarks": "true"},
		} {
			for key, want := range wants {
				if got := asked[i].Get(key); got != want {
					t.Errorf("asked for %s %q, want %q", key, got, want)
				}
			}
		}
	})
}

// A reconcile may cancel its context when it returns; the next one still needs the watch.
func TestWatchOutlivesFirstCallerContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fixture{T: t, server: newServer(t, pod("one", "a")), changed: make(chan string, 100)}
		s.w = New(t.Context(), s.client(), func(node string) { s.changed <- node })
		ctx, cancel := context.WithCancel(t.Context())
		if _, _, err := s.w.Pods(ctx, "a"); err != nil {
			t.Fatal(err)
		}
		cancel()
		s.are("one")
		s.send("a", watch.Added, pod("late", "a"))
		s.are("late", "one")
		s.w.Forget("a")
		synctest.Wait()
	})
}

func TestWatchEndsWithWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := newServer(t, pod("one", "a"))
		w := New(ctx, s.client(), func(string) {})
		if _, _, err := w.Pods(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		if _, err := s.wire("a").Write([]byte{0}); err == nil {
			t.Error("the watch goes on")
		}
	})
}

// A node whose list was empty is not known to be empty: a pod may have been bound since.
func TestCurrentRequiresOpenWatch(t *testing.T) {
	play(t, asItIs, func(s *fixture) {
		if s.are("one"); !s.w.Current("a") {
			t.Error("the watch is open, but the node is not current")
		}
		s.set(func() { s.unreachable = true })
		_ = s.wire("a").Close()
		if s.are("one"); s.w.Current("a") {
			t.Error("the watch is closed, but the node is current")
		}
		s.set(func() { s.unreachable = false })
		time.Sleep(2 * minBackoff)
		if s.are("one"); !s.w.Current("a") {
			t.Error("the watch is open again, but the node is not current")
		}
		if s.w.Current("b") {
			t.Error("a node that is not watched is current")
		}
	})
}

func TestAwaitReturnsWhenPodsAreKnown(t *testing.T) {
	play(t, func(s *server) { s.unreachable = true }, func(s *fixture) {
		ctx, cancel := context.WithTimeout(s.T.Context(), time.Second)
		defer cancel()
		s.w.Await(s.T.Context(), "not watched")
		s.w.Await(ctx, "a")
		if ctx.Err() == nil {
			t.Error("returned although nothing was listed")
		}
		s.set(func() { s.unreachable = false })
		s.w.Await(s.T.Context(), "a")
		s.are("one")
	})
}

func TestChangesAreReported(t *testing.T) {
	play(t, asItIs, func(s *fixture) {
		s.notifications()
		s.send("a", watch.Added, pod("late", "a"))
		if n := s.notifications(); n != 1 {
			t.Errorf("%d notifications for one pod", n)
		}
		s.are("late", "one")

		s.send("a", watch.Bookmark, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "20"}})
		if n := s.notifications(); n != 0 {
			t.Errorf("%d notifications without a change", n)
		}
		leaves := pod("one", "a")
		leaves.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		s.send("a", watch.Modified, leaves)
		synctest.Wait()
		pods, _, _ := s.w.Pods(t.Context(), "a")
		if !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.Name == "one" && p.DeletionTimestamp != nil }) {
			t.Error("a change is not known")
		}
		again := pod("one", "a")
		again.UID = "another"
		s.send("a", watch.Added, again)
		s.send("a", watch.Deleted, leaves) // a late event
		s.are("late", "one")
		s.send("a", watch.Deleted, again)
		s.are("late")
	})
}

func TestWatchResumesAtResourceVersion(t *testing.T) {
	play(t, asItIs, func(s *fixture) {
		s.send("a", watch.Bookmark, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "20"}})
		time.Sleep(minTimeout)
		_ = s.wire("a").Close()
		time.Sleep(2 * minBackoff)
		s.are("one")
		asked := s.requests()
		if len(asked) != 3 || asked[2].Get("resourceVersion") != "20" || asked[2].Get("watch") == "" {
			t.Errorf("asked %v", asked)
		}
	})
}

func TestMissedChangesAreListed(t *testing.T) {
	for name, expire := range map[string]func(s *fixture){
		"an event while it watches": func(s *fixture) {
			gone := apierrors.NewResourceExpired("too old")
			s.send("a", watch.Error, &gone.ErrStatus)
		},
		"too new a version, because etcd was restored": func(s *fixture) {
			ahead := apierrors.NewTimeoutError("Too large resource version: 10, current: 5", 1)
			ahead.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
			s.send("a", watch.Error, &ahead.ErrStatus)
		},
		"not understood": func(s *fixture) {
			if _, err := s.wire("a").Write([]byte{0, 0, 0, 1, 255}); err != nil {
				t.Error(err)
			}
		},
		"an event when it watches again": func(s *fixture) {
			s.set(func() { s.refuses = apierrors.NewResourceExpired("too old") })
			_ = s.wire("a").Close()
			time.Sleep(2*minBackoff + minBackoff/2)
			s.set(func() { s.refuses = nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, asItIs, func(s *fixture) {
				s.set(func() { s.pods = []*corev1.Pod{pod("new", "a")} })
				expire(s)
				time.Sleep(4 * minBackoff)
				s.are("new")
				asked := s.requests()
				if list := asked[len(asked)-2]; list.Get("watch") != "" || list.Get("resourceVersion") != "" {
					t.Errorf("asked for a list that may be old: %v", list)
				}
			})
		})
	}
}

func TestWatchRecoversAfterOutage(t *testing.T) {
	play(t, asItIs, func(s *fixture) {
		const outage = 20 * time.Second
		s.set(func() { s.unreachable = true })
		_ = s.wire("a").Close()
		time.Sleep(outage)
		s.are("one")
		tries := len(s.requests()) - 2
		if tries > int(outage/minBackoff)+1 {
			t.Errorf("tried %d times in %s", tries, outage)
		}
		s.set(func() { s.unreachable = false })
		time.Sleep(2 * minBackoff)
		synctest.Wait()
		s.send("a", watch.Added, pod("late", "a"))
		s.are("late", "one")
	})
}

func TestWatchBacksOffWhenRejected(t *testing.T) {
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", http.ErrNotSupported)
	play(t, func(s *server) { s.refuses = refusal }, func(s *fixture) {
		time.Sleep(5 * time.Minute)
		if _, known := s.names(); known {
			t.Error("pods are known without a list")
		}
		if tries := len(s.requests()); tries < 10 || tries > 30 {
			t.Errorf("tried %d times in five minutes", tries)
		}
		s.set(func() { s.refuses = nil })
		time.Sleep(2 * maxBackoff)
		s.are("one")
	})
}

func TestForgottenNodesAreNotWatched(t *testing.T) {
	play(t, asItIs, func(s *fixture) {
		for range 2 {
			s.are("one")
			if s.w.Watched() != 1 {
				t.Fatalf("%d nodes are watched", s.w.Watched())
			}
			wire := s.wire("a")
			s.w.Forget("a")
			s.w.Forget("a") // a second call has no effect
			synctest.Wait()
			if _, err := wire.Write([]byte{0}); s.w.Watched() != 0 || err == nil {
				t.Error("the watch goes on")
			}
			s.names()
		}
		if len(s.requests()) != 6 {
			t.Error("a node that is asked for again is not watched again")
		}
	})
}
