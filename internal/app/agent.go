package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"time"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/metadata"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/intake/imds"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/metric"
	"github.com/lifeboat-dev/lifeboat/internal/version"
)

// AgentConfig is the configuration of `lifeboatd agent`.
type AgentConfig struct {
	// Kubeconfig is the kubeconfig file; empty: the pod's service account, or
	// $KUBECONFIG.
	Kubeconfig string
	// NodeName is the node that the agent runs on.
	NodeName string
	// PollInterval is how often instance metadata is read.
	PollInterval time.Duration
	// MetricsAddress and HealthAddress are host:port to serve on; "0" disables.
	MetricsAddress, HealthAddress string
	// Development logs text instead of JSON.
	Development bool
	// Verbosity 0 logs changes, 1 also decisions.
	Verbosity int
}

// requestTime is the timeout of the agent's requests to the API server.
const requestTime = 10 * time.Second

// nodeNames are DNS names (Kubernetes documentation, "Nodes").
var nodeNames = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

func (c AgentConfig) check() error {
	switch {
	case c.NodeName == "":
		return errors.New("no node: give --node-name, or set NODE_NAME from the field spec.nodeName of the pod")
	case !nodeNames.MatchString(c.NodeName):
		return fmt.Errorf("--node-name %q is not a valid node name: set NODE_NAME from the field spec.nodeName of the pod", c.NodeName)
	case c.PollInterval < time.Second || c.PollInterval > 30*time.Second:
		return fmt.Errorf("--poll-interval %s is out of range: write a duration from 1s to 30s", c.PollInterval)
	}
	return nil
}

// RunAgent runs the agent of one node until ctx ends.
func RunAgent(ctx context.Context, c AgentConfig) error {
	logger := newLogger(c.Development, c.Verbosity)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger.WithName("client-go"))
	if err := c.check(); err != nil {
		return err
	}
	cloud, err := awsconfig.LoadDefaultConfig(ctx)
	if err != nil {
		return fmt.Errorf("configuring the AWS SDK: %w", err)
	}
	cluster, err := clusterConfig(c.Kubeconfig)
	if err != nil {
		return err
	}
	kube, err := agentClient(cluster)
	if err != nil {
		return fmt.Errorf("reaching the cluster at %s: %w", cluster.Host, err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if err := metric.RegisterBuild(registry, "agent"); err != nil {
		return err
	}
	intakeMetrics, err := intake.NewMetrics(registry)
	if err != nil {
		return err
	}
	source := imds.New(metadata.NewClient(cloud), imds.Options{
		Interval: c.PollInterval, Kube: kube, Identify: ownNode{kube, c.NodeName}.identify, Metrics: intakeMetrics, Clock: time.Now,
	})
	logger.Info("started", "version", version.String(), "node", c.NodeName)
	ctx = log.IntoContext(ctx, logger)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return source.Run(ctx) })
	group.Go(func() error { return serve(ctx, c.HealthAddress, healthOf(source.Ready)) })
	group.Go(func() error { return serve(ctx, c.MetricsAddress, metricsOf(registry)) })
	if err := group.Wait(); err != nil {
		return fmt.Errorf("running: %w", err)
	}
	return nil
}

// agentClient returns a client that knows its two kinds without discovery,
// because many agents start at once. It has no cache: a watch per node would be
// too much load in a large cluster.
func agentClient(cluster *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion, v1beta1.GroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	mapper.Add(v1beta1.GroupVersion.WithKind("NodeNotice"), meta.RESTScopeRoot)
	cluster = rest.CopyConfig(cluster)
	cluster.Timeout = requestTime
	return client.New(cluster, client.Options{Scheme: scheme, Mapper: mapper})
}

// ownNode is the agent's own node.
type ownNode struct {
	reader client.Reader
	name   string
}

// identify returns the node and its instance id.
func (o ownNode) identify(ctx context.Context) (imds.Identity, error) {
	var node corev1.Node
	err := o.reader.Get(ctx, client.ObjectKey{Name: o.name}, &node)
	switch {
	case apierrors.IsNotFound(err):
		return imds.Identity{}, fmt.Errorf("node %s does not exist: set NODE_NAME from the field spec.nodeName of the pod", o.name)
	case apierrors.IsForbidden(err):
		return imds.Identity{}, fmt.Errorf("reading node %s: %w: grant get on nodes to the agent's ServiceAccount, as the chart does", o.name, err)
	case err != nil:
		return imds.Identity{}, fmt.Errorf("reading node %s: %w", o.name, err)
	case node.Spec.ProviderID == "":
		return imds.Identity{}, fmt.Errorf("node %s has no spec.providerID yet: the cloud controller manager sets it soon after the node registers", o.name)
	}
	id := nodeindex.InstanceID(&node)
	if id == "" {
		return imds.Identity{}, fmt.Errorf("node %s is not an EC2 instance (spec.providerID is %q): exclude such nodes from the agent's DaemonSet", o.name, node.Spec.ProviderID)
	}
	return imds.Identity{Node: node.Name, UID: string(node.UID), InstanceID: id}, nil
}

// healthOf serves /healthz while the process runs, and /readyz with the result
// of ready.
func healthOf(ready func() error) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}

func metricsOf(registry *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux
}

// serve serves HTTP at an address until ctx ends; "0" and "" disable it.
func serve(ctx context.Context, address string, handler http.Handler) error {
	if address == "0" || address == "" {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("serving on %s: %w: set another address, or 0 to disable it", address, err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // no client needs a response after that
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving on %s: %w", address, err)
	}
	return nil
}
