package drain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// waveCase is a node with pods of one Deployment, of which some are surged already.
type waveCase struct {
	name                 string
	replicas, ready      int32
	pods, surged         int
	deadline             time.Duration // 0: none
	surge, unavailable   string        // of the Deployment; empty: the default
	wantSurges, wantLeft int
	wantWake             time.Duration // after noon; 0: not checked
}

func (c waveCase) facts() drain.Facts {
	in := scenario{Strategy: v1beta1.StrategySurge, Sets: []setIn{{Name: "web", Replicas: c.replicas, Ready: c.ready}}}
	if c.deadline != 0 {
		in.Deadline = &deadlineIn{In: metav1.Duration{Duration: c.deadline}}
	}
	for i := range c.pods {
		p := podIn{Name: fmt.Sprintf("web-%02d", i), Set: "web"}
		if i < c.surged {
			p.Surged = &surgedIn{Ago: metav1.Duration{Duration: 20 * time.Second}}
		}
		in.Pods = append(in.Pods, p)
	}
	f := in.facts()
	f.Margin = 0
	if c.surge != "" {
		more, fewer := intstr.Parse(c.surge), intstr.Parse(c.unavailable)
		f.Owners.Deployments[0].Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: &more, MaxUnavailable: &fewer}
	}
	return f
}

// The grace is 30 s: with a deadline in 150 s the last call comes after 120 s.
func TestSurgesComeInWaves(t *testing.T) {
	for _, c := range []waveCase{
		{name: "as a rollout, by default", replicas: 24, ready: 24, pods: 24, wantSurges: 6, wantLeft: 18},
		{name: "the rest waits while the first wave is replaced", replicas: 24, ready: 18, pods: 24, surged: 6, wantLeft: 18},
		{name: "one follows each successor", replicas: 24, ready: 20, pods: 22, surged: 4, wantSurges: 2, wantLeft: 16},
		{name: "a few are surged one by one", replicas: 3, ready: 3, pods: 3, wantSurges: 1, wantLeft: 2},
		{name: "one is always under way", replicas: 24, ready: 2, pods: 2, wantSurges: 1, wantLeft: 1},
		{name: "the smaller limit applies", replicas: 10, ready: 10, pods: 10, surge: "3", unavailable: "50%", wantSurges: 3, wantLeft: 7},
		{name: "no pod may be missing", replicas: 10, ready: 10, pods: 10, surge: "5", unavailable: "0", wantSurges: 1, wantLeft: 9},
		{name: "a rollout starts none beyond its size", replicas: 10, ready: 10, pods: 10, surge: "0", unavailable: "5"},
		{name: "limits that cannot be parsed", replicas: 10, ready: 10, pods: 10, surge: "many", unavailable: "1", wantSurges: 1, wantLeft: 9},
		{name: "time for four waves", replicas: 24, ready: 24, pods: 24, deadline: 180 * time.Second, wantSurges: 6, wantLeft: 18, wantWake: 30 * time.Second},
		{name: "time for three waves", replicas: 24, ready: 24, pods: 24, deadline: 150 * time.Second, wantSurges: 8, wantLeft: 16, wantWake: 30 * time.Second},
		{name: "time for two waves", replicas: 24, ready: 24, pods: 24, deadline: 100 * time.Second, wantSurges: 12, wantLeft: 12, wantWake: 10 * time.Second},
		{name: "a minute before last call", replicas: 24, ready: 12, pods: 24, surged: 12, deadline: 90 * time.Second, wantSurges: 12},
		{name: "more than a minute before last call", replicas: 24, ready: 12, pods: 24, surged: 12, deadline: 91 * time.Second, wantLeft: 12, wantWake: time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			facts := c.facts()
			plan := drain.NewPlan(facts)
			surges, left := 0, 0
			for _, v := range plan.Verdicts {
				switch {
				case v.Step == drain.StepSurge:
					surges++
				case strings.Contains(v.Reason, "will be surged after others"):
					left++
				}
			}
			if surges != c.wantSurges || left != c.wantLeft {
				t.Errorf("%d surges and %d waiting, want %d and %d: %s", surges, left, c.wantSurges, c.wantLeft, steps(plan))
			}
			if wake := plan.WakeAt.Sub(facts.Now); c.wantWake != 0 && wake != c.wantWake {
				t.Errorf("plans again after %s, want %s", wake, c.wantWake)
			}
		})
	}
}
