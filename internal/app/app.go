// Package app assembles lifeboatd: the manager, the controllers and the notice
// sources; and the agents. registry.go lists the parts.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
	"github.com/lifeboat-dev/lifeboat/internal/kube/budgetcache"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/kube/reflector"
	"github.com/lifeboat-dev/lifeboat/internal/kube/scrapeauth"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/version"
)

// leaseName is the name of the leader election lease. Administrators see it, so
// it must not change.
const leaseName = "lifeboat-controller"

// Run runs the controller until ctx ends.
func Run(ctx context.Context, c Config) error {
	logger := newLogger(c.Development, c.Verbosity)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger.WithName("client-go"))

	c, err := c.complete()
	if err != nil {
		return err
	}
	cloud, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithAppID("lifeboat-controller"), awsconfig.WithCredentialsCacheOptions(awshttp.RenewEarly))
	if err != nil {
		return fmt.Errorf("configuring the AWS SDK: %w", err)
	}
	if cloud, err = countRequests(awshttp.Use(cloud)); err != nil {
		return err
	}
	if c.Region == "" {
		c.Region = cloud.Region
	}
	if c.Region == "" {
		return errors.New("no AWS region: set --region or AWS_REGION")
	}
	cloud.Region = c.Region
	cloud = c.guardCloud(cloud)
	c = c.resolveClusterName(ctx, sqs.NewFromConfig(cloud))

	cluster, err := clusterConfig(c.Kubeconfig)
	if err != nil {
		return err
	}
	c.guardCluster(cluster)
	mgr, err := newManager(cluster, c)
	if err != nil {
		return fmt.Errorf("reaching the cluster at %s: %w", cluster.Host, err)
	}
	if err := assemble(ctx, mgr, cloud, c); err != nil {
		return err
	}
	logger.Info("started", "version", version.String(), "queue", c.QueueURL, "cluster", c.ClusterName, "account", c.Account, "region", c.Region, "surge", c.Surge, "observe", c.Observe)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running: %w", err)
	}
	return nil
}

// assemble adds all runnables to the manager.
func assemble(ctx context.Context, mgr ctrl.Manager, cloud aws.Config, c Config) error {
	nodes, err := nodeindex.New(ctx, mgr.GetFieldIndexer(), mgr.GetClient())
	if err != nil {
		return err
	}
	groups, err := watchGroups(mgr, cloud, c)
	if err != nil {
		return fmt.Errorf("adding the watch of Auto Scaling groups: %w", err)
	}
	if err := addLoops(ctx, mgr, nodes, groups, cloud, c); err != nil {
		return fmt.Errorf("adding the controllers: %w", err)
	}
	if err := addSources(mgr, nodes, groups, cloud, c); err != nil {
		return fmt.Errorf("adding the notice sources: %w", err)
	}
	if err := addCanary(mgr, cloud, c); err != nil {
		return fmt.Errorf("adding the canary: %w", err)
	}
	if err := countInFlight(mgr); err != nil {
		return err
	}
	if err := mgr.Add(freeMemory{synced: mgr.GetCache().WaitForCacheSync}); err != nil {
		return fmt.Errorf("adding the release of memory: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding the health check: %w", err)
	}
	if err := mgr.AddReadyzCheck("caches", cachesSynced(mgr)); err != nil {
		return fmt.Errorf("adding the readiness check: %w", err)
	}
	return nil
}

func newManager(cluster *rest.Config, c Config) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	grace := 20 * time.Second
	return ctrl.NewManager(cluster, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         cacheOptions(),
		Metrics:                       metricsOptions(c),
		HealthProbeBindAddress:        c.HealthAddress,
		LeaderElection:                c.LeaderElect,
		LeaderElectionID:              leaseName,
		LeaderElectionNamespace:       c.LeaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       &grace,
	})
}

// cacheOptions says what the cache keeps of objects. There are many of them, and tenants write some.
func cacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		NewInformer:      reflector.NewInformer,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Node{}:                  {Transform: nodeindex.Slim()},
			&v1beta1.Interruption{}:         {Transform: record.Slim},
			&policyv1.PodDisruptionBudget{}: {Transform: budgetcache.Parse},
		},
	}
}

// metricsOptions says how the metrics are served.
func metricsOptions(c Config) metricsserver.Options {
	o := metricsserver.Options{BindAddress: c.MetricsAddress}
	if c.MetricsSecure {
		return scrapeauth.Secure(o)
	}
	return o
}

// clusterConfig returns the cluster's client configuration. It sets no
// client-side rate limit: the API server's priority and fairness protects it
// better.
func clusterConfig(kubeconfig string) (*rest.Config, error) {
	var (
		cluster *rest.Config
		err     error
	)
	if kubeconfig != "" {
		cluster, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	} else {
		cluster, err = ctrl.GetConfig()
	}
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w: run in a pod with a service account, or set --kubeconfig", err)
	}
	cluster.QPS = -1
	cluster.UserAgent = "lifeboatd/" + version.String()
	return cluster, nil
}

func newLogger(development bool, verbosity int) logr.Logger {
	options := &slog.HandlerOptions{Level: slog.Level(-verbosity)}
	var handler slog.Handler = slog.NewJSONHandler(os.Stderr, options)
	if development {
		handler = slog.NewTextHandler(os.Stderr, options)
	}
	return logr.FromSlogHandler(handler)
}
