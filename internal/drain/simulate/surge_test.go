package simulate_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/drain/simulate"
)

// deployed turns pods into Ready pods of a Deployment of that size.
func deployed(f *simulate.Facts, name string, size int32, pods ...*corev1.Pod) {
	yes := true
	labels := map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: name}
	own := func(kind string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{Kind: kind, Name: name, UID: types.UID(kind + name), Controller: &yes}}
	}
	f.Strategy = v1beta1.StrategySurge
	f.Owners.ReplicaSets = append(f.Owners.ReplicaSets, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("ReplicaSet" + name), OwnerReferences: own("Deployment"), Generation: 2, ResourceVersion: "7"},
		Spec:       appsv1.ReplicaSetSpec{Replicas: &size, Selector: &metav1.LabelSelector{MatchLabels: labels}},
		Status:     appsv1.ReplicaSetStatus{Replicas: size, ReadyReplicas: size, ObservedGeneration: 1},
	})
	f.Owners.Deployments = append(f.Owners.Deployments, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("Deployment" + name), Generation: 2},
		Spec:       appsv1.DeploymentSpec{Replicas: &size, Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType}},
		Status:     appsv1.DeploymentStatus{Replicas: size, UpdatedReplicas: size, ObservedGeneration: 1},
	})
	for _, p := range pods {
		p.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = name
		p.OwnerReferences = own("ReplicaSet")
	}
}

// surgedBefore detaches a pod from its ReplicaSet, which then misses one.
func surgedBefore(f *simulate.Facts, p *corev1.Pod, ago time.Duration) {
	set := f.Owners.ReplicaSets[0]
	o := drain.Origin{ReplicaSet: set.Name, UID: set.UID, Hash: set.Name, Time: now.Add(-ago), Seen: set.ResourceVersion}
	delete(p.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	p.Annotations = map[string]string{v1beta1.AnnotationSurgeOrigin: o.String()}
	set.Status.ReadyReplicas--
}

func TestSurgeGatesAndOrdersAreSimulated(t *testing.T) {
	for _, c := range []struct {
		name string
		make func() simulate.Facts
		want []string
	}{
		{"a single replica goes when its successor is ready, though its budget allows none now", func() simulate.Facts {
			p := pod("web", "web", 30)
			f := facts(2*time.Minute, []*corev1.Pod{p}, budget("web", 1, 0))
			deployed(&f, "web", 1, p)
			return f
		}, []string{"web Evict asked +20 gone +50 grace 30/30 surged +0"}},
		{"one whose successor would come too late goes at last call", func() simulate.Facts {
			p := pod("web", "web", 30)
			f := facts(2*time.Minute, []*corev1.Pod{p})
			deployed(&f, "web", 1, p)
			f.Replaced = time.Hour
			return f
		}, []string{"web Evict asked +80 gone +110 grace 30/30 surged +0"}},
		{"without a hard deadline its successor is waited for five minutes", func() simulate.Facts {
			p := pod("web", "web", 30)
			f := facts(time.Hour, []*corev1.Pod{p})
			f.Deadline.Type = v1beta1.DeadlineSoft
			deployed(&f, "web", 1, p)
			f.Replaced = time.Hour
			return f
		}, []string{"web Evict asked +300 gone +330 grace 30/30 surged +0"}},
		{"one that was surged before waits for what is under way", func() simulate.Facts {
			p := pod("web", "web", 30)
			f := facts(2*time.Minute, []*corev1.Pod{p}, budget("web", 1, 0))
			deployed(&f, "web", 1, p)
			surgedBefore(&f, p, 5*time.Second)
			return f
		}, []string{"web Evict asked +20 gone +50 grace 30/30"}},
		{"a gate ends when it says so", func() simulate.Facts {
			f := facts(2*time.Minute, []*corev1.Pod{pod("a", "web", 30)})
			f.Gates = []drain.Gate{{Why: "its replacement is not Ready yet", Until: now.Add(40 * time.Second)}}
			return f
		}, []string{"a Evict asked +40 gone +70 grace 30/30"}},
		{"a gate of which no one knows the end is opened by last call", func() simulate.Facts {
			f := facts(2*time.Minute, []*corev1.Pod{pod("a", "web", 30)})
			f.Gates = []drain.Gate{{Why: "ada@example.com holds it"}}
			return f
		}, []string{"a Evict asked +80 gone +110 grace 30/30"}},
		{"and without a hard deadline by nothing", func() simulate.Facts {
			f := facts(time.Hour, []*corev1.Pod{pod("a", "web", 30)})
			f.Deadline.Type = v1beta1.DeadlineSoft
			f.Gates = []drain.Gate{{Why: "ada@example.com holds it"}}
			return f
		}, []string{"a Waits DOES NOT FIT"}},
		{"orders follow each other, and a workload may stay", func() simulate.Facts {
			f := facts(2*time.Minute, []*corev1.Pod{
				owned(pod("kafka", "kafka", 20), "StatefulSet"), pod("web", "web", 25), pod("cache", "cache", 15), pod("log", "log", 15),
			})
			f.Workloads = []v1beta1.Workload{
				{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "cache"}}, Order: v1beta1.OrderFirst},
				{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "log"}}, Strategy: v1beta1.StrategyNever},
				{MatchOwnerKinds: []string{"StatefulSet"}, Order: v1beta1.OrderLast},
			}
			return f
		}, []string{"cache Evict asked +0 gone +15 grace 15/15", "web Evict asked +15 gone +40 grace 25/25", "kafka Evict asked +40 gone +60 grace 20/20", "log Stays"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			outcomes := simulate.Simulate(c.make())
			got := formatOutcomes(outcomes)
			for i, f := range outcomes {
				if !f.Surged.IsZero() {
					got[i] += fmt.Sprintf(" surged %+.0f", f.Surged.Sub(now).Seconds())
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMakeDoesNotModifyOwners(t *testing.T) {
	a, b := pod("a", "web", 15), pod("b", "web", 15)
	f := facts(2*time.Minute, []*corev1.Pod{a, b}, budget("web", 2, 1))
	deployed(&f, "web", 2, a, b)
	surgedBefore(&f, b, time.Second)
	before := f
	before.Pods = []*corev1.Pod{a.DeepCopy(), b.DeepCopy()}
	counted := *f.Budgets[0]
	before.Budgets = []*drain.Budget{&counted}
	before.Owners.ReplicaSets = []*appsv1.ReplicaSet{f.Owners.ReplicaSets[0].DeepCopy()}
	before.Owners.Deployments = []*appsv1.Deployment{f.Owners.Deployments[0].DeepCopy()}
	simulate.Simulate(f)
	if diff := cmp.Diff(before, f); diff != "" {
		t.Errorf("the facts were changed (-before +after):\n%s", diff)
	}
}

// A pod that fits before a deadline also fits before a later one, and every
// surged pod leaves.
func TestMoreTimeNeverWorsensForecast(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 3))
		var pods []*corev1.Pod
		for i := range 1 + r.IntN(8) {
			pods = append(pods, pod(fmt.Sprintf("p%d", i), fmt.Sprintf("app%d", r.IntN(3)), int64(5+r.IntN(60))))
		}
		f := facts(time.Duration(20+r.IntN(200))*time.Second, pods)
		f.Replaced = time.Duration(1+r.IntN(60)) * time.Second
		for app := range 3 {
			name, here := fmt.Sprintf("app%d", app), []*corev1.Pod(nil)
			for _, p := range pods {
				if p.Labels["app"] == name {
					here = append(here, p)
				}
			}
			if r.IntN(2) == 0 {
				deployed(&f, name, int32(len(here)), here...)
			}
		}
		if r.IntN(3) == 0 {
			f.Gates = []drain.Gate{{Why: "a hook runs", Until: now.Add(time.Duration(r.IntN(60)) * time.Second)}}
		}
		if r.IntN(3) == 0 {
			f.Workloads = []v1beta1.Workload{{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "app0"}}, Order: v1beta1.OrderLast}}
		}
		fitted := map[string]bool{}
		for _, fate := range simulate.Simulate(f) {
			fitted[fate.Pod.Name] = fate.Fits
			if fate.Asked.IsZero() {
				t.Errorf("seed %d: %s is never asked: %s", seed, fate.Pod.Name, fate.Reason)
			}
		}
		f.Deadline.Time.Time = f.Deadline.Time.Add(time.Duration(1+r.IntN(100)) * time.Second)
		for _, fate := range simulate.Simulate(f) {
			if fitted[fate.Pod.Name] && !fate.Fits {
				t.Errorf("seed %d: with more time %s does not fit: %s", seed, fate.Pod.Name, fate.Reason)
			}
		}
	}
}
