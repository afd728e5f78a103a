//go:build e2e

package sandbox_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/sandbox"
)

// TestChartIdentities checks that the programs use the chart's ServiceAccounts, and that the agent's
// token is bound to its node.
func TestChartIdentities(t *testing.T) {
	sb, err := sandbox.New(sandbox.Options{Dir: filepath.Join(t.TempDir(), "sb"), NoLifeboat: true})
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
	admin, err := kubernetes.NewForConfig(sb.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sb.AgentKubeconfig(t.Context(), "node-a"); !apierrors.IsNotFound(err) {
		t.Errorf("the agent of a node that does not exist: %v, want NotFound", err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a"}}
	if node, err = admin.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	controller, err := sb.ControllerKubeconfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	agent, err := sb.AgentKubeconfig(t.Context(), "node-a")
	if err != nil {
		t.Fatal(err)
	}
	checkIdentities(t, controller, agent)
	checkTied(t, agent, node.UID)

	sb.StopAPIServer()
	if err := sb.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkIdentities(t, controller, agent) // they survive an outage, as a node's and a pod's do
}

func checkIdentities(t *testing.T, controller, agent string) {
	t.Helper()
	const account = "system:serviceaccount:lifeboat-system:"
	if who := whoIs(t, controller); who.Username != account+"lifeboat-controller" {
		t.Errorf("the controller is %s", who.Username)
	}
	who := whoIs(t, agent)
	if node := who.Extra["authentication.kubernetes.io/node-name"]; who.Username != account+"lifeboat-agent" || len(node) != 1 || node[0] != "node-a" {
		t.Errorf("the agent is %s on %v, want lifeboat-agent on node-a", who.Username, node)
	}
}

func whoIs(t *testing.T, kubeconfig string) authenticationv1.UserInfo {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	review, err := clients.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.UserInfo
}

// checkTied checks that the policy is active as soon as the agent runs.
func checkTied(t *testing.T, agent string, uid types.UID) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", agent)
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	create := func(ctx context.Context, node string) error {
		return c.Create(ctx, &v1beta1.NodeNotice{
			ObjectMeta: metav1.ObjectMeta{Name: node},
			Spec:       v1beta1.NodeNoticeSpec{InstanceID: "i-0000000000000001", NodeUID: string(uid)},
		}, client.DryRunAll)
	}
	if err := create(t.Context(), "node-b"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "of that node only") {
		t.Errorf("of another node: %v, want Forbidden", err)
	}
	if err := create(t.Context(), "node-a"); err != nil {
		t.Errorf("of its own node: %v", err)
	}
}
