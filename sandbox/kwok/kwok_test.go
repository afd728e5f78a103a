//go:build e2e

package kwok_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/lifeboat-dev/lifeboat/sandbox/assets"
	"github.com/lifeboat-dev/lifeboat/sandbox/controlplane"
	"github.com/lifeboat-dev/lifeboat/sandbox/kwok"
	"github.com/lifeboat-dev/lifeboat/sandbox/process"
)

// patience limits every wait.
const patience = 60 * time.Second

// slack is the allowed delay: a second for kwok's rounding, and the rest for a loaded machine.
const slack = 8 * time.Second

// cluster is a control plane with kwok.
type cluster struct {
	plane  *controlplane.ControlPlane
	kwok   *process.Process
	opts   kwok.Options
	client *kubernetes.Clientset
}

// shared is used by the tests that do not break it.
var shared *cluster

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests mostly wait; by default only two would run in parallel on two cores.
	if err := flag.Set("test.parallel", "20"); err != nil {
		panic(err)
	}
	code, err := runWithCluster(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runWithCluster(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "kwok-test-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	shared, err = startCluster(context.Background(), dir)
	if err != nil {
		return 1, err
	}
	defer shared.stop()
	return m.Run(), nil
}

func startCluster(ctx context.Context, dir string) (*cluster, error) {
	paths, err := assets.Ensure(ctx, os.Stderr)
	if err != nil {
		return nil, err
	}
	plane, err := controlplane.Start(ctx, controlplane.Options{
		Binary: paths.Kubernetes, Dir: filepath.Join(dir, "control-plane"), NodeMonitorGracePeriod: 8 * time.Second,
	})
	if err != nil {
		return nil, err
	}
	c := &cluster{plane: plane, opts: kwok.Options{
		Binary: paths.Kwok, Kubeconfig: plane.Kubeconfig(), Dir: dir, KubeletVersion: paths.KubernetesVersion,
	}}
	if c.client, err = kubernetes.NewForConfig(plane.RESTConfig()); err != nil {
		return c, err
	}
	if err := plane.WaitDefaultServiceAccount(ctx, "default"); err != nil {
		return c, err
	}
	c.kwok, err = kwok.Start(ctx, c.opts)
	return c, err
}

func (c *cluster) stop() {
	if c.kwok != nil {
		c.kwok.Kill9()
	}
	c.plane.Kill9() // its data is deleted anyway
}

// node creates a simulated Node and waits until it is Ready.
func (c *cluster) node(t *testing.T, name string) {
	t.Helper()
	_, err := c.client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{kwok.ManagedLabel: kwok.ManagedValue, corev1.LabelHostname: name},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.waitNode(t, name, corev1.ConditionTrue)
}

func (c *cluster) waitNode(t *testing.T, name string, ready corev1.ConditionStatus) {
	t.Helper()
	waitFor(t, fmt.Sprintf("node %s to be Ready=%s", name, ready), func() bool {
		n, err := c.client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, cond := range n.Status.Conditions {
			if cond.Type == corev1.NodeReady {
				return cond.Status == ready
			}
		}
		return false
	})
}

// pod has the fields that differ between the tests' pods.
type pod struct {
	node        string
	name        string
	annotations map[string]string
	preStop     *corev1.LifecycleHandler
	grace       int64
	finalizers  []string
}

func (c *cluster) create(t *testing.T, p pod) {
	t.Helper()
	container := corev1.Container{Name: "main", Image: "simulated"}
	if p.preStop != nil {
		container.Lifecycle = &corev1.Lifecycle{PreStop: p.preStop}
	}
	_, err := c.client.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: p.name, Annotations: p.annotations, Finalizers: p.finalizers},
		Spec: corev1.PodSpec{
			// The scheduler binds the pod, as usual; only one node matches.
			NodeSelector:                  map[string]string{corev1.LabelHostname: p.node},
			Containers:                    []corev1.Container{container},
			TerminationGracePeriodSeconds: &p.grace,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// running makes a pod and waits until it is Running and Ready.
func (c *cluster) running(t *testing.T, p pod) {
	t.Helper()
	c.create(t, p)
	waitFor(t, "pod "+p.name+" to be Ready", func() bool { return isReady(c.get(t, p.name)) })
}

func (c *cluster) get(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	p, err := c.client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func isReady(p *corev1.Pod) bool {
	for _, cond := range p.Status.Conditions {
		if cond.Type == corev1.PodReady {
			return cond.Status == corev1.ConditionTrue && p.Status.Phase == corev1.PodRunning && p.Status.PodIP != ""
		}
	}
	return false
}

// end is how a pod ended.
type end struct {
	took  time.Duration // since follow was called
	phase corev1.PodPhase
	exit  int32
}

// follow begins to watch a pod; the function it returns waits until the pod is gone.
func (c *cluster) follow(t *testing.T, name string) func() end {
	t.Helper()
	w, err := c.client.CoreV1().Pods("default").Watch(t.Context(), metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String(),
	})
	if err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	return func() end {
		t.Helper()
		defer w.Stop()
		timeout := time.After(patience)
		for {
			select {
			case <-timeout:
				t.Fatalf("pod %s is still there after %s", name, patience)
			case e, ok := <-w.ResultChan():
				if !ok {
					t.Fatalf("the watch on pod %s ended", name)
				}
				if e.Type != watch.Deleted {
					continue
				}
				p, isPod := e.Object.(*corev1.Pod)
				if !isPod {
					t.Fatalf("the watch on pod %s gave a %T", name, e.Object)
				}
				result := end{took: time.Since(started), phase: p.Status.Phase, exit: -1}
				for _, s := range p.Status.ContainerStatuses {
					if s.State.Terminated != nil {
						result.exit = s.State.Terminated.ExitCode
					}
				}
				return result
			}
		}
	}
}

func (c *cluster) delete(t *testing.T, name string, opts metav1.DeleteOptions) {
	t.Helper()
	if err := c.client.CoreV1().Pods("default").Delete(t.Context(), name, opts); err != nil {
		t.Fatal(err)
	}
}

// powerOff takes the label off a node.
func (c *cluster) powerOff(t *testing.T, node string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, kwok.ManagedLabel)
	if _, err := c.client.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s for %s", patience, what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
