//go:build e2e

package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/sandbox/images"
	"github.com/lifeboat-dev/lifeboat/sandbox/instances"
)

const (
	journals = "/journal" // in containers
	hook     = 8 * time.Second
)

// server is a Deployment of one pod on worker nodes, with a preStop hook.
func (w *world) server(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	no, one := false, int32(1)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				NodeSelector: map[string]string{"pool": workerPool},
				Tolerations:  []corev1.Toleration{{Key: "pool", Operator: corev1.TolerationOpExists}},
				Containers: []corev1.Container{{
					Name: "web", Image: images.Workload, ImagePullPolicy: corev1.PullNever, Args: []string{"server"},
					Env: []corev1.EnvVar{
						{Name: "POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
						{Name: "WORKLOAD_JOURNAL", Value: journals + "/$(POD).jsonl"},
					},
					Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{
						Command: []string{images.ProgramPath, "prestop", "--sleep=" + hook.String()},
					}}},
					VolumeMounts: []corev1.VolumeMount{{Name: "journals", MountPath: journals}},
				}},
				AutomountServiceAccountToken: &no,
				Volumes: []corev1.Volume{{Name: "journals", VolumeSource: corev1.VolumeSource{
					HostPath: &corev1.HostPathVolumeSource{Path: instances.SharedDir},
				}}},
			}},
		},
	}
}

// running waits for the Ready pod of a server on another node than that.
func (w *world) running(name, notOn string) corev1.Pod {
	w.t.Helper()
	var found corev1.Pod
	w.until("a Ready pod of "+name, func(ctx context.Context) (bool, error) {
		var list corev1.PodList
		err := w.client.List(ctx, &list, client.InNamespace("default"), client.MatchingLabels{"app": name})
		for i := range list.Items {
			if p := &list.Items[i]; p.DeletionTimestamp.IsZero() && isReady(p) && p.Spec.NodeName != notOn {
				found = *p
				return true, nil
			}
		}
		return false, errors.Join(err, errors.New(placed(list.Items)))
	})
	return found
}

// reclaimWorker reclaims the node of a pod, which must run its preStop hook to the end. The queue and
// the agent on the node must both report it.
func (w *world) reclaimWorker() {
	if err := w.client.Create(w.t.Context(), w.server("web")); err != nil {
		w.t.Fatal(err)
	}
	pod := w.running("web", "")
	node := w.instanceOf(pod.Spec.NodeName)
	if err := w.EC2().Interrupt([]string{node.ID}, ec2.InterruptOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.running("web", pod.Spec.NodeName)
	w.wholeHook(pod.Name)
	w.until("the record to be drained, with notices of queue and agent", func(ctx context.Context) (bool, error) {
		r := &v1beta1.Interruption{}
		if err := w.client.Get(ctx, types.NamespacedName{Name: node.ID}, r); err != nil {
			return false, err
		}
		sources := map[string]bool{}
		for _, n := range r.Spec.Notices {
			sources[n.Source] = true
		}
		drained := r.Status.Phase == v1beta1.PhaseDrained && r.Status.Drain.PodCounts.Moved > 0
		return drained && sources["sqs"] && sources["imds"], fmt.Errorf("it is %s with %+v, from %v", r.Status.Phase, r.Status.Drain, sources)
	})
}

// wholeHook waits for the SIGTERM of a pod, which must come after the end of its hook.
func (w *world) wholeHook(pod string) {
	w.t.Helper()
	var events []string
	w.until("SIGTERM of "+pod, func(context.Context) (bool, error) {
		var err error
		events, err = w.journal(pod)
		return slices.Contains(events, "sigterm"), errors.Join(err, fmt.Errorf("the journal has %q", events))
	})
	if got := strings.Join(events, " "); !strings.HasPrefix(got, "started ready hook-begin hook-end sigterm") {
		w.t.Errorf("the journal of %s is %q", pod, got)
	}
}

// journal reads the events of a pod (modules/workload writes them).
func (w *world) journal(pod string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(w.SharedDir(), pod+".jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var events []string
	for line := range strings.Lines(string(text)) {
		var e struct{ What string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return events, err
		}
		events = append(events, e.What)
	}
	return events, err
}

func (w *world) instanceOf(node string) ec2.Instance {
	w.t.Helper()
	for _, in := range w.instances {
		if in.PrivateDNSName == node {
			return in
		}
	}
	w.t.Fatalf("no instance is node %q", node)
	return ec2.Instance{}
}

// reclaimLeader reclaims the node of the leader, which then evicts itself. It measures the
// time without a leader.
func (w *world) reclaimLeader() {
	w.boot("c3", "")
	w.waitReady("c3")
	old := w.leader()
	var node string
	for _, p := range w.pods("controller") {
		if strings.HasPrefix(old, p.Name) {
			node = p.Spec.NodeName
		}
	}
	in := w.instanceOf(node)
	if err := w.EC2().Interrupt([]string{in.ID}, ec2.InterruptOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.t.Logf("FIGURES leader reclaimed: no replica led for %.1f s", w.gapAfter(old).Seconds())
	w.until("the node of the former leader to be drained, and two controllers to be Ready elsewhere", func(ctx context.Context) (bool, error) {
		r := &v1beta1.Interruption{}
		if err := w.client.Get(ctx, types.NamespacedName{Name: in.ID}, r); err != nil {
			return false, err
		}
		return r.Status.Phase == v1beta1.PhaseDrained && w.controllersReady(node) == 2, fmt.Errorf("it is %s with %+v", r.Status.Phase, r.Status.Drain)
	})
}

// controllersReady counts the Ready controllers on other nodes than that.
func (w *world) controllersReady(but string) int {
	n := 0
	for _, p := range w.pods("controller") {
		if p.DeletionTimestamp.IsZero() && isReady(&p) && p.Spec.NodeName != but {
			n++
		}
	}
	return n
}

// gapAfter waits until another leader than that holds the lease, and returns the time without
// a holder. A leader that stops in order releases its lease, and then has no identity in it.
func (w *world) gapAfter(old string) time.Duration {
	w.t.Helper()
	var lost time.Time
	var gap time.Duration
	w.until("another leader", func(ctx context.Context) (bool, error) {
		lease, holder, err := w.lease(ctx)
		if err != nil {
			return false, err
		}
		if holder == old || holder == "" && lost.IsZero() {
			lost = lease.Spec.RenewTime.Time // a release sets this time too
		} else if holder != "" {
			gap = lease.Spec.AcquireTime.Sub(lost)
			return true, nil
		}
		return false, fmt.Errorf("it is held by %q", holder)
	})
	return gap
}

// drainControllers drains each node with a controller as an administrator does. A controller must be
// Ready all the time.
func (w *world) drainControllers() {
	for range 2 {
		node := w.pods("controller")[0].Spec.NodeName
		least := w.leastReady()
		w.kubectl("drain", node, "--ignore-daemonsets", "--timeout=90s")
		w.until("two controllers to be Ready elsewhere", func(context.Context) (bool, error) {
			return w.controllersReady(node) == 2, errors.New(placed(w.pods("controller")))
		})
		if least() < 1 {
			w.t.Errorf("while %s was drained, no controller was Ready", node)
		}
		w.kubectl("uncordon", node)
	}
}

// leastReady counts the Ready controllers until the function that it returns is called, which
// returns the lowest count.
func (w *world) leastReady() func() int {
	stop, result := make(chan struct{}), make(chan int, 1)
	go func() {
		least := w.controllersReady("")
		for {
			select {
			case <-stop:
				result <- least
				return
			case <-time.After(50 * time.Millisecond):
				least = min(least, w.controllersReady(""))
			}
		}
	}()
	return func() int {
		close(stop)
		return <-result
	}
}
