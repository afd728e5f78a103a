//go:build e2e

package kwok_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/sandbox/kwok"
)

func sleepAction(seconds int64) *corev1.LifecycleHandler {
	return &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: seconds}}
}

func exec(command ...string) *corev1.LifecycleHandler {
	return &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: command}}
}

func TestPodsStopAfterConfiguredTime(t *testing.T) {
	t.Parallel()
	shared.node(t, "stop")
	for _, tc := range []struct {
		pod  pod
		took time.Duration
		end  corev1.PodPhase
		exit int32
	}{
		{pod: pod{name: "no-work", grace: 30}, took: 0, end: corev1.PodSucceeded},
		{pod: pod{name: "sleep-action", grace: 30, preStop: sleepAction(4)}, took: 4 * time.Second, end: corev1.PodSucceeded},
		{pod: pod{name: "sleep-command", grace: 30, preStop: exec("sleep", "4")}, took: 4 * time.Second, end: corev1.PodSucceeded},
		{pod: pod{name: "sleep-in-shell", grace: 30, preStop: exec("/bin/sh", "-c", "touch /tmp/x; sleep 3 && nginx -s quit; sleep 1")}, took: 4 * time.Second, end: corev1.PodSucceeded},
		{pod: pod{name: "other-command", grace: 30, preStop: exec("/bin/no-sleep", "9")}, took: 0, end: corev1.PodSucceeded},
		{pod: pod{name: "slow-exit", grace: 30, annotations: map[string]string{kwok.StopSecondsAnnotation: "3"}}, took: 3 * time.Second, end: corev1.PodSucceeded},
		{pod: pod{name: "both", grace: 30, preStop: sleepAction(2), annotations: map[string]string{kwok.StopSecondsAnnotation: "2"}}, took: 4 * time.Second, end: corev1.PodSucceeded},
		{pod: pod{name: "of-a-job", grace: 30, annotations: map[string]string{kwok.StopSecondsAnnotation: "3", kwok.RunSecondsAnnotation: "600"}}, took: 3 * time.Second, end: corev1.PodFailed, exit: 143},
		{pod: pod{name: "unreadable", grace: 30, annotations: map[string]string{kwok.StopSecondsAnnotation: "long"}}, took: 0, end: corev1.PodSucceeded},
		{pod: pod{name: "as-long-as-grace", grace: 4, preStop: sleepAction(4)}, took: 4 * time.Second, end: corev1.PodSucceeded},
		{pod: pod{name: "longer-than-grace", grace: 3, annotations: map[string]string{kwok.StopSecondsAnnotation: "50"}}, took: 3 * time.Second, end: corev1.PodFailed, exit: 137},
	} {
		t.Run(tc.pod.name, func(t *testing.T) {
			t.Parallel()
			tc.pod.node = "stop"
			shared.running(t, tc.pod)
			gone := shared.follow(t, tc.pod.name)
			shared.delete(t, tc.pod.name, metav1.DeleteOptions{})
			got := gone()
			t.Logf("gone after %s", got.took.Round(time.Millisecond))
			if got.took < tc.took || got.took > tc.took+slack {
				t.Errorf("gone after %s, want %s to %s", got.took, tc.took, tc.took+slack)
			}
			if got.phase != tc.end || got.exit != tc.exit {
				t.Errorf("ended %s with exit code %d, want %s with %d", got.phase, got.exit, tc.end, tc.exit)
			}
		})
	}
}

func TestShorterGraceKillsEarlier(t *testing.T) {
	t.Parallel()
	shared.node(t, "again")
	shared.running(t, pod{node: "again", name: "again", grace: 300, preStop: sleepAction(290)})
	gone := shared.follow(t, "again")
	shared.delete(t, "again", metav1.DeleteOptions{})
	less := int64(3)
	shared.delete(t, "again", metav1.DeleteOptions{GracePeriodSeconds: &less})
	got := gone()
	t.Logf("gone after %s", got.took.Round(time.Millisecond))
	// The API server counts both from the first request.
	if got.took < 2*time.Second || got.took > 3*time.Second+slack {
		t.Errorf("gone after %s, want about 3s", got.took)
	}
	if got.phase != corev1.PodFailed || got.exit != 137 {
		t.Errorf("ended %s with exit code %d, want Failed with 137", got.phase, got.exit)
	}
}

func TestPodsStartAfterConfiguredTime(t *testing.T) {
	t.Parallel()
	shared.node(t, "start")
	begun := time.Now()
	shared.running(t, pod{node: "start", name: "slow-start", annotations: map[string]string{kwok.StartSecondsAnnotation: "4"}})
	if took := time.Since(begun); took < 4*time.Second || took > 4*time.Second+slack {
		t.Errorf("ready after %s, want 4s or a little more", took)
	}
	begun = time.Now()
	shared.running(t, pod{node: "start", name: "quick-start"})
	if took := time.Since(begun); took > slack {
		t.Errorf("ready after %s, want at once", took)
	}
}

func TestUnstartedPodEndsImmediately(t *testing.T) {
	t.Parallel()
	shared.node(t, "early")
	shared.create(t, pod{
		node: "early", name: "early", grace: 300, preStop: sleepAction(200),
		annotations: map[string]string{kwok.StartSecondsAnnotation: "300"},
	})
	waitFor(t, "the pod to be bound", func() bool { return shared.get(t, "early").Spec.NodeName != "" })
	gone := shared.follow(t, "early")
	shared.delete(t, "early", metav1.DeleteOptions{})
	if got := gone(); got.took > slack {
		t.Errorf("gone after %s, want at once", got.took)
	}
}

func TestFinalizersHoldEndedPod(t *testing.T) {
	t.Parallel()
	shared.node(t, "final")
	shared.running(t, pod{node: "final", name: "final", grace: 30, preStop: sleepAction(1), finalizers: []string{"lifeboat.dev/test"}})
	shared.delete(t, "final", metav1.DeleteOptions{})
	waitFor(t, "the pod to have ended", func() bool { return shared.get(t, "final").Status.Phase == corev1.PodSucceeded })
	gone := shared.follow(t, "final")
	_, err := shared.client.CoreV1().Pods("default").Patch(t.Context(), "final", types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	gone()
}

// After a power cut there is no heartbeat, and pods neither start nor stop, even if they had begun to.
func TestPoweredOffNodeDoesNothing(t *testing.T) {
	t.Parallel()
	shared.node(t, "powered-off")
	shared.running(t, pod{node: "powered-off", name: "stopping", grace: 60, preStop: sleepAction(2)})
	shared.running(t, pod{node: "powered-off", name: "serving", grace: 60})
	shared.create(t, pod{node: "powered-off", name: "starting", annotations: map[string]string{kwok.StartSecondsAnnotation: "2"}})
	waitFor(t, "the pod to be bound", func() bool { return shared.get(t, "starting").Spec.NodeName != "" })
	shared.delete(t, "stopping", metav1.DeleteOptions{})
	shared.powerOff(t, "powered-off")

	renewed := func() time.Time {
		l, err := shared.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), "powered-off", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return l.Spec.RenewTime.Time
	}
	cut := time.Now()
	shared.waitNode(t, "powered-off", corev1.ConditionUnknown) // 8 s later, by when both pods' times are over
	t.Logf("NotReady after %s", time.Since(cut).Round(time.Millisecond))
	if last := renewed(); last.After(cut.Add(time.Second)) {
		t.Errorf("the Lease was renewed %s after the power cut", last.Sub(cut))
	}
	if p := shared.get(t, "stopping"); p.Status.Phase != corev1.PodRunning {
		t.Errorf("the pod that was stopping is %s, want it left Running", p.Status.Phase)
	}
	if p := shared.get(t, "starting"); p.Status.Phase != corev1.PodPending {
		t.Errorf("the pod that was starting is %s, want it left Pending", p.Status.Phase)
	}
	shared.delete(t, "serving", metav1.DeleteOptions{})
	// A node with power shows that kwok had enough time to process both deletions.
	shared.node(t, "light")
	shared.running(t, pod{node: "light", name: "reference", grace: 30, preStop: sleepAction(1)})
	gone := shared.follow(t, "reference")
	shared.delete(t, "reference", metav1.DeleteOptions{})
	gone()
	if p := shared.get(t, "serving"); p.DeletionTimestamp == nil {
		t.Error("the pod that was serving is not being deleted")
	}
}

// kwok and the API server are killed while a pod is stopping, and started again.
func TestStopSurvivesCrash(t *testing.T) {
	t.Parallel()
	c, err := startCluster(t.Context(), t.TempDir())
	if c != nil {
		t.Cleanup(func() { c.stop() })
	}
	if err != nil {
		t.Fatal(err)
	}
	c.node(t, "crash")
	c.running(t, pod{node: "crash", name: "crash", grace: 60, preStop: sleepAction(15)})
	begun := time.Now()
	c.delete(t, "crash", metav1.DeleteOptions{})
	c.kwok.Kill9()
	c.plane.Kill9()
	if err := c.plane.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, err := kwok.Holders(t.Context(), c.client)
	if err != nil || before["crash"] == "" {
		t.Fatalf("nodes are held by %v, error %v", before, err)
	}
	if c.kwok, err = kwok.Start(t.Context(), c.opts); err != nil {
		t.Fatal(err)
	}
	gone := c.follow(t, "crash")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := kwok.Resync(ctx, c.client, before); err != nil {
		t.Fatal(err)
	}
	got := gone()
	if took := time.Since(begun); took < 15*time.Second || took > 15*time.Second+slack {
		t.Errorf("gone after %s, want 15s or a little more", took)
	}
	if got.phase != corev1.PodSucceeded {
		t.Errorf("ended %s, want Succeeded", got.phase)
	}
	c.waitNode(t, "crash", corev1.ConditionTrue)
}

// As the pods of Jobs do.
func TestPodsRunToCompletion(t *testing.T) {
	t.Parallel()
	shared.node(t, "finish")
	for _, tc := range []struct {
		name        string
		annotations map[string]string
		end         corev1.PodPhase
		exit        int32
	}{
		{"well", map[string]string{kwok.RunSecondsAnnotation: "2"}, corev1.PodSucceeded, 0},
		{"badly", map[string]string{kwok.RunSecondsAnnotation: "2", kwok.ExitCodeAnnotation: "3"}, corev1.PodFailed, 3},
		{"never", map[string]string{kwok.RunSecondsAnnotation: "soon"}, corev1.PodRunning, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			name := "finishes-" + tc.name
			begun := time.Now()
			shared.running(t, pod{node: "finish", name: name, annotations: tc.annotations})
			if tc.end == corev1.PodRunning {
				// Another pod that finishes shows that kwok had enough time.
				shared.running(t, pod{node: "finish", name: "finishes-too", annotations: map[string]string{kwok.RunSecondsAnnotation: "1"}})
				waitFor(t, "the other pod to finish", func() bool { return shared.get(t, "finishes-too").Status.Phase == corev1.PodSucceeded })
			} else {
				waitFor(t, "the pod to finish", func() bool { return shared.get(t, name).Status.Phase != corev1.PodRunning })
				if took := time.Since(begun); took < 2*time.Second || took > 2*time.Second+slack {
					t.Errorf("finished after %s, want 2s or a little more", took)
				}
			}
			got := shared.get(t, name)
			if got.Status.Phase != tc.end {
				t.Fatalf("the pod is %s, want %s", got.Status.Phase, tc.end)
			}
			if ended := got.Status.ContainerStatuses[0].State.Terminated; tc.end != corev1.PodRunning && (ended == nil || ended.ExitCode != tc.exit) {
				t.Errorf("its container: %+v, want exit code %d", ended, tc.exit)
			}
		})
	}
}
