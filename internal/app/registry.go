package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption"
	"github.com/lifeboat-dev/lifeboat/internal/controller/orphan"
	"github.com/lifeboat-dev/lifeboat/internal/controller/policy"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/intake/sqs"
	"github.com/lifeboat-dev/lifeboat/internal/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/podwatch"
)

// sources makes the sources of notices: one line for each.
func sources(r *intake.Recorder, m *intake.Metrics, cloud aws.Config, c Config) ([]intake.Source, error) {
	queue, err := sqs.New(c.QueueURL, sqs.NewClient(cloud), r, sqs.Options{Metrics: m})
	if err != nil {
		return nil, err
	}
	return []intake.Source{
		queue,
	}, nil
}

// addLoops adds the control loops, which run on the leader alone.
func addLoops(mgr ctrl.Manager, nodes *nodeindex.Index, c Config) error {
	kube, err := kubernetes.NewForConfig(mgr.GetConfig())
	if err != nil {
		return err
	}
	loopMetrics, err := interruption.NewMetrics(metrics.Registry)
	if err != nil {
		return err
	}
	changed := make(chan event.TypedGenericEvent[string], 1024)
	pods := podwatch.New(kube, func(node string) { changed <- event.TypedGenericEvent[string]{Object: node} })
	if err := metrics.Registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "lifeboat_watched_nodes", Help: "Nodes whose pods are watched: those that are going away.",
	}, func() float64 { return float64(pods.Watched()) })); err != nil {
		return fmt.Errorf("registering the count of watched nodes: %w", err)
	}
	loop := interruption.New(interruption.Options{
		Client: mgr.GetClient(), Nodes: nodes, Pods: pods, Metrics: loopMetrics,
		Events: mgr.GetEventRecorder("lifeboat"), Clock: time.Now, Margin: c.Margin, TTL: c.TTL,
	})
	return errors.Join(
		loop.Register(mgr, changed),
		orphan.New(mgr.GetClient(), pods.Forget).Register(mgr),
		policy.New(mgr.GetClient()).Register(mgr),
	)
}

// addSources adds the sources of notices, which run on every replica.
func addSources(mgr ctrl.Manager, nodes *nodeindex.Index, cloud aws.Config, c Config) error {
	intakeMetrics, err := intake.NewMetrics(metrics.Registry)
	if err != nil {
		return err
	}
	recorder := intake.NewRecorder(mgr.GetClient(), nodes, intake.Options{
		Account: c.Account, Region: c.Region, Live: mgr.GetAPIReader(), Metrics: intakeMetrics, Clock: time.Now,
	})
	list, err := sources(recorder, intakeMetrics, cloud, c)
	if err != nil {
		return err
	}
	for _, source := range list {
		if err := mgr.Add(everywhere{source}); err != nil {
			return fmt.Errorf("adding source %s: %w", source.Name(), err)
		}
	}
	return nil
}

// everywhere runs a source on every replica, leader or not.
type everywhere struct{ intake.Source }

var _ manager.LeaderElectionRunnable = everywhere{}

// Start runs the source until ctx ends.
func (e everywhere) Start(ctx context.Context) error { return e.Run(ctx) }

// NeedLeaderElection says that it does not.
func (everywhere) NeedLeaderElection() bool { return false }

// cachesSynced is ready once the picture of the cluster is whole.
func cachesSynced(mgr ctrl.Manager) healthz.Checker {
	return func(req *http.Request) error {
		ctx, cancel := context.WithTimeout(req.Context(), time.Second)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the caches have not caught up with the API server")
		}
		return nil
	}
}
