package sandbox

import (
	"context"
	"fmt"
	"net/url"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/intake/imds"
	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
)

const (
	// tokenLifetime is longer than any sandbox runs: no kubelet here renews tokens.
	tokenLifetime = 10 * 365 * 24 * time.Hour
	// policyTimeout is how long a ValidatingAdmissionPolicy may take to be active; the API server
	// polls for new ones every second.
	policyTimeout = 30 * time.Second
)

// ControllerKubeconfig writes a kubeconfig of the chart's controller and returns its path. It has
// the chart's permissions.
func (s *Sandbox) ControllerKubeconfig(ctx context.Context) (string, error) {
	return s.accountKubeconfig(ctx, chart.ControllerAccount, chart.ControllerAccount, nil)
}

// AgentKubeconfig writes a kubeconfig of the chart's agent on a node and returns its path. Its
// token is bound to the Node, as a pod's token is, and ends with it. It returns once the policy
// that binds the agent to its node is active.
func (s *Sandbox) AgentKubeconfig(ctx context.Context, nodeName string) (string, error) {
	admin, err := kubernetes.NewForConfig(s.RESTConfig())
	if err != nil {
		return "", fmt.Errorf("making a client: %w", err)
	}
	node, err := admin.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("finding the agent's node: %w", err)
	}
	name := chart.AgentAccount + "-" + url.QueryEscape(nodeName)
	path, err := s.accountKubeconfig(ctx, name, chart.AgentAccount, node)
	if err != nil {
		return "", err
	}
	return path, waitAgentTied(ctx, path)
}

// UserKubeconfig writes a kubeconfig of a user and returns its path. The user may do what RBAC
// grants.
func (s *Sandbox) UserKubeconfig(user string) (string, error) {
	path, err := s.cluster.UserKubeconfig(user)
	if err != nil {
		return "", fmt.Errorf("making the user %s: %w", user, err)
	}
	return path, nil
}

// accountKubeconfig writes the kubeconfig of a ServiceAccount of the chart to the
// file name, with a token bound to node if there is one.
func (s *Sandbox) accountKubeconfig(ctx context.Context, name, account string, node *corev1.Node) (string, error) {
	config := s.RESTConfig()
	admin, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("making a client: %w", err)
	}
	seconds := int64(tokenLifetime / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if node != nil {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID,
		}
	}
	accounts := admin.CoreV1().ServiceAccounts(chart.Namespace)
	request, err = accounts.CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking for a token of %s: %w", account, err)
	}
	out := clientcmdapi.NewConfig()
	out.Clusters[clusterName] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	out.AuthInfos[account] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	out.Contexts[clusterName] = &clientcmdapi.Context{Cluster: clusterName, AuthInfo: account, Namespace: chart.Namespace}
	out.CurrentContext = clusterName
	path := s.path(name + ".kubeconfig")
	if err := clientcmd.WriteToFile(*out, path); err != nil {
		return "", fmt.Errorf("writing the kubeconfig of %s: %w", account, err)
	}
	return path, nil
}

// waitAgentTied waits until the API server rejects, in a dry run, the agent's NodeNotice of
// another node.
func waitAgentTied(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading back the agent's kubeconfig: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		return fmt.Errorf("making the agent's client: %w", err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("making the agent's client: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, policyTimeout)
	defer cancel()
	return waitFor(ctx, "the agent to be tied to its node", func(ctx context.Context) (bool, error) {
		err := imds.CheckPolicy(ctx, c)
		// The chart of an older release does not serve this version of the API. Its agents check the
		// policy themselves.
		return err == nil || meta.IsNoMatchError(err), err
	})
}
