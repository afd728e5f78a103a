package podwatch

import (
	"net/http"
	"runtime"
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

	"github.com/lifeboat-dev/lifeboat/internal/calm"
)

func pod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "5", ManagedFields: []metav1.ManagedFieldsEntry{{}}},
		Spec:       corev1.PodSpec{NodeName: node},
	}
}

// stage is a Watcher of one node, a, that has been asked about.
type stage struct {
	*testing.T
	*server
	w       *Watcher
	calm    calm.Calm
	changed chan string
}

// play has the node watched, and ends the watch when the story is over.
func play(t *testing.T, begin func(s *server), story func(s *stage)) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t, server: newServer(t, pod("one", "a"), pod("other", "b")), changed: make(chan string, 100)}
		begin(s.server)
		s.w = New(s.client(), func(node string) { s.changed <- node }, &s.calm)
		s.names()
		story(s)
		s.w.Forget("a")
		synctest.Wait()
	})
}

func asItIs(*server) {}

// names returns the names of the pods that are known, and whether all are.
func (s *stage) names() ([]string, bool) {
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

// busy is for how long it is not calm.
func (s *stage) busy(long time.Duration) {
	for range long / (100 * time.Millisecond) {
		time.Sleep(100 * time.Millisecond)
		s.calm.Busy()()
	}
}

// are fails unless all pods are known and are these.
func (s *stage) are(want ...string) {
	s.T.Helper()
	if got, known := s.names(); !known || !slices.Equal(got, want) {
		s.T.Errorf("pods %v, known %v, want %v", got, known, want)
	}
}

// told counts how often word of changes came, and begins anew.
func (s *stage) told() int {
	synctest.Wait()
	n := len(s.changed)
	for range n {
		if node := <-s.changed; node != "a" {
			s.T.Errorf("told of node %q", node)
		}
	}
	return n
}

func TestOnlyThePodsOfTheAskedNodeAreKnown(t *testing.T) {
	play(t, asItIs, func(s *stage) {
		s.are("one")
		if s.told() != 1 {
			t.Error("nobody was told, once, that the pods are known")
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

// While others are asked to stop, the pods of a node are listed, and changes are not
// heard of: until it is calm, somebody has to know, or it has lasted.
func TestChangesAreHeardOfOnceItIsCalm(t *testing.T) {
	for name, ends := range map[string]struct {
		after func(s *stage)
		told  int
		anew  bool // whether they are listed anew before they are watched
	}{
		"calm":   {func(*stage) { time.Sleep(time.Second) }, 0, false},
		"wanted": {func(s *stage) { s.w.Current("a"); s.w.Current("a") }, 1, false},
		"later":  {func(s *stage) { s.busy(aged + time.Second); time.Sleep(time.Second) }, 1, true},
		"late":   {func(s *stage) { s.busy(held + time.Second) }, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stage{T: t, server: newServer(t, pod("one", "a")), changed: make(chan string, 100)}
				s.w = New(s.client(), func(node string) { s.changed <- node }, &s.calm)
				s.calm.Busy()()
				s.names()
				s.are("one")
				if asked := s.requests(); len(asked) != 1 || s.told() != 1 {
					t.Fatalf("asked %v", asked)
				}
				ends.after(s)
				synctest.Wait()
				asked := s.requests()[1:]
				if ends.anew && len(asked) > 0 {
					if asked[0].Get("resourceVersion") != "10" || asked[0].Get("watch") != "" {
						t.Errorf("listed anew: %v", asked[0])
					}
					asked = asked[1:]
				}
				if len(asked) != 1 || asked[0].Get("resourceVersion") != "10" || asked[0].Get("watch") == "" {
					t.Errorf("asked %v", asked)
				}
				if told := s.told(); told != ends.told || !s.w.Current("a") {
					t.Errorf("told %d times, is current: %v", told, s.w.Current("a"))
				}
				s.tell("a", watch.Deleted, pod("one", "a"))
				s.are()
				s.w.Forget("a")
				if s.w.Current("a") {
					t.Error("a node that is not watched is current")
				}
				synctest.Wait()
			})
		})
	}
}

func TestChangesAreTold(t *testing.T) {
	play(t, asItIs, func(s *stage) {
		s.told()
		s.tell("a", watch.Added, pod("late", "a"))
		if n := s.told(); n != 1 {
			t.Errorf("told %d times of one pod", n)
		}
		s.are("late", "one")

		s.tell("a", watch.Bookmark, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "20"}})
		if n := s.told(); n != 0 {
			t.Errorf("told %d times of nothing", n)
		}
		leaves := pod("one", "a")
		leaves.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		s.tell("a", watch.Modified, leaves)
		synctest.Wait()
		pods, _, _ := s.w.Pods(t.Context(), "a")
		if !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.Name == "one" && p.DeletionTimestamp != nil }) {
			t.Error("a change is not known")
		}
		again := pod("one", "a")
		again.UID = "another"
		s.tell("a", watch.Added, again)
		s.tell("a", watch.Deleted, leaves) // word of it comes late
		s.are("late", "one")
		s.tell("a", watch.Deleted, again)
		s.are("late")
	})
}

func TestPodsSurviveACollectionOfGarbage(t *testing.T) {
	play(t, asItIs, func(s *stage) {
		s.are("one")
		runtime.GC()
		s.are("one")
	})
}

func TestAWatchThatEndsGoesOnWhereItWas(t *testing.T) {
	play(t, asItIs, func(s *stage) {
		s.tell("a", watch.Bookmark, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "20"}})
		time.Sleep(lasts)
		_ = s.wire("a").Close()
		time.Sleep(2 * pause)
		s.are("one")
		asked := s.requests()
		if len(asked) != 3 || asked[2].Get("resourceVersion") != "20" || asked[2].Get("watch") == "" {
			t.Errorf("asked %v", asked)
		}
	})
}

func TestWhatWasMissedIsListed(t *testing.T) {
	for name, expire := range map[string]func(s *stage){
		"told while it watches": func(s *stage) {
			gone := apierrors.NewResourceExpired("too old")
			s.tell("a", watch.Error, &gone.ErrStatus)
		},
		"not understood": func(s *stage) {
			if _, err := s.wire("a").Write([]byte{0, 0, 0, 1, 255}); err != nil {
				t.Error(err)
			}
		},
		"told when it watches again": func(s *stage) {
			s.set(func() { s.refuses = apierrors.NewResourceExpired("too old") })
			_ = s.wire("a").Close()
			time.Sleep(2*pause + pause/2)
			s.set(func() { s.refuses = nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, asItIs, func(s *stage) {
				s.set(func() { s.pods = []*corev1.Pod{pod("new", "a")} })
				expire(s)
				time.Sleep(4 * pause)
				s.are("new")
				asked := s.requests()
				if list := asked[len(asked)-2]; list.Get("watch") != "" || list.Get("resourceVersion") != "" {
					t.Errorf("asked for a list that may be old: %v", list)
				}
			})
		})
	}
}

func TestAnAPIServerThatIsAwayIsFoundSoonAfterItIsBack(t *testing.T) {
	play(t, asItIs, func(s *stage) {
		const outage = 20 * time.Second
		s.set(func() { s.away = true })
		_ = s.wire("a").Close()
		time.Sleep(outage)
		s.are("one")
		tries := len(s.requests()) - 2
		if tries > int(outage/pause)+1 {
			t.Errorf("tried %d times in %s", tries, outage)
		}
		s.set(func() { s.away = false })
		time.Sleep(2 * pause)
		synctest.Wait()
		s.tell("a", watch.Added, pod("late", "a"))
		s.are("late", "one")
	})
}

func TestAnAPIServerThatRefusesIsAskedLessOften(t *testing.T) {
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", http.ErrNotSupported)
	play(t, func(s *server) { s.refuses = refusal }, func(s *stage) {
		time.Sleep(5 * time.Minute)
		if _, known := s.names(); known {
			t.Error("pods are known that nobody told of")
		}
		if tries := len(s.requests()); tries < 10 || tries > 30 {
			t.Errorf("tried %d times in five minutes", tries)
		}
		s.set(func() { s.refuses = nil })
		time.Sleep(2 * longestPause)
		s.are("one")
	})
}

func TestForgottenNodesAreNotWatched(t *testing.T) {
	play(t, asItIs, func(s *stage) {
		for range 2 {
			s.are("one")
			if s.w.Watched() != 1 {
				t.Fatalf("%d nodes are watched", s.w.Watched())
			}
			wire := s.wire("a")
			s.w.Forget("a")
			s.w.Forget("a") // forgetting again is nothing
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
