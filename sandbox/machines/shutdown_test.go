package machines

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/sandbox/kwok"
)

func shuttingDown(powered bool) ec2.Instance {
	in := instance(ec2.ShuttingDown, powered)
	in.ShutdownTime = now
	return in
}

func TestShutdownCompletesBeforePowerOff(t *testing.T) {
	for _, tc := range []struct {
		name     string
		instance ec2.Instance
		nodes    []*corev1.Node
		want     act
	}{
		{"its kubelet runs", shuttingDown(true), []*corev1.Node{node(true, corev1.ConditionTrue)}, down},
		{"its kubelet is NotReady", shuttingDown(true), []*corev1.Node{node(true, corev1.ConditionFalse)}, down},
		{"its gate is closed, and its kubelet still runs", shuttingDown(false), []*corev1.Node{node(true, corev1.ConditionTrue)}, down},
		{"it is booting", shuttingDown(true), nil, halted},
		{"its kubelet has not started", shuttingDown(false), nil, halted},
		{"its operating system is not asked", instance(ec2.ShuttingDown, false), []*corev1.Node{node(true, corev1.ConditionTrue)}, cut},
	} {
		t.Run(tc.name, func(t *testing.T) {
			steps, _ := plan(view{Now: now, BootDelay: twoSeconds, Instances: []ec2.Instance{tc.instance}, Nodes: tc.nodes, Boot: NewSimulated(nil).Boot})
			if len(steps) != 1 || steps[0].Act != tc.want {
				t.Errorf("got %v, want %s", steps, tc.want)
			}
		})
	}
}

// TestCriticalPodsStopLast: each pod has its own grace period, or the configured one of its group. The
// machine halts when all have stopped.
func TestCriticalPodsStopLast(t *testing.T) {
	pod := func(name string, grace int64, critical bool) *corev1.Pod {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       corev1.PodSpec{NodeName: node(true, "").Name, TerminationGracePeriodSeconds: &grace},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning},
		}
		if critical {
			priority := int32(2_000_001_000)
			p.Spec.Priority = &priority
		}
		return p
	}
	n := node(true, corev1.ConditionTrue)
	client := fake.NewClientset(n, pod("web", 30, false), pod("slow", 600, false), pod("proxy", 60, true))
	hardware := NewSimulated(client)
	m := Machine{Instance: shuttingDown(true), Node: n}
	m.ShutdownTime = time.Now()
	look := func() (graces map[string]string, done bool) {
		t.Helper()
		done, err := hardware.Shutdown(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		pods, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		graces = map[string]string{}
		for _, p := range pods.Items {
			if grace, asked := kwok.ShutsDown(&p); asked {
				graces[p.Name] = grace.String()
			}
		}
		return graces, done
	}
	end := func(names ...string) {
		t.Helper()
		for _, name := range names {
			p, err := client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			p.Status.Phase = corev1.PodFailed
			if _, err := client.CoreV1().Pods("default").UpdateStatus(t.Context(), p, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, step := range []struct {
		name string
		do   func()
		want map[string]string
		done bool
	}{
		{"ordinary ones first", func() {}, map[string]string{"web": "30s", "slow": "2m0s"}, false},
		{"one ordinary pod still runs", func() { end("web") }, map[string]string{"web": "30s", "slow": "2m0s"}, false},
		{"then critical ones", func() { end("slow") }, map[string]string{"web": "30s", "slow": "2m0s", "proxy": "30s"}, false},
		{"all have stopped", func() { end("proxy") }, map[string]string{"web": "30s", "slow": "2m0s", "proxy": "30s"}, true},
	} {
		step.do()
		graces, done := look()
		if diff := cmp.Diff(step.want, graces); diff != "" || done != step.done {
			t.Errorf("%s: done %t (-want +got)\n%s", step.name, done, diff)
		}
	}
	at, err := client.CoreV1().Nodes().Get(t.Context(), n.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if nodeReady(at) || at.Annotations[kwok.ShutdownAnnotation] == "" {
		t.Errorf("the Node does not show the shutdown: %v %v", at.Annotations, at.Status.Conditions)
	}
}

// A machine whose pods do not stop halts when the kubelet's time is over.
func TestMachineHaltsAtShutdownTimeout(t *testing.T) {
	n := node(true, corev1.ConditionFalse)
	stuck := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "stuck"}, Spec: corev1.PodSpec{NodeName: n.Name}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	hardware := NewSimulated(fake.NewClientset(n, stuck))
	m := Machine{Instance: shuttingDown(true), Node: n}
	for age, want := range map[time.Duration]bool{time.Minute: false, 121 * time.Second: true} {
		m.ShutdownTime = time.Now().Add(-age)
		if done, err := hardware.Shutdown(t.Context(), m); done != want || err != nil {
			t.Errorf("after %s: %t, %v", age, done, err)
		}
	}
}
