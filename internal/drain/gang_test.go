package drain_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// ganged makes a pod one of a gang, by the labels and annotations of each system.
var ganged = map[string]func(*corev1.Pod){
	"PodGroup train": func(p *corev1.Pod) { metav1.SetMetaDataLabel(&p.ObjectMeta, "scheduling.x-k8s.io/pod-group", "train") },
	"PodGroup volcano": func(p *corev1.Pod) {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, "scheduling.k8s.io/group-name", "volcano")
	},
	"JobSet train": func(p *corev1.Pod) {
		metav1.SetMetaDataLabel(&p.ObjectMeta, "jobset.sigs.k8s.io/jobset-name", "train")
	},
	"replica 2 of LeaderWorkerSet llm": func(p *corev1.Pod) {
		metav1.SetMetaDataLabel(&p.ObjectMeta, "leaderworkerset.sigs.k8s.io/name", "llm")
		metav1.SetMetaDataLabel(&p.ObjectMeta, "leaderworkerset.sigs.k8s.io/group-index", "2")
	},
}

// One pod of the gang is held by do-not-disrupt. The others must not leave without it, and all leave
// by the last call of the one with the longest grace.
func TestGangLeavesTogether(t *testing.T) {
	for name, join := range ganged {
		short, long := int64(10), int64(60)
		in := scenario{
			Deadline: &deadlineIn{In: metav1.Duration{Duration: 2 * time.Minute}},
			Pods: []podIn{
				{Name: "a", Owner: "Job/a", Grace: &short},
				{Name: "b", Owner: "Job/b", Grace: &long},
				{Name: "c", Owner: "Job/c", Grace: &short, Annotations: map[string]string{v1beta1.AnnotationDoNotDisrupt: "true"}},
				{Name: "other", Owner: "Job/other", Grace: &short},
			},
		}
		f := in.facts()
		for _, p := range f.Pods[:3] {
			join(p)
		}
		plan := drain.NewPlan(f)
		if got, want := steps(plan), "other Evict, b Waits, a Waits, c Waits"; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		if v := byName(plan)["a"]; !strings.Contains(v.Reason, "the pods of "+name+" leave together, and c is held") {
			t.Errorf("%s: %s", name, v.Reason)
		}
		f.Now = noon.Add(50 * time.Second) // the last call of b
		for _, v := range drain.NewPlan(f).Verdicts {
			if v.Step != drain.StepEvict || v.GraceSeconds != nil || v.Pod.Name != "other" && !strings.Contains(v.Reason, "the 3 pods of "+name+" on this node leave together") {
				t.Errorf("%s: %s %s with %v: %s", name, v.Pod.Name, v.Step, v.GraceSeconds, v.Reason)
			}
		}
	}
}

// In random worlds with a firm deadline, the pods of a gang are asked in the same plan.
func TestGangIsAskedInOnePlan(t *testing.T) {
	t.Parallel()
	gangs := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 9))
		w := newWorld(seed)
		if w.hard().IsZero() || w.facts.DoNotDisrupt == v1beta1.DoNotDisruptRespect {
			continue
		}
		w.facts.Strategy, w.facts.Workloads = v1beta1.StrategyEvict, nil
		members := 0
		for _, p := range w.facts.Pods {
			if p.DeletionTimestamp == nil && !drain.Stays(p) && p.Labels[v1beta1.LabelSurged] == "" && r.IntN(2) == 0 {
				metav1.SetMetaDataLabel(&p.ObjectMeta, "scheduling.x-k8s.io/pod-group", "train")
				members++
			}
		}
		if members < 2 {
			continue
		}
		gangs++
		asked := map[string]string{}
		for !w.now.After(w.end()) && !t.Failed() {
			plan := drain.NewPlan(w.facts)
			for _, v := range plan.Verdicts {
				if acts(v) && v.Pod.DeletionTimestamp == nil && v.Pod.Labels["scheduling.x-k8s.io/pod-group"] != "" {
					asked[v.Pod.Name] = hour(w.now)
				}
			}
			w.act(t, plan)
			w.checkLastCalls(t, plan)
			w.tick()
		}
		w.checkEmpty(t)
		times := map[string]bool{}
		for _, at := range asked {
			times[at] = true
		}
		if len(asked) != members || len(times) != 1 {
			t.Errorf("seed %d: the %d pods of the gang were asked at %v", seed, members, fmt.Sprint(asked))
		}
		if t.Failed() {
			return
		}
	}
	if gangs < 50 {
		t.Errorf("only %d gangs", gangs)
	}
}
