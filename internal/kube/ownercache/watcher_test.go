package ownercache

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// cluster is a fake API server that, unlike client-go's, supports the field
// selector of lists and watches.
type cluster struct {
	*fake.Clientset
	*Watcher

	mu       sync.Mutex
	sets     []appsv1.ReplicaSet
	deploys  []appsv1.Deployment
	fail     map[string]error              // by "verb resource"
	asked    map[string]int                // by "verb resource name"
	fakes    map[string]*watch.FakeWatcher // by "resource name"
	reported []string
}

func newCluster(ctx context.Context, changed func(node string), claims ...runtime.Object) *cluster {
	c := &cluster{
		Clientset: fake.NewClientset(claims...), fail: map[string]error{}, asked: map[string]int{}, fakes: map[string]*watch.FakeWatcher{},
	}
	c.Watcher = New(ctx, c, changed)
	for _, resource := range []string{"replicasets", "deployments"} {
		c.PrependReactor("list", resource, c.list)
		c.PrependWatchReactor(resource, c.watch)
	}
	c.PrependReactor("get", "persistentvolumeclaims", func(a clienttesting.Action) (bool, runtime.Object, error) {
		get, _ := a.(clienttesting.GetAction)
		err := c.count(a, get.GetName())
		return err != nil, nil, err
	})
	return c
}

// inCluster runs a test in virtual time.
func inCluster(t *testing.T, test func(t *testing.T, c *cluster), claims ...runtime.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var c *cluster
		c = newCluster(t.Context(), func(node string) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.reported = append(c.reported, node)
		}, claims...)
		test(t, c)
		for _, node := range slices.Collect(maps.Keys(c.nodes)) {
			c.Forget(node)
		}
		time.Sleep(2 * minReportInterval)
		synctest.Wait()
	})
}

func (c *cluster) count(a clienttesting.Action, name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked[a.GetVerb()+" "+a.GetResource().Resource+" "+name]++
	return c.fail[a.GetVerb()+" "+a.GetResource().Resource]
}

func (c *cluster) list(a clienttesting.Action) (bool, runtime.Object, error) {
	list, _ := a.(clienttesting.ListAction)
	name, _ := list.GetListRestrictions().Fields.RequiresExactMatch("metadata.name")
	if err := c.count(a, name); err != nil {
		return true, nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	sets := &appsv1.ReplicaSetList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	deploys := &appsv1.DeploymentList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	for i := range c.sets {
		if c.sets[i].Name == name {
			sets.Items = append(sets.Items, *c.sets[i].DeepCopy())
		}
	}
	for i := range c.deploys {
		if c.deploys[i].Name == name {
			deploys.Items = append(deploys.Items, *c.deploys[i].DeepCopy())
		}
	}
	if a.GetResource().Resource == "deployments" {
		return true, deploys, nil
	}
	return true, sets, nil
}

func (c *cluster) watch(a clienttesting.Action) (bool, watch.Interface, error) {
	w, _ := a.(clienttesting.WatchAction)
	name, _ := w.GetWatchRestrictions().Fields.RequiresExactMatch("metadata.name")
	c.mu.Lock()
	defer c.mu.Unlock()
	made := watch.NewFake()
	c.fakes[a.GetResource().Resource+" "+name] = made
	return true, made, nil
}

// reportedNodes returns, sorted, the nodes reported since the last call.
func (c *cluster) reportedNodes() []string {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	nodes := c.reported
	c.reported = nil
	slices.Sort(nodes)
	return nodes
}

// untilKnown repeats the call until all owners are known.
func (c *cluster) untilKnown(t *testing.T, node string, pods ...*corev1.Pod) drain.Owners {
	t.Helper()
	for range 3 {
		owners, known, err := c.Owners(t.Context(), node, pods)
		if err != nil {
			t.Fatal(err)
		}
		if known {
			return owners
		}
		synctest.Wait()
	}
	t.Fatal("the owners do not become known")
	return drain.Owners{}
}

func deploymentOf(name string) appsv1.Deployment {
	return appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, UID: types.UID(name), ResourceVersion: "1", ManagedFields: []metav1.ManagedFieldsEntry{{}},
	}}
}

func setOf(d appsv1.Deployment) appsv1.ReplicaSet {
	replicas := int32(2)
	return appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: d.Name + "-5d4f", UID: d.UID + "-set", ResourceVersion: "1",
			Annotations:     map[string]string{"deployment.kubernetes.io/revision": "1"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&d, appsv1.SchemeGroupVersion.WithKind(kindDeployment))},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeName: "long"}}},
	}
}

func podOf(set appsv1.ReplicaSet, claims ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: set.Name + "-x",
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&set, appsv1.SchemeGroupVersion.WithKind(kindReplicaSet))},
	}}
	for _, claim := range claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
	}
	return pod
}

func surgedFrom(set appsv1.ReplicaSet) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: set.Name + "-y",
		Annotations: map[string]string{v1beta1.AnnotationSurgeOrigin: drain.Origin{ReplicaSet: set.Name, UID: set.UID, Hash: "5d4f"}.String()},
	}}
}

// web adds a Deployment with its ReplicaSet.
func (c *cluster) web() appsv1.ReplicaSet {
	d := deploymentOf("web")
	c.deploys, c.sets = append(c.deploys, d), append(c.sets, setOf(d))
	return setOf(d)
}

// names are those of all owners.
func names(o drain.Owners) []string {
	var all []string
	for _, set := range o.ReplicaSets {
		all = append(all, "set "+set.Name)
	}
	for _, d := range o.Deployments {
		all = append(all, "deployment "+d.Name)
	}
	for _, claim := range o.Claims {
		all = append(all, "claim "+claim.Name)
	}
	return all
}

func TestPodOwnersAreKnownAfterRead(t *testing.T) {
	shared := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shared", ManagedFields: []metav1.ManagedFieldsEntry{{}}},
		Spec:       corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}},
	}
	inCluster(t, func(t *testing.T, c *cluster) {
		set := c.web()
		alone := appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "alone", UID: "alone"}}
		c.sets = append(c.sets, alone)
		stranger := podOf(set, "of-a-job")
		stranger.OwnerReferences[0].Kind = "Job"
		pods := []*corev1.Pod{podOf(set, "shared", "missing"), podOf(set, "shared"), podOf(alone), stranger, {}}
		if _, known, _ := c.Owners(t.Context(), "a", pods); known {
			t.Error("known before anything was read")
		}
		if !slices.Contains(c.reportedNodes(), "a") {
			t.Error("no notification that the ReplicaSet is known")
		}
		owners := c.untilKnown(t, "a", pods...)
		if diff := cmp.Diff([]string{"set web-5d4f", "set alone", "deployment web", "claim shared"}, names(owners)); diff != "" {
			t.Fatalf("owners (-want +got):\n%s", diff)
		}
		if got := owners.ReplicaSets[0]; *got.Spec.Replicas != 2 || got.Annotations != nil || got.Spec.Template.Spec.NodeName != "" {
			t.Errorf("the ReplicaSet is not slim, or too slim: %+v", got)
		}
		if owners.Deployments[0].ManagedFields != nil || owners.Claims[0].ManagedFields != nil || owners.Claims[0].Spec.AccessModes[0] != corev1.ReadWriteMany {
			t.Error("managed fields are kept in memory")
		}
		c.untilKnown(t, "a", pods...)
		want := map[string]int{
			"list replicasets web-5d4f": 1, "list replicasets alone": 1, "list deployments web": 1,
			"get persistentvolumeclaims shared": 1, "get persistentvolumeclaims missing": 1,
		}
		if diff := cmp.Diff(want, c.asked); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	}, shared)
}

func TestOneWatchServesAllNodes(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		set := c.web()
		c.untilKnown(t, "a", podOf(set))
		c.untilKnown(t, "b", surgedFrom(set))
		if c.Watched() != 2 || c.asked["list replicasets web-5d4f"] != 1 {
			t.Fatalf("%d objects are watched, asked %v", c.Watched(), c.asked)
		}
		c.reportedNodes()
		time.Sleep(time.Minute)
		set.Status.ReadyReplicas = 3
		c.fakes["replicasets web-5d4f"].Modify(set.DeepCopy())
		if diff := cmp.Diff([]string{"a", "b"}, c.reportedNodes()); diff != "" {
			t.Errorf("nodes reported for a change (-want +got):\n%s", diff)
		}
		if got := c.untilKnown(t, "b", surgedFrom(set)).ReplicaSets[0].Status.ReadyReplicas; got != 3 {
			t.Errorf("%d ready replicas", got)
		}
		c.Forget("a")
		c.Forget("a") // forgetting again is nothing
		if c.Watched() != 2 {
			t.Error("the other node's watch has ended")
		}
		c.untilKnown(t, "b") // its pods are gone
		synctest.Wait()
		if c.Watched() != 0 || !c.fakes["replicasets web-5d4f"].IsStopped() || !c.fakes["deployments web"].IsStopped() {
			t.Error("the watches go on although no pod belongs to them")
		}
		if got := c.untilKnown(t, "b", podOf(set)); len(got.ReplicaSets) != 1 {
			t.Error("what is asked for again is not watched again")
		}
	})
}

func TestMissingOwnerIsKnownAbsent(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		set := c.web()
		before := set
		before.UID = "of-one-that-had-its-name-before"
		gone := setOf(deploymentOf("gone"))
		if got := names(c.untilKnown(t, "a", podOf(before), surgedFrom(gone))); len(got) > 0 {
			t.Errorf("found %v", got)
		}
		c.untilKnown(t, "a", podOf(set))
		time.Sleep(time.Minute)
		c.reportedNodes()
		c.fakes["replicasets web-5d4f"].Delete(set.DeepCopy())
		if nodes := c.reportedNodes(); !slices.Equal(nodes, []string{"a"}) {
			t.Errorf("reported %v for the deletion", nodes)
		}
		if got := names(c.untilKnown(t, "a", podOf(set))); len(got) > 0 {
			t.Errorf("found %v", got)
		}
	})
}

func TestOwnerChangesAreDebounced(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		set := c.web()
		c.untilKnown(t, "a", podOf(set))
		c.reportedNodes()
		time.Sleep(time.Minute)
		for i := range 100 {
			set.Status.ReadyReplicas = int32(i + 1)
			c.fakes["replicasets web-5d4f"].Modify(set.DeepCopy())
			if nodes := len(c.reportedNodes()); i == 0 && nodes != 1 || nodes > 1 {
				t.Fatalf("reported %d times for change %d", nodes, i+1)
			}
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(minReportInterval)
		c.reportedNodes()
		if got := c.untilKnown(t, "a", podOf(set)).ReplicaSets[0].Status.ReadyReplicas; got != 100 {
			t.Errorf("%d ready replicas", got)
		}
		last := set.DeepCopy()
		last.Status.ReadyReplicas = 7
		c.fakes["replicasets web-5d4f"].Modify(last)
		last = last.DeepCopy()
		last.Status.ReadyReplicas = 8
		c.fakes["replicasets web-5d4f"].Modify(last)
		synctest.Wait()
		time.Sleep(minReportInterval)
		if nodes := len(c.reportedNodes()); nodes != 2 {
			t.Errorf("reported %d times for two changes, want 2", nodes)
		}
		last = last.DeepCopy()
		last.Annotations = map[string]string{"what": "no plan reads"}
		c.fakes["replicasets web-5d4f"].Modify(last)
		time.Sleep(2 * minReportInterval)
		if nodes := c.reportedNodes(); len(nodes) > 0 {
			t.Error("reported a change that no plan reads")
		}
	})
}

// This test runs in real time: client-go limits its error reports with a clock
// that all tests share.
func TestUnreadableOwnerDoesNotBlockDrain(t *testing.T) {
	changed := make(chan string, 100)
	c := newCluster(t.Context(), func(node string) { changed <- node })
	set := c.web()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "replicasets"}, "", errors.New("rbac"))
	c.fail["list replicasets"], c.fail["get persistentvolumeclaims"] = forbidden, forbidden
	pod := podOf(set, "data")
	if _, _, err := c.Owners(t.Context(), "a", []*corev1.Pod{pod}); err != nil {
		t.Fatal(err)
	}
	<-changed
	if owners, known, err := c.Owners(t.Context(), "a", []*corev1.Pod{pod}); !known || err != nil || len(names(owners)) > 0 {
		t.Errorf("owners %v, known %t, error %v", names(owners), known, err)
	}
	c.mu.Lock()
	clear(c.fail)
	c.mu.Unlock()
	<-changed
	if owners, _, err := c.Owners(t.Context(), "a", []*corev1.Pod{pod}); err != nil || len(owners.ReplicaSets) != 1 {
		t.Errorf("after it was allowed: owners %v, error %v", names(owners), err)
	}
	c.Forget("a")
}

func TestKnownOwnersAreReturnedWithError(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		set := c.web()
		c.untilKnown(t, "a", podOf(set))
		c.fail["get persistentvolumeclaims"] = apierrors.NewInternalError(errors.New("etcd"))
		owners, known, err := c.Owners(t.Context(), "a", []*corev1.Pod{podOf(set, "data")})
		if known || err == nil || len(owners.Deployments) != 1 {
			t.Errorf("owners %v, known %t, error %v", names(owners), known, err)
		}
	})
}

// A reconcile may cancel its context when it returns; the next one still needs the watch.
func TestWatchOutlivesFirstCallerContext(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		pods := []*corev1.Pod{podOf(c.web())}
		ctx, cancel := context.WithCancel(t.Context())
		if _, _, err := c.Owners(ctx, "a", pods); err != nil {
			t.Fatal(err)
		}
		cancel()
		synctest.Wait() // the ReplicaSet is known
		if _, _, err := c.Owners(t.Context(), "a", pods); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // and its Deployment
		if owners, known, err := c.Owners(t.Context(), "a", pods); !known || err != nil || len(owners.ReplicaSets) != 1 {
			t.Errorf("owners %v, known %t, error %v", names(owners), known, err)
		}
	})
}
