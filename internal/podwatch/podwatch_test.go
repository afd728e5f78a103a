package podwatch

import (
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// cluster is a fake API server that, unlike client-go's own, heeds the field
// selector of lists and watches.
type cluster struct {
	*fake.Clientset
	lists, watches []string // the selectors that were asked for
	fakes          map[string]*watch.FakeWatcher
}

func newCluster(pods ...*corev1.Pod) *cluster {
	c := &cluster{Clientset: fake.NewClientset(), fakes: map[string]*watch.FakeWatcher{}}
	c.PrependReactor("list", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		list, _ := a.(clienttesting.ListAction)
		selector := list.GetListRestrictions().Fields.String()
		c.lists = append(c.lists, selector)
		found := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
		for _, p := range pods {
			if selector == "spec.nodeName="+p.Spec.NodeName {
				found.Items = append(found.Items, *p)
			}
		}
		return true, found, nil
	})
	c.PrependWatchReactor("pods", func(a clienttesting.Action) (bool, watch.Interface, error) {
		w, _ := a.(clienttesting.WatchAction)
		selector := w.GetWatchRestrictions().Fields.String()
		c.watches = append(c.watches, selector)
		c.fakes[selector] = watch.NewFake()
		return true, c.fakes[selector], nil
	})
	return c
}

func pod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: "1", ManagedFields: []metav1.ManagedFieldsEntry{{}}},
		Spec:       corev1.PodSpec{NodeName: node},
	}
}

func TestOnlyThePodsOfTheAskedNodeAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(pod("one", "a"), pod("two", "b"))
		changed := make(chan string, 100)
		w := New(c, func(node string) { changed <- node })

		if _, _, err := w.Pods(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(changed) == 0 || <-changed != "a" {
			t.Error("nobody was told that the pods are known")
		}
		pods, known, err := w.Pods(t.Context(), "a")
		if err != nil || !known || len(pods) != 1 || pods[0].Name != "one" {
			t.Fatalf("pods %v, known %v, error %v", pods, known, err)
		}
		if pods[0].ManagedFields != nil {
			t.Error("managed fields are kept in memory")
		}
		for _, selector := range append(c.lists, c.watches...) {
			if selector != "spec.nodeName=a" {
				t.Errorf("asked the API server for %q", selector)
			}
		}
		w.Forget("a")
		synctest.Wait()
	})
}

func TestChangesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		changed := make(chan string, 100)
		w := New(c, func(node string) { changed <- node })
		if _, _, err := w.Pods(t.Context(), "empty"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(changed) == 0 {
			t.Error("nobody was told that the node is empty")
		}
		for len(changed) > 0 {
			<-changed
		}
		c.fakes["spec.nodeName=empty"].Add(pod("late", "empty"))
		synctest.Wait()
		if len(changed) != 1 {
			t.Errorf("told %d times of one pod", len(changed))
		}
		if pods, _, _ := w.Pods(t.Context(), "empty"); len(pods) != 1 {
			t.Errorf("pods %v", pods)
		}
		w.Forget("empty")
		synctest.Wait()
	})
}

func TestForgottenNodesAreNotWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(pod("one", "a"))
		w := New(c, func(string) {})
		for range 2 {
			if _, _, err := w.Pods(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if w.Watched() != 1 {
				t.Fatalf("%d nodes are watched", w.Watched())
			}
			w.Forget("a")
			w.Forget("a") // forgetting again is nothing
			synctest.Wait()
			if w.Watched() != 0 || !c.fakes["spec.nodeName=a"].IsStopped() {
				t.Error("the watch goes on")
			}
		}
		if len(c.lists)+len(c.watches) < 4 {
			t.Error("a node that is asked for again is not watched again")
		}
	})
}
