package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/doctor"
)

// requestTimeout limits the time of one request to AWS.
const requestTimeout = command.DefaultRequestTimeout

// cluster is a client of the Kubernetes cluster that a command works with.
type cluster struct {
	client.WithWatch
	// name is the cluster's name in the kubeconfig.
	name string
	// requestTimeout limits the time of one API request. 0 means no limit.
	requestTimeout time.Duration
	// as returns a client that impersonates a user. It is nil for a cluster in memory.
	as func(user rest.ImpersonationConfig) (client.Client, error)
	// raw reads a path of the API server that is not an object. It is nil for a cluster in memory.
	raw func(ctx context.Context, path string) (io.ReadCloser, error)
}

// connection holds the addresses and credentials of a running sandbox.
type connection struct {
	name                         string
	kubeconfig                   string
	endpoint, account, region    string
	accessKeyID, secretAccessKey string
	queueURL                     string
	// lifeboatd is the process of the controller; nil if that is not known.
	lifeboatd *doctor.Process
}

// newScheme returns a scheme with the built-in types and Lifeboat's.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	if err := v1beta1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	return scheme, nil
}

// connectKubernetes makes a client from the kubeconfig that the flags select.
func (s *session) connectKubernetes(context.Context) (cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = s.flags.Kubeconfig
	if s.flags.Sandbox != "" {
		sandbox, err := s.findSandbox(s.flags.Sandbox)
		if err != nil {
			return cluster{}, err
		}
		rules.ExplicitPath = sandbox.kubeconfig
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &s.flags.Overrides)
	if err := s.checkContext(loader); err != nil {
		return cluster{}, err
	}
	config, err := loader.ClientConfig()
	if err != nil {
		return cluster{}, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.WarningHandler = rest.NoWarnings{}
	scheme, err := newScheme()
	if err != nil {
		return cluster{}, err
	}
	mapper, err := newMapper(config, s.flags.RequestTimeout)
	if err != nil {
		return cluster{}, fmt.Errorf("connecting to the cluster %s: %w", config.Host, err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return cluster{}, fmt.Errorf("connecting to the cluster %s: %w", config.Host, err)
	}
	as := func(user rest.ImpersonationConfig) (client.Client, error) {
		config := rest.CopyConfig(config)
		config.Impersonate = user
		return client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	}
	return cluster{WithWatch: c, name: s.clusterName(loader), requestTimeout: s.flags.RequestTimeout, as: as, raw: rawReader(config)}, nil
}

// rawReader reads paths of the API server that are not objects.
func rawReader(config *rest.Config) func(ctx context.Context, path string) (io.ReadCloser, error) {
	return func(ctx context.Context, path string) (io.ReadCloser, error) {
		config := rest.CopyConfig(config)
		config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
		c, err := rest.UnversionedRESTClientFor(config)
		if err != nil {
			return nil, err
		}
		return c.Get().RequestURI(path).Stream(ctx)
	}
}

// newMapper returns a mapper whose discovery requests have the time limit. They get no
// context, and without a limit they stop after 32 seconds.
func newMapper(config *rest.Config, limit time.Duration) (meta.RESTMapper, error) {
	limited := rest.CopyConfig(config)
	limited.Timeout = limit
	httpClient, err := rest.HTTPClientFor(limited)
	if err != nil {
		return nil, err
	}
	return apiutil.NewDynamicRESTMapper(limited, httpClient)
}

// checkContext returns an error if the context of --context does not exist.
func (s *session) checkContext(loader clientcmd.ClientConfig) error {
	raw, err := loader.RawConfig()
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if _, ok := raw.Contexts[s.flags.Overrides.CurrentContext]; s.flags.Overrides.CurrentContext != "" && !ok {
		return fmt.Errorf("reading the kubeconfig: %w: %s", command.ErrNoContext, s.flags.Overrides.CurrentContext)
	}
	return nil
}

// clusterName guesses the cluster's own name from the kubeconfig: the last part
// of an EKS ARN, or the first part of an eksctl name (name.region.eksctl.io).
// Otherwise it is the name in the kubeconfig.
func (s *session) clusterName(loader clientcmd.ClientConfig) string {
	raw, err := loader.RawConfig()
	if err != nil {
		return ""
	}
	current := raw.CurrentContext
	if s.flags.Overrides.CurrentContext != "" {
		current = s.flags.Overrides.CurrentContext
	}
	entry, ok := raw.Contexts[current]
	if !ok {
		return ""
	}
	return shortClusterName(entry.Cluster)
}

func shortClusterName(name string) string {
	if strings.HasPrefix(name, "arn:") {
		return name[strings.LastIndex(name, "/")+1:]
	}
	if strings.HasSuffix(name, ".eksctl.io") {
		short, _, _ := strings.Cut(name, ".")
		return short
	}
	return name
}

// limit limits the time of one API request.
func (c cluster) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.requestTimeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.requestTimeout)
}

// list lists objects with a time limit.
func (c cluster) list(ctx context.Context, what string, into client.ObjectList, opts ...client.ListOption) error {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	if err := c.List(ctx, into, opts...); err != nil {
		return fmt.Errorf("listing %s: %w", what, err)
	}
	return nil
}
