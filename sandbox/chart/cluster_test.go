//go:build e2e

package chart_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/sandbox/assets"
	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
	"github.com/lifeboat-dev/lifeboat/sandbox/controlplane"
)

// timeout limits every wait, on a quiet machine each takes a moment.
const timeout = time.Minute

// cluster is the control plane of all tests, with the chart installed.
var cluster *rest.Config

func TestMain(m *testing.M) {
	flag.Parse()
	ctrllog.SetLogger(logr.Discard())
	os.Exit(startAndRun(m))
}

func startAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "lifeboat-chart-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute) // the programs may have to be built
	defer cancel()
	paths, err := assets.Ensure(ctx, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	c, err := controlplane.Start(ctx, controlplane.Options{Binary: paths.Kubernetes, Dir: filepath.Join(dir, "cp")})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer c.Kill9()
	cluster = c.RESTConfig()
	if err := install(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "installing the chart:", err)
		return 1
	}
	return m.Run()
}

// installedValues are the values of the chart in the cluster.
func installedValues() map[string]any {
	return map[string]any{
		"image":     map[string]any{"repository": "lifeboatd"},
		"aws":       map[string]any{"queueURL": "https://sqs.eu-west-1.amazonaws.com/123456789012/lifeboat-prod"},
		"hooks":     map[string]any{"namespaces": []any{"kube-public"}},
		"karpenter": map[string]any{"guard": map[string]any{"enabled": true}},
	}
}

// install installs the whole chart.
func install(ctx context.Context) error {
	c, err := newClient(cluster)
	if err != nil {
		return err
	}
	m, err := chart.Render(ctx, chart.Options{Cluster: cluster, Values: installedValues()})
	if err != nil {
		return err
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: chart.Namespace}}
	if err := errors.Join(applyAll(ctx, c, m.CRDs), c.Create(ctx, ns), applyAll(ctx, c, m.Objects)); err != nil {
		return err
	}
	for served := false; !served; time.Sleep(50 * time.Millisecond) {
		err := c.List(ctx, &v1beta1.InterruptionList{})
		if ctx.Err() != nil {
			return err
		}
		served = err == nil
	}
	return nil
}

func applyAll(ctx context.Context, c client.Client, objects []*unstructured.Unstructured, opts ...client.ApplyOption) error {
	opts = append(opts, client.FieldOwner("helm"), client.ForceOwnership)
	for _, o := range objects {
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(o.DeepCopy()), opts...); err != nil {
			return fmt.Errorf("applying %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

func newClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme})
}

func clientOf(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	c, err := newClient(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// admin returns the administrator's client for the shared control plane.
func admin(t *testing.T) client.Client {
	t.Helper()
	return clientOf(t, cluster)
}

// newNode creates a Node without heartbeats.
func newNode(t *testing.T, name string) *corev1.Node {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelOSStable: "linux"}}}
	if err := admin(t).Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, node) })
	return node
}

func remove(t *testing.T, o client.Object) {
	t.Helper()
	if err := clientOf(t, cluster).Delete(context.Background(), o, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
		t.Error(err)
	}
}

// as returns a client with one of the chart's ServiceAccounts. Its token is bound to
// the given object, or to none.
func as(t *testing.T, account string, bound *authenticationv1.BoundObjectReference) *rest.Config {
	t.Helper()
	return asIn(t, chart.Namespace, account, bound)
}

func asIn(t *testing.T, namespace, account string, bound *authenticationv1.BoundObjectReference) *rest.Config {
	t.Helper()
	clients, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		t.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: bound}}
	token, err := clients.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(cluster)
	config.QPS = -1
	config.BearerToken = token.Status.Token
	return config
}

// agentOn returns the client of a node's agent.
func agentOn(t *testing.T, node *corev1.Node) *rest.Config {
	t.Helper()
	return as(t, chart.AgentAccount, &authenticationv1.BoundObjectReference{
		APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID,
	})
}

func until(t *testing.T, what string, ok func() (bool, error)) {
	t.Helper()
	var last error
	for limit := time.Now().Add(timeout); ; time.Sleep(50 * time.Millisecond) {
		done, err := ok()
		if done {
			return
		}
		last = err
		if time.Now().After(limit) {
			t.Fatalf("waited %s for %s; last: %v", timeout, what, last)
		}
	}
}
