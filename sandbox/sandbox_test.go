//go:build e2e

package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/kwok"
)

// superviseName makes the test program run as `lifeboat sandbox supervise`; superviseReal makes its
// instances real.
const (
	superviseName = "LIFEBOAT_TEST_SUPERVISE"
	superviseReal = "LIFEBOAT_TEST_SUPERVISE_REAL"
)

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	if name := os.Getenv(superviseName); name != "" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		err := sandbox.Supervise(ctx, sandbox.Options{
			Name: name, NoLifeboat: true, RealNodes: os.Getenv(superviseReal) != "",
		})
		stop()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// start starts a sandbox in the background, in the test's own directory.
func start(t *testing.T, name string) (sandbox.State, error) {
	t.Helper()
	t.Setenv(superviseName, name)
	st, err := sandbox.Start(t.Context(), sandbox.Options{Name: name, Progress: func(s sandbox.Step) {
		if s.Done {
			t.Logf("%s: %s (%s)", s.Name, s.Detail, s.Took)
		}
	}}, []string{os.Args[0]})
	t.Cleanup(func() {
		err := sandbox.Stop(context.Background(), name, nil)
		if err != nil && !errors.Is(err, sandbox.ErrNotRunning) {
			t.Error(err)
		}
	})
	return st, err
}

// until waits up to a minute for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

// ended reports whether no process of a sandbox is left. Children of a killed
// supervisor may stay as zombies until something waits for them. The test
// itself, the supervisor of sandboxes in this process, does not count.
func ended(st sandbox.State) bool {
	pids := []int{st.Supervisor}
	for _, p := range st.Parts {
		pids = append(pids, p.PID)
	}
	for _, pid := range pids {
		if pid == os.Getpid() {
			continue
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			if syscall.Kill(pid, 0) == nil {
				return false // this system has no /proc
			}
			continue
		}
		if _, after, _ := strings.Cut(string(stat), ") "); !strings.HasPrefix(after, "Z") {
			return false
		}
	}
	return true
}

func listening(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return false
	}
	conn, err := net.DialTimeout("tcp", u.Host, time.Second)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// checkGone checks that the sandbox left no processes, ports or files.
func checkGone(t *testing.T, st sandbox.State, home string) {
	t.Helper()
	until(t, "its processes to end", func() bool { return ended(st) })
	for _, p := range st.Parts { // a killed process ends shortly before its sockets close
		until(t, p.Name+" to stop listening on "+p.Address, func() bool { return !listening(p.Address) })
	}
	entries, err := os.ReadDir(home)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("%s is left behind", e.Name())
	}
}

func TestUpInBackgroundAndDown(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_STATE_HOME", home)
	st, err := start(t, "one")
	if err != nil {
		t.Fatal(err)
	}
	status, err := sandbox.Inspect("one")
	if err != nil || !status.Running || !status.Ready {
		t.Fatalf("status %+v, %v", status, err)
	}
	for _, p := range status.Health {
		if !p.Alive {
			t.Errorf("%s is not alive", p.Name)
		}
	}
	checkUsable(t, st)
	if _, err := start(t, "one"); !errors.Is(err, sandbox.ErrRunning) {
		t.Errorf("starting it again: %v, want ErrRunning", err)
	}
	other, err := start(t, "two")
	if err != nil {
		t.Fatalf("a second sandbox: %v", err)
	}
	if all, err := sandbox.List(); err != nil || len(all) != 2 {
		t.Errorf("listed %d, %v: want 2", len(all), err)
	}
	for _, name := range []string{"two", "one"} {
		if err := sandbox.Stop(t.Context(), name, nil); err != nil {
			t.Error(err)
		}
	}
	checkGone(t, st, home)
	checkGone(t, other, home)
	if err := sandbox.Stop(t.Context(), "one", nil); !errors.Is(err, sandbox.ErrNotRunning) {
		t.Errorf("stopping it again: %v, want ErrNotRunning", err)
	}
}

// checkUsable checks that a sandbox's state is enough to use it.
func checkUsable(t *testing.T, st sandbox.State) {
	t.Helper()
	env := map[string]string{}
	for _, v := range st.Env() {
		env[v.Name] = v.Value
	}
	config, err := clientcmd.BuildConfigFromFlags("", env["KUBECONFIG"])
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("listing nodes: %v", err)
	}
	if !listening(env["AWS_ENDPOINT_URL"]) {
		t.Errorf("no listener on %s", env["AWS_ENDPOINT_URL"])
	}
}

func TestKilledSupervisorLeavesNothing(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_STATE_HOME", home)
	st, err := start(t, "killed")
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(st.Supervisor, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, "its children to end with it", func() bool { return ended(st) })
	// Its lock is released with its last thread, which may end slightly after the first.
	until(t, "the killed one to count as one that does not run", func() bool {
		status, err := sandbox.Inspect("killed")
		return err == nil && !status.Running
	})
	if err := sandbox.Stop(t.Context(), "killed", nil); err != nil {
		t.Error(err)
	}
	checkGone(t, st, home)
}

func TestCancelledUpLeavesNothing(t *testing.T) {
	for _, at := range []string{"programs", "control plane", "AWS emulator", "machines", "wiring", "karpenter"} {
		t.Run(at, func(t *testing.T) {
			home := t.TempDir()
			ctx, cancel := context.WithCancelCause(t.Context())
			ctrlC := errors.New("interrupted")
			sb, err := sandbox.New(sandbox.Options{Dir: filepath.Join(home, "sb"), NoLifeboat: true, Karpenter: true, Progress: func(s sandbox.Step) {
				if s.Name == at {
					cancel(ctrlC)
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			if err := sb.Up(ctx); !errors.Is(err, ctrlC) {
				t.Errorf("Up() = %v, want it to be about the interruption", err)
			}
			checkGone(t, sb.State(), home)
		})
	}
}

// TestKubernetesDetectsPoweredOffMachine checks an assumption of the scenarios. The real controller
// marks a node without power NotReady. Its pods do not end, and its Node is deleted only after
// that.
func TestKubernetesDetectsPoweredOffMachine(t *testing.T) {
	sb, err := sandbox.New(sandbox.Options{Dir: filepath.Join(t.TempDir(), "sb"), NoLifeboat: true, BootDelay: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Down(); err != nil {
			t.Error(err)
		}
	})
	if err := sb.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(sb.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	made, err := sb.EC2().Launch(ec2.LaunchInput{ImageID: "ami-1", Min: 1, Max: 1, Spot: &ec2.SpotOptions{}})
	if err != nil {
		t.Fatal(err)
	}
	node := made[0].PrivateDNSName
	until(t, "the node to be Ready", func() bool { return ready(t, client, node) == corev1.ConditionTrue })

	grace := int64(30)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: map[string]string{kwok.StopSecondsAnnotation: "4"}},
		Spec: corev1.PodSpec{
			NodeName: node, TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{Name: "c", Image: "c"}},
		},
	}
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the pod to run", func() bool { return phase(t, client) == corev1.PodRunning })
	if err := client.CoreV1().Pods("default").Delete(t.Context(), "p", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := sb.EC2().Interrupt([]string{made[0].ID}, ec2.InterruptOptions{Notice: time.Second}); err != nil {
		t.Fatal(err)
	}
	until(t, "Kubernetes to mark the node NotReady or to delete it", func() bool { return ready(t, client, node) != corev1.ConditionTrue })
	// Without the power loss, its stop would have completed already.
	if got := phase(t, client); got != corev1.PodRunning {
		t.Errorf("the pod on the machine without power is %s, want Running", got)
	}
	until(t, "the Node to be deleted", func() bool { return ready(t, client, node) == "" })
}

// ready returns the node's Ready status, "" without a node.
func ready(t *testing.T, client kubernetes.Interface, name string) corev1.ConditionStatus {
	t.Helper()
	list, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) == 0 {
		return ""
	}
	for _, c := range list.Items[0].Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status
		}
	}
	return corev1.ConditionUnknown
}

func phase(t *testing.T, client kubernetes.Interface) corev1.PodPhase {
	t.Helper()
	list, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) == 0 {
		return "gone"
	}
	return list.Items[0].Status.Phase
}
