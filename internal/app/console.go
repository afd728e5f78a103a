package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/console"
	"github.com/lifeboat-dev/lifeboat/internal/console/view"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// ConsoleConfig is the configuration of `lifeboatd console`.
type ConsoleConfig struct {
	// Kubeconfig is the kubeconfig file; empty: the pod's service account, or $KUBECONFIG.
	Kubeconfig string
	// Address and HealthAddress are host:port of the page and of the probes; HealthAddress "0" disables.
	Address, HealthAddress string
	// ClusterName is the cluster's name on the page.
	ClusterName string
	// Development logs text instead of JSON, and Verbosity is the log level.
	Development bool
	Verbosity   int
}

// errNoPlans is why the page in the cluster has no plans: they need the rights to read all pods.
var errNoPlans = errors.New("this page may not read pods and nodes: run `lifeboat plan NODE`, or `lifeboat console` with your own rights")

// RunConsole serves the console in the cluster until ctx ends. Requests come from the API server's
// proxy, which has checked the rights of the viewer.
func RunConsole(ctx context.Context, c ConsoleConfig) error {
	logger := newLogger(c.Development, c.Verbosity)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger.WithName("client-go"))
	cluster, err := clusterConfig(c.Kubeconfig)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		return err
	}
	reader, err := client.NewWithWatch(cluster, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("reaching the cluster at %s: %w", cluster.Host, err)
	}
	page, err := listen(ctx, "--bind-address", c.Address)
	if err != nil {
		return err
	}
	if c.HealthAddress != "0" {
		probes, err := listen(ctx, "--health-probe-bind-address", c.HealthAddress)
		if err != nil {
			return err
		}
		stop := serveProbes(probes)
		defer stop()
	}
	logger.Info("serving the console", "address", page.Addr().String())
	return console.New(console.Options{
		Client: reader, Cluster: c.ClusterName, Program: "lifeboat", Now: time.Now, AnyHost: true,
		Health: func(context.Context) view.Health {
			return view.Health{Text: "The page in the cluster does not check the installation: run `lifeboat status`.", Problems: []finding.Finding{}}
		},
		Nodes: func(context.Context) ([]string, error) { return nil, errNoPlans },
		Plan:  func(context.Context, console.PlanRequest) (view.Plan, error) { return view.Plan{}, errNoPlans },
	}).Serve(ctx, page)
}

func listen(ctx context.Context, flag, address string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w; check %s", address, err, flag)
	}
	return l, nil
}

// serveProbes answers /healthz and /readyz: a process that answers can serve the page, which says
// if the API server does not answer.
func serveProbes(l net.Listener) (stop func()) {
	mux := http.NewServeMux()
	for _, path := range []string{"GET /healthz", "GET /readyz"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(l) }()
	return func() { _ = server.Close() }
}
