package replacement

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

func TestPodsFitElsewhere(t *testing.T) {
	t.Parallel()
	tainted := func(key string, effect corev1.TaintEffect) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: key, Effect: effect}} }
	}
	with := func(o Other, pods ...*corev1.Pod) Other { o.Pods = pods; return o }
	anti := func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname}}}}
	}
	spread := func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{WhenUnsatisfiable: corev1.DoNotSchedule}}
	}
	tests := map[string]struct {
		pod   *corev1.Pod
		other Other
		want  bool
	}{
		"an empty node":                           {pod("p", "1"), other("b", "1"), true},
		"a node that is too small":                {pod("p", "1"), other("b", "900m"), false},
		"a node that is full":                     {pod("p", "1"), with(other("b", "1"), pod("q", "1")), false},
		"a node whose pods have finished":         {pod("p", "1"), with(other("b", "1"), pod("q", "1", finished)), true},
		"a node that is not Ready":                {pod("p", "1"), other("b", "1", func(n *corev1.Node) { n.Status.Conditions = nil }), false},
		"a node that is cordoned":                 {pod("p", "1"), other("b", "1", func(n *corev1.Node) { n.Spec.Unschedulable = true }), false},
		"a node that is going":                    {pod("p", "1"), other("b", "1", func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{Time: noon} }), false},
		"a node that is interrupted":              {pod("p", "1"), other("b", "1", tainted(v1beta1.TaintInterrupted, corev1.TaintEffectNoSchedule)), false},
		"a node at risk":                          {pod("p", "1"), other("b", "1", tainted(v1beta1.TaintInterrupted, corev1.TaintEffectPreferNoSchedule)), false},
		"a node that Karpenter ends":              {pod("p", "1"), other("b", "1", tainted(taintDisrupted, corev1.TaintEffectNoSchedule)), false},
		"another node's replacement":              {pod("p", "1"), other("b", "1", func(n *corev1.Node) { n.Labels[v1beta1.LabelReplacesInstance] = "i-2" }), false},
		"a taint that it tolerates":               {pod("p", "1"), other("b", "1", tainted("shop", corev1.TaintEffectNoSchedule)), true},
		"a taint that it does not":                {pod("p", "1"), other("b", "1", tainted("db", corev1.TaintEffectNoSchedule)), false},
		"a taint that only asks":                  {pod("p", "1"), other("b", "1", tainted("db", corev1.TaintEffectPreferNoSchedule)), true},
		"a label that it selects":                 {pod("p", "1", selecting(corev1.LabelTopologyZone, zoneA)), other("b", "1"), true},
		"a label that it selects, and is not":     {pod("p", "1", selecting("disk", "ssd")), other("b", "1"), false},
		"a zone that it requires":                 {pod("p", "1", inTerms(zoneA)), other("b", "1"), true},
		"a zone that it requires, and is not":     {pod("p", "1", inTerms("us-east-1b")), other("b", "1"), false},
		"a pod that keeps others off":             {pod("p", "1", anti), other("b", "1"), false},
		"a node with a pod that keeps others off": {pod("p", "1"), with(other("b", "4"), pod("q", "1", anti)), false},
		"a pod that is spread":                    {pod("p", "1", spread), other("b", "1"), false},
		"a pod with a volume":                     {pod("p", "1", withVolume), other("b", "1"), false},
		"a pod with a port of the host":           {pod("p", "1", func(p *corev1.Pod) { p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}} }), other("b", "1"), false},
		"nothing known of the node":               {pod("p", "1"), Other{}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, got := roomFor([]*corev1.Pod{test.pod}, []Other{test.other}); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func finished(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }

func TestMovablePods(t *testing.T) {
	t.Parallel()
	static := func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }
	leaving := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} }
	got := Movable([]*corev1.Pod{pod("a", "1"), pod("b", "1", ofDaemonSet), pod("c", "1", static), pod("d", "1", finished), pod("e", "1", leaving), nil})
	if len(got) != 1 || got[0].Name != "a" {
		t.Errorf("got %v", got)
	}
}

func TestPodResourceRequests(t *testing.T) {
	t.Parallel()
	always := corev1.ContainerRestartPolicyAlways
	container := func(cpu string) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: resources(cpu, "1Mi")}}
	}
	sidecar := container("200m")
	sidecar.RestartPolicy = &always
	for name, test := range map[string]struct {
		spec corev1.PodSpec
		want string
	}{
		"its containers together":            {corev1.PodSpec{Containers: []corev1.Container{container("1"), container("500m")}}, "1500m"},
		"an init container that wants more":  {corev1.PodSpec{Containers: []corev1.Container{container("1")}, InitContainers: []corev1.Container{container("2")}}, "2"},
		"a sidecar counts with the rest":     {corev1.PodSpec{Containers: []corev1.Container{container("1")}, InitContainers: []corev1.Container{sidecar}}, "1200m"},
		"a sidecar beside what begins later": {corev1.PodSpec{Containers: []corev1.Container{container("1")}, InitContainers: []corev1.Container{sidecar, container("2")}}, "2200m"},
		"its sandbox":                        {corev1.PodSpec{Containers: []corev1.Container{container("1")}, Overhead: resources("100m", "1Mi")}, "1100m"},
		"the pod as a whole": {corev1.PodSpec{Containers: []corev1.Container{container("1")},
			Resources: &corev1.ResourceRequirements{Requests: resources("3", "1Mi")}}, "3"},
		"nothing": {corev1.PodSpec{}, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := requestsOf(&corev1.Pod{Spec: test.spec})
			if got.Cpu().String() != test.want {
				t.Errorf("got %s, want %s", got.Cpu(), test.want)
			}
		})
	}
}

func TestReplacementProgress(t *testing.T) {
	t.Parallel()
	at := metav1.NewMicroTime(noon.Add(-40 * time.Second))
	was := func(phase v1beta1.ReplacementPhase, tries int32, uid string) Status {
		return Status{Phase: phase, Name: "web-lb-0a1b2c3d4e5f60718", Tries: tries, UID: "", OrderTime: &at, StartTime: &at, Message: uid}
	}
	made := func(s Status) Status { s.UID = "our-uid"; return s }
	ordered := v1beta1.ReplacementOrdered
	tests := map[string]struct {
		f    Following
		want v1beta1.ReplacementPhase
		why  string
	}{
		"written down and not made":          {Following{Was: was(ordered, 1, "")}, ordered, ""},
		"made":                               {Following{Was: was(ordered, 1, ""), Claim: our()}, ordered, ReasonOrdered},
		"has its instance":                   {Following{Was: made(was(ordered, 1, "")), Claim: our(launched)}, v1beta1.ReplacementLaunched, ReasonLaunched},
		"is initialized, its node not Ready": {Following{Was: made(was(ordered, 1, "")), Claim: our(initialized)}, v1beta1.ReplacementLaunched, ReasonLaunched},
		"is Ready":                           {Following{Was: made(was(ordered, 1, "")), Claim: our(initialized), NodeReady: true}, v1beta1.ReplacementReady, ReasonReady},
		"was Ready, and its node falters":    {Following{Was: made(was(v1beta1.ReplacementReady, 1, "")), Claim: our(initialized)}, v1beta1.ReplacementReady, ""},
		"vanished":                           {Following{Was: made(was(ordered, 1, ""))}, v1beta1.ReplacementRetrying, ReasonVanished},
		"is being deleted":                   {Following{Was: made(was(ordered, 1, "")), Claim: our(deleting)}, v1beta1.ReplacementRetrying, ReasonVanished},
		"was Ready, and vanished":            {Following{Was: made(was(v1beta1.ReplacementReady, 1, ""))}, v1beta1.ReplacementRetrying, ReasonVanished},
		"vanished for the third time":        {Following{Was: made(was(ordered, 3, ""))}, v1beta1.ReplacementFailed, ReasonNoCapacity},
		"vanished shortly before the end":    {Following{Was: made(was(ordered, 1, "")), Deadline: hard(20 * time.Second)}, v1beta1.ReplacementFailed, ReasonNoCapacity},
		"vanished, soft deadline":            {Following{Was: made(was(ordered, 1, "")), Deadline: &v1beta1.Deadline{Time: metav1.NewTime(noon), Type: v1beta1.DeadlineSoft}}, v1beta1.ReplacementRetrying, ReasonVanished},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := test.f
			f.Now = noon
			got := Follow(f)
			if got.Phase != test.want || got.Reason != test.why {
				t.Errorf("got %+v", got)
			}
			if (got.ReadyTime != nil) != (test.why == ReasonReady) {
				t.Errorf("ready at %v", got.ReadyTime)
			}
		})
	}
}

func TestOrderIsRetried(t *testing.T) {
	t.Parallel()
	at := metav1.NewMicroTime(noon)
	for _, test := range []struct {
		tries    int32
		deadline *v1beta1.Deadline
		want     time.Duration
	}{
		{1, hard(time.Minute), 10 * time.Second}, {2, hard(time.Minute), 30 * time.Second}, {1, nil, 3 * time.Minute}, {2, nil, 3 * time.Minute},
	} {
		if got := RetryAt(&Status{Tries: test.tries, OrderTime: &at}, test.deadline).Sub(noon); got != test.want {
			t.Errorf("after try %d: %s", test.tries, got)
		}
	}
}

func TestPodsWaitForReplacement(t *testing.T) {
	t.Parallel()
	at := metav1.NewMicroTime(noon)
	for phase, test := range map[v1beta1.ReplacementPhase]struct{ hard, soft bool }{
		v1beta1.NoReplacement: {}, v1beta1.ReplacementReady: {},
		v1beta1.ReplacementQueued: {true, true}, v1beta1.ReplacementOrdered: {true, true}, v1beta1.ReplacementLaunched: {true, true},
		v1beta1.ReplacementRetrying: {true, true}, v1beta1.ReplacementFailed: {true, false},
	} {
		s := &Status{Phase: phase, StartTime: &at}
		g, waits := Gate(s, hard(time.Minute))
		if waits != test.hard || !g.Until.IsZero() || waits && g.Why == "" {
			t.Errorf("%s before a hard deadline: %v %+v", phase, waits, g)
		}
		if g, waits = Gate(s, nil); waits != test.soft || waits && !g.Until.Equal(noon.Add(patience)) {
			t.Errorf("%s without a deadline: %v %+v", phase, waits, g)
		}
	}
	if _, waits := Gate(nil, nil); waits {
		t.Error("pods wait for what no one wants")
	}
}
