//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/sandbox"
)

// surger is a rig without lifeboatd; the test calls the surge functions one by one.
type surger struct{ *rig }

// in returns the surger for a subtest.
func (s surger) in(t *testing.T) surger {
	r := *s.rig
	r.t = t
	return surger{&r}
}

// TestSurge checks what the code and the guides assume about surges, against the real controllers.
func TestSurge(t *testing.T) {
	t.Parallel()
	s := surger{newRigWith(t, sandbox.Options{NoLifeboat: true})}
	s.launch(2)
	t.Run("a single replica that a budget protects", func(t *testing.T) { s.in(t).serves() })
	t.Run("budgets", func(t *testing.T) { s.budgets(t) })
	t.Run("a quota allows no successor", func(t *testing.T) { s.in(t).full() })
	t.Run("undo", func(t *testing.T) { s.undo(t) })
}

// serves surges a single replica that a budget protects, and evicts it.
func (s surger) serves() {
	d, old := s.one("web", budgetOf("web", func(b *policyv1.PodDisruptionBudgetSpec) { b.MinAvailable = whole(1) }))
	s.apply(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec:       corev1.ServiceSpec{Selector: d.Spec.Selector.MatchLabels, Ports: []corev1.ServicePort{{Port: 80}}},
	})
	s.until("the pod to serve", 20*time.Second, func(ctx context.Context) (bool, error) { return s.serving(ctx, "web", old) })
	if answer, err := mutate.Evict(s.t.Context(), s.client, old, nil); err != nil || answer.Refused == "" {
		s.t.Fatalf("the budget did not protect the only pod: %+v, %v", answer, err)
	}

	s.surge(old)
	if answer, err := mutate.Surge(s.t.Context(), s.client, old, time.Now(), ""); err != nil || answer != (mutate.Answer{}) {
		s.t.Errorf("surging from a stale read: %+v, %v", answer, err)
	}
	next := s.successor("web", old)
	s.until("both to serve", 20*time.Second, func(ctx context.Context) (bool, error) { return s.serving(ctx, "web", old, next) })
	s.until("the ReplicaSet to count its successor", 20*time.Second, func(ctx context.Context) (bool, error) {
		set, err := s.setOf(ctx, next)
		return err == nil && set.Status.ReadyReplicas == 1 && set.Status.Replicas == 1, err
	})
	if released := s.pod(old); len(released.OwnerReferences) > 0 {
		s.t.Errorf("the pod is still owned by %+v", released.OwnerReferences)
	}
	s.evict(old)
	s.pods("web", 1, func(pod corev1.Pod) bool { return pod.UID == next.UID })
}

// budgets logs, for every form of a budget, the allowed disruptions while the pod is alone, while
// its successor starts, and once that is Ready.
func (s surger) budgets(t *testing.T) {
	forms := map[string]func(*policyv1.PodDisruptionBudgetSpec){
		"min-1":    func(b *policyv1.PodDisruptionBudgetSpec) { b.MinAvailable = whole(1) },
		"min-100p": func(b *policyv1.PodDisruptionBudgetSpec) { b.MinAvailable = percent("100%") },
		"max-0":    func(b *policyv1.PodDisruptionBudgetSpec) { b.MaxUnavailable = whole(0) },
		"max-0p":   func(b *policyv1.PodDisruptionBudgetSpec) { b.MaxUnavailable = percent("0%") },
	}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			s := s.in(t)
			_, old := s.one(name, budgetOf(name, form))
			s.allows(name, "one pod", 0)
			s.cordon(true)
			s.surge(old)
			s.until("a successor that waits", 20*time.Second, func(ctx context.Context) (bool, error) {
				pods, err := s.list(ctx, name)
				return len(pods) == 2, err
			})
			s.allows(name, "its successor waits", 0)
			s.cordon(false)
			s.successor(name, old)
			s.allows(name, "its successor is Ready", 1)
			s.evict(old)
			s.allows(name, "the old one is gone", 0)
		})
	}
}

// full surges where a quota allows no successor. The pod has no controller then, so a percentage
// budget allows no disruption and still protects the pod.
func (s surger) full() {
	_, old := s.one("full", budgetOf("full", func(b *policyv1.PodDisruptionBudgetSpec) { b.MinAvailable = percent("100%") }))
	s.allows("full", "one pod", 0)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "full"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
	}
	s.apply(quota)
	defer func() {
		if err := s.client.Delete(s.t.Context(), quota); err != nil {
			s.t.Error(err)
		}
	}()
	s.surge(old)
	s.until("the budget to count no controller", 20*time.Second, func(ctx context.Context) (bool, error) {
		b := &policyv1.PodDisruptionBudget{}
		err := s.client.Get(ctx, types.NamespacedName{Namespace: "default", Name: "full"}, b)
		return b.Status.ExpectedPods == 0 && b.Status.CurrentHealthy == 1, fmt.Errorf("%+v, %w", b.Status, err)
	})
	if answer, err := mutate.Evict(s.t.Context(), s.client, old, nil); err != nil || answer.Refused == "" {
		s.t.Errorf("the budget did not protect the only pod: %+v, %v", answer, err)
	}
	s.undone(old)
	s.pods("full", 1, func(pod corev1.Pod) bool { return pod.UID == old.UID && s.ownedAndReady(pod) })
	s.allows("full", "the surge is undone", 0)
}

// undo reverts surges after each change that may have happened in between.
func (s surger) undo(t *testing.T) {
	t.Run("the node recovers", func(t *testing.T) {
		s := s.in(t)
		_, old := s.one("lives")
		s.surge(old)
		s.successor("lives", old)
		s.undone(old)
		s.pods("lives", 1, s.ownedAndReady)
	})
	t.Run("the node recovers before the successor exists", func(t *testing.T) {
		s := s.in(t)
		_, old := s.one("early")
		s.cordon(true)
		s.surge(old)
		s.until("a successor that waits", 20*time.Second, func(ctx context.Context) (bool, error) {
			pods, err := s.list(ctx, "early")
			return len(pods) == 2, err
		})
		s.undone(old)
		s.pods("early", 1, func(pod corev1.Pod) bool { return pod.UID == old.UID && s.ownedAndReady(pod) })
		s.cordon(false)
	})
	t.Run("the Deployment was rolled out", func(t *testing.T) {
		s := s.in(t)
		d, old := s.one("rolled")
		s.surge(old)
		s.successor("rolled", old)
		s.change(d, func(d *appsv1.Deployment) { d.Spec.Template.Labels["version"] = "2" })
		s.until("the rollout to end", 30*time.Second, func(ctx context.Context) (bool, error) {
			pods, err := s.list(ctx, "rolled")
			return len(pods) == 2 && slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Labels["version"] == "2" }), err
		})
		s.undone(old)
		s.pods("rolled", 1, func(pod corev1.Pod) bool { return pod.Labels["version"] == "2" && s.ownedAndReady(pod) })
	})
	t.Run("the ReplicaSet is gone", func(t *testing.T) {
		s := s.in(t)
		d, old := s.one("gone")
		s.surge(old)
		next := s.successor("gone", old)
		set, err := s.setOf(t.Context(), next)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.client.Delete(t.Context(), d, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			t.Fatal(err)
		}
		s.until("the ReplicaSet to go", 30*time.Second, func(ctx context.Context) (bool, error) {
			err := s.client.Get(ctx, client.ObjectKeyFromObject(set), &appsv1.ReplicaSet{})
			return apierrors.IsNotFound(err), err
		})
		s.pods("gone", 1, func(pod corev1.Pod) bool { return pod.UID == old.UID })
		s.undone(old)
		s.pods("gone", 0, isReady)
	})
	t.Run("the Deployment was scaled to zero", func(t *testing.T) {
		s := s.in(t)
		d, old := s.one("zero")
		s.surge(old)
		s.successor("zero", old)
		s.change(d, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32) })
		s.pods("zero", 1, func(pod corev1.Pod) bool { return pod.UID == old.UID })
		s.undone(old)
		s.pods("zero", 0, isReady)
	})
}

// one creates a Deployment of one pod and waits until the pod is Ready.
func (s surger) one(name string, more ...client.Object) (*appsv1.Deployment, *corev1.Pod) {
	s.t.Helper()
	d := deployment(name, 1, time.Second)
	s.apply(append(more, d)...)
	return d, s.pods(name, 1, s.ownedAndReady)[0].DeepCopy()
}

func (s surger) surge(pod *corev1.Pod) {
	s.t.Helper()
	fresh := s.pod(pod)
	answer, err := mutate.Surge(s.t.Context(), s.client, fresh, time.Now(), "")
	if err != nil || !answer.Asked {
		s.t.Fatalf("surging: %+v, %v", answer, err)
	}
	s.until("the ReplicaSet to let it go", 20*time.Second, func(context.Context) (bool, error) {
		return len(s.pod(pod).OwnerReferences) == 0, nil
	})
	from, ok := drain.SurgedFrom(s.pod(pod))
	if !ok || from.UID != fresh.OwnerReferences[0].UID {
		s.t.Fatalf("origin %+v", from)
	}
}

// successor waits for a Ready pod beside the old one, and returns it.
func (s surger) successor(name string, old *corev1.Pod) *corev1.Pod {
	s.t.Helper()
	for _, pod := range s.pods(name, 2, isReady) {
		if pod.UID != old.UID {
			return &pod
		}
	}
	s.t.Fatal("no successor")
	return nil
}

// undone reverts the surge of a pod, and checks that a second call reverts nothing.
func (s surger) undone(old *corev1.Pod) {
	s.t.Helper()
	for _, want := range []int{1, 0} {
		undone, err := mutate.UndoSurges(s.t.Context(), s.client, s.client, old.Spec.NodeName)
		if err != nil || undone != want {
			s.t.Fatalf("undone %d of %d, error %v", undone, want, err)
		}
	}
}

// evict waits until the budget allows an eviction.
func (s surger) evict(pod *corev1.Pod) {
	s.t.Helper()
	s.until("the eviction to be granted", 20*time.Second, func(ctx context.Context) (bool, error) {
		answer, err := mutate.Evict(ctx, s.client, pod, nil)
		return answer.Asked, fmt.Errorf("%+v, %w", answer, err)
	})
	s.until("the pod to go", 20*time.Second, func(ctx context.Context) (bool, error) {
		err := s.client.Get(ctx, client.ObjectKeyFromObject(pod), &corev1.Pod{})
		return apierrors.IsNotFound(err), err
	})
}

// allows waits until a budget allows want disruptions, and logs its status.
func (s surger) allows(name, when string, want int32) {
	s.t.Helper()
	b := &policyv1.PodDisruptionBudget{}
	s.until(fmt.Sprintf("budget %s to allow %d", name, want), 20*time.Second, func(ctx context.Context) (bool, error) {
		err := s.client.Get(ctx, types.NamespacedName{Namespace: "default", Name: name}, b)
		known := b.Status.ObservedGeneration == b.Generation && b.Status.ExpectedPods > 0
		return err == nil && known && b.Status.DisruptionsAllowed == want, fmt.Errorf("%+v, %w", b.Status, err)
	})
	s.t.Logf("%s: expected %d, desired %d, healthy %d, allowed %d", when,
		b.Status.ExpectedPods, b.Status.DesiredHealthy, b.Status.CurrentHealthy, b.Status.DisruptionsAllowed)
}

// pods waits until n pods that are not terminating exist, and all satisfy holds.
func (s surger) pods(name string, n int, holds func(corev1.Pod) bool) []corev1.Pod {
	s.t.Helper()
	var found []corev1.Pod
	s.until(fmt.Sprintf("%d pods of %s", n, name), 30*time.Second, func(ctx context.Context) (bool, error) {
		pods, err := s.list(ctx, name)
		found = pods
		wrong := slices.ContainsFunc(pods, func(p corev1.Pod) bool { return !holds(p) })
		return err == nil && len(pods) == n && !wrong, fmt.Errorf("%d pods, %w", len(pods), err)
	})
	return found
}

// list returns the pods of a Deployment that are not terminating.
func (s surger) list(ctx context.Context, name string) ([]corev1.Pod, error) {
	var all corev1.PodList
	err := s.client.List(ctx, &all, client.InNamespace("default"), client.MatchingLabels{"app": name})
	return slices.DeleteFunc(all.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil }), err
}

func (s surger) pod(pod *corev1.Pod) *corev1.Pod {
	s.t.Helper()
	found := &corev1.Pod{}
	if err := s.client.Get(s.t.Context(), client.ObjectKeyFromObject(pod), found); err != nil {
		s.t.Fatal(err)
	}
	return found
}

func (s surger) setOf(ctx context.Context, pod *corev1.Pod) (*appsv1.ReplicaSet, error) {
	set := &appsv1.ReplicaSet{}
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return nil, fmt.Errorf("pod %s has no controller", pod.Name)
	}
	return set, s.client.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name}, set)
}

// serving reports whether the ready endpoints are exactly these pods.
func (s surger) serving(ctx context.Context, service string, pods ...*corev1.Pod) (bool, error) {
	var slicesOf discoveryv1.EndpointSliceList
	if err := s.client.List(ctx, &slicesOf, client.InNamespace("default"), client.MatchingLabels{discoveryv1.LabelServiceName: service}); err != nil {
		return false, err
	}
	var want, got []string
	for _, pod := range pods {
		want = append(want, pod.Name)
	}
	for i := range slicesOf.Items {
		for _, e := range slicesOf.Items[i].Endpoints {
			if e.Conditions.Ready != nil && *e.Conditions.Ready {
				got = append(got, e.TargetRef.Name)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	diff := cmp.Diff(want, got)
	return diff == "", fmt.Errorf("endpoints (-want +got): %s", diff)
}

// cordon makes all nodes unschedulable, or schedulable again.
func (s surger) cordon(off bool) {
	s.t.Helper()
	var nodes corev1.NodeList
	if err := s.client.List(s.t.Context(), &nodes); err != nil {
		s.t.Fatal(err)
	}
	for i := range nodes.Items {
		from := nodes.Items[i].DeepCopy()
		nodes.Items[i].Spec.Unschedulable = off
		if err := s.client.Patch(s.t.Context(), &nodes.Items[i], client.MergeFrom(from)); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s surger) change(d *appsv1.Deployment, how func(*appsv1.Deployment)) {
	s.t.Helper()
	from := d.DeepCopy()
	how(d)
	if err := s.client.Patch(s.t.Context(), d, client.MergeFrom(from)); err != nil {
		s.t.Fatal(err)
	}
}

// ownedAndReady reports whether a pod has a controller and no trace of a surge.
func (s surger) ownedAndReady(pod corev1.Pod) bool {
	_, surged := pod.Labels[v1beta1.LabelSurged]
	_, noted := pod.Annotations[v1beta1.AnnotationSurgeOrigin]
	return metav1.GetControllerOf(&pod) != nil && isReady(pod) && !surged && !noted
}

func isReady(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func budgetOf(name string, form func(*policyv1.PodDisruptionBudgetSpec)) *policyv1.PodDisruptionBudget {
	b := budget(name, 0)
	b.Spec.MinAvailable = nil
	form(&b.Spec)
	return b
}

func whole(n int) *intstr.IntOrString {
	v := intstr.FromInt(n)
	return &v
}

func percent(p string) *intstr.IntOrString {
	v := intstr.FromString(p)
	return &v
}
