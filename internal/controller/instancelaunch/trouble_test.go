package instancelaunch_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	emu "github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
)

func TestStaleAWSState(t *testing.T) {
	inWorld(t, emu.Group{Desired: 3, Hooks: []emu.Hook{launchHook(), terminateHook()}}, func(w *world) {
		w.boot = 5 * time.Second
		w.server.States.AutoScaling.SetConsistency(emu.Consistency{Lag: 8 * time.Second, ActionAfter: 25 * time.Second})
	}, func(w *world) {
		w.until(2*time.Minute, "in service", w.is("3 InService"))
		w.until(time.Minute, "pods are let in", func() bool { return w.taintedNodes() == 0 })
		calls := w.server.Gate.AllCalls("autoscaling")
		if n, _ := w.sweep.Failures("workers"); n != 0 || calls["CompleteLifecycleAction"] > 30 || w.countEvents("Warning") != 0 {
			t.Errorf("%v\n%s", calls, w.history())
		}
	})
}

func TestAWSOutageDuringHook(t *testing.T) {
	inWorld(t, emu.Group{Desired: 2, Hooks: []emu.Hook{launchHook()}}, func(w *world) { w.boot = 30 * time.Second }, func(w *world) {
		w.until(time.Minute, "they wait", w.is("2 Pending:Wait"))
		for _, action := range []string{"DescribeAutoScalingGroups", "DescribeLifecycleHooks", "CompleteLifecycleAction", "RecordLifecycleActionHeartbeat"} {
			w.server.Gate.Fail("autoscaling", action)
		}
		time.Sleep(9 * time.Minute)
		w.server.Gate.LiftAll()
		if took := w.until(time.Minute, "in service", w.is("2 InService")); took > 45*time.Second {
			t.Errorf("took %s after AWS was back", took)
		}
		if n, _ := w.sweep.Failures("workers"); n != 0 {
			t.Error(w.history())
		}
	})
}

func TestDescribePermissionIsRevoked(t *testing.T) {
	inWorld(t, emu.Group{Desired: 1, Hooks: []emu.Hook{launchHook()}}, func(w *world) { w.boot = 2 * time.Minute }, func(w *world) {
		w.until(time.Minute, "it is known to wait", func() bool { return len(w.sweep.Actions("workers")) == 1 })
		w.server.Gate.Deny("autoscaling", "DescribeAutoScalingGroups")
		time.Sleep(25 * time.Minute) // the hook's timeout is ten minutes
		if w.states() != "1 Pending:Wait" || w.server.Gate.Calls("autoscaling", "CompleteLifecycleAction") != 0 {
			t.Errorf("%s, %v", w.states(), w.server.Gate.AllCalls("autoscaling"))
		}
		w.server.Gate.LiftAll()
		w.until(time.Minute, "in service", w.is("1 InService"))
	})
}

func TestPodsInThePool(t *testing.T) {
	group := emu.Group{Hooks: []emu.Hook{launchHook()}, WarmPool: &emu.WarmPool{MinSize: 1, MaxPrepared: new(1), State: emu.WarmedRunning}}
	inWorld(t, group, func(w *world) { w.boot = 10 * time.Minute }, func(w *world) {
		w.until(time.Minute, "it waits", w.is("1 Warmed:Pending:Wait"))
		id := w.members()[0].InstanceID
		for _, a := range w.server.States.AutoScaling.Actions(id) {
			w.must(w.server.States.AutoScaling.Complete(a.Ref, emu.Continue))
		}
		w.until(time.Minute, "it is warm", w.is("1 Warmed:Running"))
		daemon := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "a", Name: "daemon", OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "d", Controller: new(true)}},
		}, Spec: corev1.PodSpec{NodeName: "node-" + id}}
		plain := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "plain"}, Spec: corev1.PodSpec{NodeName: "node-" + id}}
		w.must(w.kube.Create(context.Background(), daemon))
		w.must(w.kube.Create(context.Background(), plain))
		w.until(15*time.Minute, "its kubelet starts", func() bool { return w.nodes() == 1 })
		w.until(time.Minute, "its node is deleted", func() bool { return w.nodes() == 0 })
		if err := w.kube.Get(context.Background(), client.ObjectKeyFromObject(plain), plain); client.IgnoreNotFound(err) != nil || err == nil {
			t.Error("a pod was left on a node that is deleted")
		}
		if err := w.kube.Get(context.Background(), client.ObjectKeyFromObject(daemon), daemon); err != nil {
			t.Errorf("a DaemonSet's pod was evicted: %v", err)
		}
	})
}

func TestHooksOfOtherTools(t *testing.T) {
	other := emu.Hook{Name: "codedeploy", Transition: emu.Launching, Heartbeat: time.Hour}
	inWorld(t, emu.Group{Desired: 1, Hooks: []emu.Hook{launchHook(), other}}, nil, func(w *world) {
		w.until(5*time.Minute, "it is reported who still holds it", func() bool {
			a := w.sweep.Actions("workers")
			return len(a) == 1 && strings.Contains(a[0].Message, "it was answered, and the hook codedeploy still holds it")
		})
		time.Sleep(20 * time.Minute)
		if got := w.server.Gate.Calls("autoscaling", "CompleteLifecycleAction"); got != 2 {
			t.Errorf("%d answers for hooks of others", got)
		}
		for _, a := range w.server.States.AutoScaling.Actions(w.members()[0].InstanceID) {
			w.must(w.server.States.AutoScaling.Complete(a.Ref, emu.Continue))
		}
		w.until(time.Minute, "in service", w.is("1 InService"))
	})
}

var (
	eventIn  = regexp.MustCompile(`s\.emit(?:ForGroup)?\([^"\n]*"([A-Z][A-Za-z]+)"`)
	metricIn = regexp.MustCompile(`Name: "(lifeboat_[a-z_]+)"`)
)

// TestGuideListsEveryMessage checks docs/guides/launches.md against the code.
func TestGuideListsEveryMessage(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../docs/guides/launches.md")
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob("*.go")                      // the patterns are valid
	more, _ := filepath.Glob("../../asg/groupcache/m*.go") // the patterns are valid
	found := 0
	for _, file := range append(files, more...) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, what := range []*regexp.Regexp{eventIn, metricIn} {
			for _, name := range what.FindAllStringSubmatch(string(code), -1) {
				if found++; !strings.Contains(string(guide), "`"+name[1]) {
					t.Errorf("the guide does not say what %s is", name[1])
				}
			}
		}
	}
	if found != 13 {
		t.Errorf("found %d names", found)
	}
}
