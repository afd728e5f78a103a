//go:build e2e

package controlplane_test

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lifeboat-dev/lifeboat/sandbox/assets"
	"github.com/lifeboat-dev/lifeboat/sandbox/controlplane"
)

// patience limits every wait.
const patience = 60 * time.Second

var paths assets.Paths

func TestMain(m *testing.M) {
	flag.Parse()
	var err error
	if paths, err = assets.Ensure(context.Background(), os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func start(t *testing.T, opts controlplane.Options) *controlplane.ControlPlane {
	t.Helper()
	opts.Binary = paths.Kubernetes
	if opts.Dir == "" {
		opts.Dir = t.TempDir()
	}
	begun := time.Now()
	c, err := controlplane.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("ready after %s", time.Since(begun).Round(time.Millisecond))
	t.Cleanup(c.Kill9)
	return c
}

func clientOf(t *testing.T, kubeconfig string) *kubernetes.Clientset {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
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

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestVersionMatchesBuild(t *testing.T) {
	c := start(t, controlplane.Options{})
	v, err := clientOf(t, c.Kubeconfig()).Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if v.GitVersion != paths.KubernetesVersion || v.Major != "1" || v.Minor == "" {
		t.Errorf("the server has version %s (%s.%s), want %s", v.GitVersion, v.Major, v.Minor, paths.KubernetesVersion)
	}
}

func TestDataSurvivesKillAndStop(t *testing.T) {
	c := start(t, controlplane.Options{})
	client := clientOf(t, c.Kubeconfig())
	url, pid := c.URL(), c.PID()
	maps := client.CoreV1().ConfigMaps("default")
	for i, end := range []func(){c.Kill9, func() {
		if err := c.Stop(); err != nil {
			t.Errorf("stopping: %v", err)
		}
	}} {
		name := fmt.Sprintf("written-%d", i)
		if _, err := maps.Create(t.Context(), configMap(name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		end() // immediately, with no time to flush
		<-c.Done()
		if err := c.Err(); err != nil {
			t.Errorf("a requested end is an error: %v", err)
		}
		begun := time.Now()
		if err := c.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Logf("restarted in %s", time.Since(begun).Round(time.Millisecond))
		if c.URL() != url || c.PID() == pid {
			t.Errorf("it is process %d at %s, want a new one at %s", c.PID(), c.URL(), url)
		}
		// The same client, with its old connections.
		waitFor(t, name+" to be read again", func() bool {
			_, err := maps.Get(t.Context(), name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				t.Fatalf("%s is lost", name)
			}
			return err == nil
		})
	}
}

func TestTwoControlPlanesAreIndependent(t *testing.T) {
	a, b := start(t, controlplane.Options{}), start(t, controlplane.Options{})
	inA, inB := clientOf(t, a.Kubeconfig()), clientOf(t, b.Kubeconfig())
	if _, err := inA.CoreV1().ConfigMaps("default").Create(t.Context(), configMap("only-in-a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := inB.CoreV1().ConfigMaps("default").Get(t.Context(), "only-in-a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the other's object: got error %v, want not found", err)
	}
	// A kubeconfig of one control plane is invalid for the other.
	config := a.RESTConfig()
	config.Host, config.CAData = b.URL(), b.RESTConfig().CAData
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("the administrator of one has access to the other")
	}
}

func TestRBACIsEnforced(t *testing.T) {
	c := start(t, controlplane.Options{})
	kubeconfig, err := c.UserKubeconfig("lifeboat:controller", "lifeboat:system")
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(kubeconfig) != filepath.Dir(c.Kubeconfig()) || strings.Contains(kubeconfig, ":") {
		t.Errorf("the kubeconfig is %s, want it beside the administrator's and without a colon", kubeconfig)
	}
	user, admin := clientOf(t, kubeconfig), clientOf(t, c.Kubeconfig())
	if _, err := user.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Fatalf("listing nodes without a role: got error %v, want forbidden", err)
	}
	for _, err := range []error{
		createRole(t, admin),
		createBinding(t, admin, rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "lifeboat:system"}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, "the group's role to count", func() bool {
		_, err := user.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
	if _, err := user.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing secrets: got error %v, want forbidden", err)
	}
}

func createRole(t *testing.T, admin *kubernetes.Clientset) error {
	_, err := admin.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "nodes"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}}},
	}, metav1.CreateOptions{})
	return err
}

func createBinding(t *testing.T, admin *kubernetes.Clientset, subject rbacv1.Subject) error {
	_, err := admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "nodes"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "nodes"},
		Subjects:   []rbacv1.Subject{subject},
	}, metav1.CreateOptions{})
	return err
}

// Controller manager and scheduler run: the pod of a Deployment is created and bound to a node.
func TestControllersWork(t *testing.T) {
	c := start(t, controlplane.Options{NodeMonitorGracePeriod: 10 * time.Minute})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	begun := time.Now()
	if err := c.WaitDefaultServiceAccount(ctx, "default"); err != nil {
		t.Fatal(err)
	}
	t.Logf("default service account after %s more", time.Since(begun).Round(time.Millisecond))
	client := clientOf(t, c.Kubeconfig())
	if err := createNode(t, client); err != nil {
		t.Fatal(err)
	}
	_, err := client.CoreV1().Pods("default").Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the pod to be bound", func() bool {
		p, err := client.CoreV1().Pods("default").Get(ctx, "pod", metav1.GetOptions{})
		return err == nil && p.Spec.NodeName == "node"
	})
}

// createNode creates a Node that is Ready and stays so for a while.
func createNode(t *testing.T, client *kubernetes.Clientset) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	if _, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		return err
	}
	now := time.Now().UTC().Format(time.RFC3339)
	status := fmt.Sprintf(`{"status":{"capacity":{"pods":"9"},"allocatable":{"pods":"9"},"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":%q,"lastTransitionTime":%q}]}}`, now, now)
	_, err := client.CoreV1().Nodes().PatchStatus(t.Context(), "node", []byte(status))
	return err
}

func TestFailedStartReportsCause(t *testing.T) {
	_, err := controlplane.Start(t.Context(), controlplane.Options{
		Binary: paths.Kubernetes, Dir: t.TempDir(), APIServerArgs: []string{"--no-such-flag=1"},
	})
	if err == nil || !strings.Contains(err.Error(), "the control plane ended: exit status 1") || !strings.Contains(err.Error(), "unknown flag: --no-such-flag") {
		t.Errorf("got error %v, want the end of its log", err)
	}
}

func TestCancelledStartLeavesNoProcess(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	dir := t.TempDir()
	_, err := controlplane.Start(ctx, controlplane.Options{Binary: paths.Kubernetes, Dir: dir})
	if err == nil {
		t.Fatal("it was ready in 200 ms, which no API server is")
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "admin.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(config.Host, "https://"))
	if err == nil {
		conn.Close()
		t.Error("something still listens on its port")
	}
}

func TestDirectoryIsReused(t *testing.T) {
	dir := t.TempDir()
	first := start(t, controlplane.Options{Dir: dir})
	if _, err := clientOf(t, first.Kubeconfig()).CoreV1().ConfigMaps("default").Create(t.Context(), configMap("kept"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Logf("stopped in %s", time.Since(begun).Round(time.Millisecond))
	second := start(t, controlplane.Options{Dir: dir})
	if _, err := clientOf(t, second.Kubeconfig()).CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}
