package drain_test

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// fleet is a ReplicaSet of a Deployment with its pods, and a simulated ReplicaSet controller.
// The controller releases pods that lost their label, starts successors and counts, each with
// some delay.
type fleet struct {
	app    string
	set    *appsv1.ReplicaSet
	away   int32           // Ready pods on other nodes
	starts []time.Duration // how long the next successors take
	coming []time.Time     // when successors become Ready
	// notices is how late the controller sees a removed label. counts is how late it writes the
	// number of pods to the status.
	notices, counts time.Duration
	due             time.Time // when the current count is written
	count           int32     // Ready pods in it
	of              int64     // the generation that it was taken from
	scales          map[time.Time]int32
	ends            time.Time // when it is deleted; zero: never
}

// drawPolicy generates a policy.
func (w *world) drawPolicy(in *scenario) {
	r := w.rand
	in.Strategy = pick(r, "", v1beta1.StrategyEvict, v1beta1.StrategySurge, v1beta1.StrategySurge)
	for range r.IntN(3) {
		wl := v1beta1.Workload{
			Order:    pick(r, "", v1beta1.OrderFirst, v1beta1.OrderNormal, v1beta1.OrderLast, v1beta1.OrderLast),
			Strategy: pick(r, "", "", v1beta1.StrategyEvict, v1beta1.StrategySurge, v1beta1.StrategyNever),
		}
		switch r.IntN(3) {
		case 0:
			wl.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": pick(r, "a", "b", "c", "d")}}
		case 1:
			wl.MatchOwnerKinds = []string{pick(r, "Deployment", "None", "ReplicaSet")}
		default:
			wl.Namespaces = []string{pick(r, "default", "elsewhere")}
		}
		in.Workloads = append(in.Workloads, wl)
	}
	for i := range max(0, r.IntN(5)-2) {
		g := gateIn{Why: fmt.Sprintf("hook %d runs", i)}
		lift := time.Duration(1+r.IntN(100)) * time.Second
		if r.IntN(2) == 0 {
			g.Until = metav1.Duration{Duration: lift}
		}
		in.Gates = append(in.Gates, g)
		w.lifts = append(w.lifts, noon.Add(lift))
	}
	for _, app := range []string{"a", "b", "c"} {
		if r.IntN(2) == 0 {
			w.assignReplicaSet(in, app)
		}
	}
}

// assignReplicaSet makes the pods of an app those of a ReplicaSet.
func (w *world) assignReplicaSet(in *scenario, app string) {
	r := w.rand
	var here, owned, up int32
	for i := range in.Pods {
		p := &in.Pods[i]
		if p.App != app || p.Owner != "" {
			continue
		}
		p.Set = "rs-" + app
		if r.IntN(5) == 0 {
			p.Surged = &surgedIn{Ago: metav1.Duration{Duration: time.Duration(r.IntN(300)) * time.Second}}
		} else if p.Leaving == nil && p.Phase != corev1.PodSucceeded && p.Phase != corev1.PodFailed {
			owned++
			if !p.NotReady {
				up++
			}
		}
		here++
	}
	slow := here == 1 && r.IntN(2) == 0 // only the resourceVersion shows it then
	f := &fleet{app: app, away: int32(r.IntN(4)), notices: time.Duration(r.IntN(2)) * time.Second, counts: time.Duration(r.IntN(2)) * time.Second}
	if slow {
		f.notices, f.counts = time.Duration(r.IntN(7))*time.Second, time.Duration(r.IntN(7))*time.Second
	}
	for range 20 {
		f.starts = append(f.starts, time.Duration(1+r.IntN(20))*time.Second)
	}
	set := setIn{Name: "rs-" + app, Replicas: owned + f.away, Ready: up + f.away, Version: "1", Strategy: pick(r, "", "", "", "Recreate")}
	if r.IntN(8) == 0 {
		set.Others = 1
	}
	set.Stale = r.IntN(5) == 0
	f.scales = map[time.Time]int32{}
	for range max(0, r.IntN(5)-2) {
		if slow {
			break // others change the ReplicaSet too, so its resourceVersion shows nothing
		}
		f.scales[second(1+r.IntN(100))] = int32(r.IntN(int(set.Replicas) + 2))
	}
	if r.IntN(12) == 0 {
		f.ends = second(1 + r.IntN(100))
	}
	in.Sets = append(in.Sets, set)
	w.fleets = append(w.fleets, f)
}

// linkFleets links the fleets to the objects in the facts.
func (w *world) linkFleets(in scenario) {
	for i, f := range w.fleets {
		f.set = w.facts.Owners.ReplicaSets[i]
		if in.Sets[i].Name != f.set.Name {
			panic("the sets are in another order")
		}
	}
}

func (w *world) fleetOf(p *corev1.Pod) *fleet {
	for _, f := range w.fleets {
		if owner := metav1.GetControllerOf(p); owner != nil && owner.UID == f.set.UID {
			return f
		}
		if _, surged := p.Labels[v1beta1.LabelSurged]; surged && p.Labels["app"] == f.app {
			return f
		}
	}
	return nil
}

func (f *fleet) owns(p *corev1.Pod) bool {
	owner := metav1.GetControllerOf(p)
	return owner != nil && owner.UID == f.set.UID && p.DeletionTimestamp == nil &&
		p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

// surge does what the plan says about a pod.
func (w *world) surge(v drain.Verdict) {
	q := v.Pod.DeepCopy()
	surge(q, *v.Origin)
	w.replace(q)
}

// control runs each fleet's controller and lifts gates that are due. It reports whether anything
// changed.
func (w *world) control() bool {
	changed := false
	for i := len(w.lifts) - 1; i >= 0; i-- {
		if w.facts.Gates[i].Until.IsZero() && !w.now.Before(w.lifts[i]) {
			w.facts.Gates, w.lifts = slices.Delete(slices.Clone(w.facts.Gates), i, i+1), slices.Delete(w.lifts, i, i+1)
			changed = true
		}
	}
	for _, f := range w.fleets {
		changed = w.keep(f) || changed
	}
	return changed
}

func (w *world) keep(f *fleet) bool {
	changed := false
	if !f.ends.IsZero() && !w.now.Before(f.ends) {
		n := len(w.facts.Owners.ReplicaSets)
		w.facts.Owners.ReplicaSets = slices.DeleteFunc(slices.Clone(w.facts.Owners.ReplicaSets), func(rs *appsv1.ReplicaSet) bool { return rs == f.set })
		return len(w.facts.Owners.ReplicaSets) != n
	}
	if to, ok := f.scales[w.now]; ok && to != *f.set.Spec.Replicas {
		f.set.Spec.Replicas, changed = &to, true
		f.set.Generation++
		f.touch()
		for _, d := range w.facts.Owners.Deployments {
			if d.Name == f.set.Name {
				d.Spec.Replicas = &to
			}
		}
	}
	for len(f.coming) > 0 && !w.now.Before(f.coming[0]) {
		f.coming = f.coming[1:]
		f.away++
		changed = w.addHealthy(f, 1) || changed
	}
	if f.due.IsZero() {
		changed = w.look(f) || changed
	}
	if !f.due.IsZero() && !w.now.Before(f.due) {
		f.due = time.Time{}
		f.set.Status.ReadyReplicas, f.set.Status.ObservedGeneration = f.count, f.of
		f.touch()
		changed = true
	}
	return changed
}

func (f *fleet) touch() {
	n, err := strconv.Atoi(f.set.ResourceVersion)
	if err != nil {
		panic(err)
	}
	f.set.ResourceVersion = strconv.Itoa(n + 1)
}

// look is one sync of the ReplicaSet controller: it lists the pods, and starts or stops some. It
// writes the count to the status later.
func (w *world) look(f *fleet) bool {
	released := false
	owned, up := f.away+int32(len(f.coming)), f.away
	for i, p := range w.facts.Pods {
		if !f.owns(p) {
			continue
		}
		if o, ok := drain.SurgedFrom(p); ok && !w.now.Before(o.Time.Add(f.notices)) {
			q := p.DeepCopy()
			q.OwnerReferences = nil
			w.facts.Pods[i], released = q, true
			continue
		}
		owned++
		if ready(p) {
			up++
		}
	}
	want := *f.set.Spec.Replicas
	for ; owned < want; owned++ {
		f.coming = append(f.coming, latest(w.now, w.boots).Add(f.starts[0]))
		f.starts = append(f.starts[1:], f.starts[0])
		slices.SortFunc(f.coming, time.Time.Compare)
	}
	for ; owned > want && len(f.coming) > 0; owned-- {
		f.coming = f.coming[1:]
	}
	for ; owned > want && f.away > 0; owned-- {
		f.away--
		up--
		w.addHealthy(f, -1)
	}
	if up != f.set.Status.ReadyReplicas || f.set.Generation != f.set.Status.ObservedGeneration || released {
		f.count, f.of, f.due = up, f.set.Generation, w.now.Add(f.counts)
	}
	return released
}

// addHealthy adds by to the healthy pods on other nodes in the budgets of the fleet's pods. It reports
// whether there are any.
func (w *world) addHealthy(f *fleet, by int32) bool {
	found := false
	for _, b := range w.facts.Budgets {
		if b.Selector.Matches(labels.Set{"app": f.app}) {
			w.away[b.Name] += by
			found = true
		}
	}
	return found
}
