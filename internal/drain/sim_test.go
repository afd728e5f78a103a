package drain_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// world is a simulated cluster around one node to drain: an API server that decides evictions
// and deletions, a disruption controller that counts, kubelets that stop pods, and controllers
// that start successors on other nodes. It shares no code with the planner.
type world struct {
	rand    *rand.Rand
	now     time.Time
	facts   drain.Facts
	work    map[string]time.Duration // by pod: how long it takes to stop
	asked   map[string]time.Time     // by pod: when it was first asked to stop
	ends    map[string]time.Time     // by pod: when it will have stopped
	left    map[string]time.Time     // by pod: when it was gone
	away    map[string]int32         // by budget: healthy pods on other nodes
	arrives map[string][]time.Time   // by budget: when successors become Ready
	granted map[string]granted       // by pod: the grace it was first given
	starts  time.Duration            // how long a successor takes
	fleets  []*fleet
	lifts   []time.Time // by gate: when it is gone
	boots   time.Time   // when successors have a node; zero: they have one
}

type granted struct{ own, got time.Duration }

// newWorld generates a cluster from a seed.
func newWorld(seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 1))
	w := &world{
		rand: r, now: noon, work: map[string]time.Duration{}, asked: map[string]time.Time{},
		ends: map[string]time.Time{}, left: map[string]time.Time{},
		away: map[string]int32{}, arrives: map[string][]time.Time{}, granted: map[string]granted{},
		starts: time.Duration(1+r.IntN(12)) * time.Second,
	}
	in := scenario{DoNotDisrupt: pick(r, v1beta1.DoNotDisrupt(""), v1beta1.DoNotDisruptUntilLastCall, v1beta1.DoNotDisruptIgnore, v1beta1.DoNotDisruptRespect)}
	switch r.IntN(8) {
	case 0:
	case 1:
		in.Deadline = &deadlineIn{In: metav1.Duration{Duration: 60 * time.Second}, Type: v1beta1.DeadlineSoft}
	default:
		in.Deadline = &deadlineIn{In: metav1.Duration{Duration: time.Duration(15+r.IntN(150)) * time.Second}}
	}
	in.Margin = &metav1.Duration{Duration: time.Duration(r.IntN(15)) * time.Second}
	for i := range 1 + r.IntN(10) {
		in.Pods = append(in.Pods, anyPod(r, i))
	}
	for i := range r.IntN(4) {
		b := budgetIn{Name: fmt.Sprintf("pdb-%d", i), App: pick(r, "a", "b", "c"), AlwaysAllow: r.IntN(4) == 0}
		if r.IntN(10) == 0 {
			b.App = ""
		}
		in.Budgets = append(in.Budgets, b)
	}
	w.drawPolicy(&in)
	w.facts = in.facts()
	w.linkFleets(in)
	for _, p := range w.facts.Pods {
		w.work[p.Name] = time.Duration(r.Int64N(int64(ownGrace(p)) + 1)).Truncate(time.Second)
		if p.DeletionTimestamp != nil {
			w.asked[p.Name] = p.DeletionTimestamp.Add(-time.Duration(*p.DeletionGracePeriodSeconds) * time.Second)
			w.ends[p.Name] = p.DeletionTimestamp.Time
		}
	}
	for _, b := range w.facts.Budgets {
		w.away[b.Name] = int32(r.IntN(4))
		b.ExpectedPods = w.healthy(b) + int32(r.IntN(2))
		b.DesiredHealthy = max(0, b.ExpectedPods-int32(r.IntN(3)))
	}
	w.count()
	return w
}

func anyPod(r *rand.Rand, i int) podIn {
	grace := int64(pick(r, 0, 1, 2, 5, 10, 30, 30, 30, 60, 90, 300))
	p := podIn{Name: fmt.Sprintf("pod-%d", i), App: pick(r, "a", "b", "c", "d"), Grace: &grace, NotReady: r.IntN(6) == 0}
	switch r.IntN(14) {
	case 0:
		p.Owner = "DaemonSet/logs"
	case 1:
		p.Phase = pick(r, corev1.PodSucceeded, corev1.PodFailed, corev1.PodPending)
	case 2, 3:
		p.PriorityClass = "system-cluster-critical"
	case 4:
		p.Leaving = &leavingIn{Asked: metav1.Duration{Duration: time.Duration(r.IntN(30)) * time.Second}, Grace: int64(1 + r.IntN(400))}
	}
	switch r.IntN(6) {
	case 0:
		p.Annotations = map[string]string{"lifeboat.dev/do-not-disrupt": "true"}
	case 1:
		p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": fmt.Sprintf("%ds", 3600+r.IntN(200))}
	}
	return p
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func ownGrace(p *corev1.Pod) time.Duration {
	return time.Duration(*p.Spec.TerminationGracePeriodSeconds) * time.Second
}

// tick advances the time by a second. It reports whether anything changed.
func (w *world) tick() bool {
	w.now = w.now.Add(time.Second)
	w.facts.Now = w.now
	changed := false
	var on []*corev1.Pod
	for _, p := range w.facts.Pods {
		end, leaving := w.ends[p.Name]
		if leaving && !w.now.Before(end) {
			w.left[p.Name], changed = w.now, true
			continue
		}
		on = append(on, p)
	}
	w.facts.Pods = on
	changed = w.control() || changed
	for name, times := range w.arrives {
		for len(times) > 0 && !w.now.Before(times[0]) {
			w.away[name]++
			times, changed = times[1:], true
		}
		w.arrives[name] = times
	}
	w.count()
	return changed
}

func (w *world) healthy(b *drain.Budget) int32 {
	n := w.away[b.Name]
	for _, p := range w.facts.Pods {
		if covers(b, p) && p.DeletionTimestamp == nil && ready(p) {
			n++
		}
	}
	return n
}

// count simulates the disruption controller.
func (w *world) count() {
	for _, b := range w.facts.Budgets {
		b.CurrentHealthy = w.healthy(b)
		b.DisruptionsAllowed = max(0, b.CurrentHealthy-b.DesiredHealthy)
	}
}

// evict simulates the Eviction API. It returns why it refuses.
func (w *world) evict(p *corev1.Pod, grace *int64) string {
	var over []*drain.Budget
	for _, b := range w.facts.Budgets {
		if covers(b, p) {
			over = append(over, b)
		}
	}
	free := p.Status.Phase == corev1.PodPending || len(over) == 0
	if !free && len(over) > 1 {
		return "more than one PodDisruptionBudget"
	}
	if !free && !ready(p) {
		b := over[0]
		free = b.AlwaysAllow || (b.CurrentHealthy >= b.DesiredHealthy && b.DesiredHealthy > 0)
	}
	if !free {
		if over[0].DisruptionsAllowed <= 0 {
			return over[0].Name + " allows none"
		}
		over[0].DisruptionsAllowed--
	}
	w.remove(p, grace)
	return ""
}

// remove simulates a graceful deletion. A second one can only shorten the grace, which counts
// from the first.
func (w *world) remove(p *corev1.Pod, grace *int64) {
	seconds := *p.Spec.TerminationGracePeriodSeconds
	if grace != nil {
		seconds = *grace
	}
	q := p.DeepCopy()
	if p.DeletionTimestamp == nil {
		w.asked[p.Name] = w.now
		w.granted[p.Name] = granted{own: ownGrace(p), got: time.Duration(seconds) * time.Second}
		for _, b := range w.facts.Budgets {
			if covers(b, p) && ready(p) && w.fleetOf(p) == nil { // its fleet starts the successor otherwise
				w.arrives[b.Name] = append(w.arrives[b.Name], latest(w.now.Add(w.work[p.Name]), w.boots).Add(w.starts))
			}
		}
		end := metav1.NewTime(w.now.Add(time.Duration(seconds) * time.Second))
		q.DeletionTimestamp, q.DeletionGracePeriodSeconds = &end, &seconds
		w.ends[p.Name] = w.now.Add(min(w.work[p.Name], time.Duration(seconds)*time.Second))
	} else if old := *p.DeletionGracePeriodSeconds; seconds < old {
		end := p.DeletionTimestamp.Add(time.Duration(seconds-old) * time.Second)
		if end.Before(w.now) {
			end, seconds = w.now, 1
		}
		at := metav1.NewTime(end)
		q.DeletionTimestamp, q.DeletionGracePeriodSeconds = &at, &seconds
		w.ends[p.Name] = w.now.Add(2 * time.Second) // the kubelet's least
	}
	w.replace(q)
}

func (w *world) replace(q *corev1.Pod) {
	for i := range w.facts.Pods {
		if w.facts.Pods[i].Name == q.Name {
			w.facts.Pods[i] = q
		}
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func covers(b *drain.Budget, p *corev1.Pod) bool {
	return b.Namespace == p.Namespace && b.Selector.Matches(labels.Set(p.Labels))
}

func ready(p *corev1.Pod) bool { return p.Status.Conditions[0].Status == corev1.ConditionTrue }
