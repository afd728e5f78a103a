//go:build e2e

package console

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/sandbox/assets"
	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
	"github.com/lifeboat-dev/lifeboat/sandbox/controlplane"
)

// viewer may list and watch what the console shows, and nothing else.
const viewer = "viewer"

// auditPolicy records every request of the viewer.
const auditPolicy = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
"rules": [{"level": "Metadata", "users": ["` + viewer + `"]}, {"level": "None"}]}`

// rig is a console on a control plane without controllers of Lifeboat.
type rig struct {
	client client.Client
	audit  string
	url    string
	pid    int
	plane  *controlplane.ControlPlane
}

// shared is the rig of all tests.
var shared rig

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	os.Exit(startAndRun(m))
}

func startAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "lifeboat-console-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute) // the programs may have to be built
	defer cancel()
	plane, err := shared.startPlane(ctx, dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting the control plane:", err)
		return 1
	}
	defer plane.Kill9()
	stop, err := shared.startConsole(ctx, dir, plane)
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting the console:", err)
		return 1
	}
	defer stop()
	return m.Run()
}

// startPlane starts a control plane with Lifeboat's API and the viewer.
func (r *rig) startPlane(ctx context.Context, dir string) (*controlplane.ControlPlane, error) {
	paths, err := assets.Ensure(ctx, os.Stderr)
	if err != nil {
		return nil, err
	}
	r.audit = filepath.Join(dir, "audit.log")
	policy := filepath.Join(dir, "audit.json")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, err
	}
	plane, err := controlplane.Start(ctx, controlplane.Options{
		Binary: paths.Kubernetes, Dir: filepath.Join(dir, "cp"),
		APIServerArgs: []string{"--audit-log-path=" + r.audit, "--audit-policy-file=" + policy},
	})
	if err != nil {
		return nil, err
	}
	r.plane = plane
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		return plane, err
	}
	if r.client, err = client.New(plane.RESTConfig(), client.Options{Scheme: scheme}); err != nil {
		return plane, err
	}
	return plane, r.install(ctx)
}

// install installs the CRDs and the viewer's role.
func (r *rig) install(ctx context.Context) error {
	m, err := chart.Render(ctx, chart.Options{Values: map[string]any{
		"image": map[string]any{"repository": "lifeboatd"},
		"aws":   map[string]any{"queueURL": "https://sqs.eu-west-1.amazonaws.com/123456789012/lifeboat-prod"},
	}})
	if err != nil {
		return err
	}
	for _, crd := range m.CRDs {
		if err := r.client.Create(ctx, crd); err != nil {
			return err
		}
	}
	read := func(group string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"get", "list", "watch"}}
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: viewer}, Rules: []rbacv1.PolicyRule{
		read("lifeboat.dev", "interruptions", "interruptionpolicies", "nodegroups", "pauses"), read("", "nodes", "pods", "persistentvolumeclaims"),
		read("policy", "poddisruptionbudgets"), read("apps", "replicasets", "deployments", "daemonsets"), read("coordination.k8s.io", "leases"),
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: viewer}, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: viewer},
		Subjects: []rbacv1.Subject{{APIGroup: "rbac.authorization.k8s.io", Kind: "User", Name: viewer}},
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "ip-10-0-0-1.ec2.internal"}, Spec: corev1.NodeSpec{ProviderID: "aws:///us-east-1a/i-0a1b2c3d4e5f60718"}}
	if err := errors.Join(r.client.Create(ctx, role), r.client.Create(ctx, binding), r.client.Create(ctx, node)); err != nil {
		return err
	}
	for r.client.List(ctx, &v1beta1.InterruptionList{}) != nil || r.client.List(ctx, &v1beta1.NodeGroupList{}) != nil || r.client.List(ctx, &v1beta1.PauseList{}) != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}

var address = regexp.MustCompile(`http://\S+/`)

// startConsole builds the CLI and starts the console as the viewer.
func (r *rig) startConsole(ctx context.Context, dir string, plane *controlplane.ControlPlane) (stop func(), _ error) {
	kubeconfig, err := plane.UserKubeconfig(viewer)
	if err != nil {
		return nil, err
	}
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/lifeboat-dev/lifeboat").Output()
	if err != nil {
		return nil, fmt.Errorf("finding Lifeboat's sources: %w", err)
	}
	lifeboat := filepath.Join(dir, "lifeboat")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", lifeboat, "./cmd/lifeboat")
	build.Dir, build.Env = string(root[:len(root)-1]), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building lifeboat: %w\n%s", err, out)
	}
	cmd := exec.CommandContext(ctx, lifeboat, "console", "--kubeconfig", kubeconfig, "--port", "0")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r.pid = cmd.Process.Pid
	line, err := bufio.NewReader(out).ReadString('\n')
	r.url = address.FindString(line)
	if r.url == "" {
		err = fmt.Errorf("the console says %q: %w", line, err)
	} else {
		err = nil
	}
	return func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }, err
}

// requests are the verbs of the viewer's requests with their number.
func (r *rig) requests(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.Open(r.audit)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	verbs := map[string]int{}
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct{ Verb string }
		if err := json.Unmarshal(lines.Bytes(), &event); err == nil {
			verbs[event.Verb]++
		}
	}
	return verbs
}
