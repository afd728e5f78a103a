package app

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	cloudaws "github.com/lifeboat-dev/lifeboat/internal/cloud/aws"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/status"
	"github.com/lifeboat-dev/lifeboat/internal/controller/nodecleanup"
	"github.com/lifeboat-dev/lifeboat/internal/controller/notification"
	"github.com/lifeboat-dev/lifeboat/internal/controller/outofservice"
	"github.com/lifeboat-dev/lifeboat/internal/controller/policystatus"
	"github.com/lifeboat-dev/lifeboat/internal/controller/sourcehealth"
	"github.com/lifeboat-dev/lifeboat/internal/deregistration"
	"github.com/lifeboat-dev/lifeboat/internal/hooks/runner"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/intake/autoscaling"
	"github.com/lifeboat-dev/lifeboat/internal/intake/cloudtrail"
	"github.com/lifeboat-dev/lifeboat/internal/intake/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/intake/nodenotice"
	"github.com/lifeboat-dev/lifeboat/internal/intake/sqs"
	"github.com/lifeboat-dev/lifeboat/internal/kube/budgetcache"
	"github.com/lifeboat-dev/lifeboat/internal/kube/events"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeclaims"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/kube/ownercache"
	"github.com/lifeboat-dev/lifeboat/internal/kube/podcache"
	"github.com/lifeboat-dev/lifeboat/internal/kube/writes"
	"github.com/lifeboat-dev/lifeboat/internal/metric"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// sources lists the notice sources. Sources that poll AWS run on the leader
// only, so that replicas do not multiply the calls.
func sources() []sourceSpec {
	return []sourceSpec{
		{notice.SourceQueue, everyReplica, func(d deps) (intake.Source, error) {
			return sqs.New(d.QueueURL, sqs.NewClient(d.cloud), d.recorder, sqs.Options{
				Metrics: d.metrics, Instances: ec2.NewAPI(d.cloud).InstancesWith, GroupNews: d.groups.refresher(),
			})
		}},
		{notice.SourceEC2, onLeader, func(d deps) (intake.Source, error) {
			return ec2.New(ec2.NewAPI(d.cloud), d.nodes, d.recorder, ec2.Options{
				SpotInterval: d.SpotInterval, StatusInterval: d.StatusInterval, Threshold: d.StatusThreshold,
				Reader: d.reader, Metrics: d.metrics,
			}), nil
		}},
		{notice.SourceAutoScaling, onLeader, func(d deps) (intake.Source, error) {
			return autoscaling.New(d.groups.Watcher, d.recorder, autoscaling.Options{Reader: d.reader, Nodes: d.all, Metrics: d.metrics}), nil
		}},
		{notice.SourceCloudTrail, onLeader, func(d deps) (intake.Source, error) {
			return cloudtrail.New(cloudtrail.NewAPI(d.cloud), ec2.NewAPI(d.cloud).InstancesWith, d.recorder, cloudtrail.Options{
				Interval: d.CloudTrailInterval, Reader: d.reader, Nodes: d.nodes, Metrics: d.metrics,
			}), nil
		}},
		{notice.SourceIMDS, everyReplica, func(d deps) (intake.Source, error) {
			return nodenotice.New(nodenotice.Options{
				Client: d.mgr.GetClient(), Live: d.mgr.GetAPIReader(), Informers: d.mgr.GetCache(), Nodes: d.nodes,
				Recorder: d.recorder, Elected: d.mgr.Elected(), Metrics: d.metrics,
			}), nil
		}},
	}
}

// addLoops adds the controllers, which run on the leader only.
func addLoops(ctx context.Context, mgr ctrl.Manager, nodes *nodeindex.Index, groups *groups, cloud aws.Config, c Config) error {
	kube, err := kubernetes.NewForConfig(withProtobuf(mgr.GetConfig()))
	if err != nil {
		return err
	}
	loopMetrics, err := status.NewMetrics(metrics.Registry)
	if err != nil {
		return err
	}
	changed := make(chan event.TypedGenericEvent[string], 1024)
	pods := podcache.New(ctx, kube.CoreV1().RESTClient(), notify(ctx, changed))
	if err := errors.Join(countWatched(pods), countUnread(ctx, mgr)); err != nil {
		return err
	}
	wanted, answered := make(chan event.TypedGenericEvent[string], 1024), make(chan event.TypedGenericEvent[string], 1024)
	runner, err := newHookRunner(mgr, c, loopMetrics, wanted, answered)
	if err != nil {
		return err
	}
	recorder, err := newEventRecorder(mgr)
	if err != nil {
		return err
	}
	owners := ownercache.New(ctx, kube, notify(ctx, changed))
	replaced, orphaned := make(chan event.TypedGenericEvent[string], 1024), make(chan event.TypedGenericEvent[string], 1024)
	claims, err := watchClaims(ctx, mgr, c.readChannels(replaced, orphaned)...)
	if err != nil {
		return err
	}
	targets := deregistration.New(deregistration.Options{Reader: mgr.GetAPIReader(), Health: elb.NewFromConfig(cloud), Wake: offer(wanted)})
	options := interruption.Options{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Nodes: nodes, Pods: pods, Budgets: budgetcache.ListCached(mgr.GetCache()), Owners: owners, HookRunner: runner,
		Cloud: cloudaws.New(cloud), Claims: claims, Forward: toKarpenter(cloud, c), Place: replacement.Place{Account: c.Account, Region: c.Region},
		Metrics: loopMetrics, Events: recorder, Targets: targets,
		Clock: time.Now, Margin: c.Margin, SurgeDisabled: !c.Surge, Observe: c.Observe, TTL: c.TTL, FlushInterval: status.FlushInterval,
	}
	groups.addTo(&options, c)
	loop := interruption.New(options)
	forget := func(node string) {
		pods.Forget(node)
		owners.Forget(node)
	}
	listening, err := sourcehealth.New(sourcehealth.Options{
		Client: mgr.GetClient(), Events: recorder, Cause: causeOf(cloud, c), Clock: time.Now,
		Registerer: metrics.Registry,
	})
	if err != nil {
		return err
	}
	return errors.Join(
		mgr.Add(runner), mgr.Add(recorder), mgr.Add(targets),
		loop.Register(mgr, changed, wanted, replaced),
		notification.New(notification.Options{Client: mgr.GetClient(), Sender: runner, Events: recorder, Clock: time.Now}).Register(mgr, answered),
		listening.Register(mgr),
		mgr.Add(reportNodes(mgr, recorder)),
		policystatus.New(mgr.GetClient()).Register(mgr),
		c.addTracing(mgr),
		c.addActors(mgr, nodes, groups, recorder, forget, claims, orphaned, options.Cloud),
	)
}

// addActors adds the controllers that do nothing but act. forget ends the watches for a node, and
// orphaned has the names of NodeClaims whose Interruption may be gone.
func (c Config) addActors(mgr ctrl.Manager, nodes *nodeindex.Index, groups *groups, recorder *events.Recorder,
	forget func(node string), claims *nodeclaims.Watcher, orphaned <-chan event.TypedGenericEvent[string], instances outofservice.Describer,
) error {
	if c.Observe {
		return nil
	}
	return errors.Join(
		nodecleanup.New(nodecleanup.Options{Client: mgr.GetClient(), Pods: mgr.GetAPIReader(), Forget: forget}).Register(mgr),
		(&nodecleanup.Claims{Client: mgr.GetClient(), All: claims.Claims}).Register(mgr, orphaned),
		outofservice.New(outofservice.Options{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Nodes: nodeindex.ListCached(mgr.GetCache()), Cloud: instances, Events: recorder,
			Clock: time.Now, Enabled: c.OutOfServiceTaint,
		}).Register(mgr),
		groups.addLoops(mgr, nodes, recorder, c),
		c.addClaimGuard(mgr),
	)
}

// newHookRunner returns the runner of hooks and notifications. hooks and notifications
// receive the names of the Interruptions of which a request is answered.
func newHookRunner(mgr ctrl.Manager, c Config, loop *status.Metrics, hooks, notifications chan<- event.TypedGenericEvent[string]) (*runner.Runner, error) {
	hookMetrics, err := runner.NewMetrics(metrics.Registry)
	if err != nil {
		return nil, err
	}
	return runner.New(runner.Options{
		Client: writes.Observe(mgr.GetClient(), loop.WriteRefused), Live: mgr.GetAPIReader(), Namespace: c.Namespace, JobNamespaces: c.HookNamespaces, Destinations: c.Webhooks, Metrics: hookMetrics,
		WakeHooks: offer(hooks), WakeNotifications: offer(notifications),
	}), nil
}

// offer returns a function that sends the name of an Interruption unless the channel is
// full: the Interruption has a requeue time anyway.
func offer(to chan<- event.TypedGenericEvent[string]) func(name string) {
	return func(name string) {
		select {
		case to <- event.TypedGenericEvent[string]{Object: name}:
		default:
		}
	}
}

// newEventRecorder returns the writer of Kubernetes Events, with its metrics.
func newEventRecorder(mgr ctrl.Manager) (*events.Recorder, error) {
	limited, err := kubernetes.NewForConfig(events.Limit(withProtobuf(mgr.GetConfig())))
	if err != nil {
		return nil, err
	}
	recorder := events.NewRecorder(limited.EventsV1(), mgr.GetScheme())
	return recorder, recorder.Register(metrics.Registry)
}

var watchedNodes = metric.Definition{
	Name: "lifeboat_watched_nodes", Type: metric.Gauge, Unit: "nodes",
	Help: "Nodes whose pods are watched: those that are going away.",
}

// countWatched registers the metric of nodes whose pods are watched.
func countWatched(pods *podcache.Watcher) error {
	return metric.Register(metrics.Registry, "watched nodes", watchedNodes.NewGauge(func() float64 { return float64(pods.Watched()) }))
}

var unreadBudgets = metric.Definition{
	Name: "lifeboat_unread_poddisruptionbudgets", Type: metric.Gauge, Unit: "budgets",
	Help: "PodDisruptionBudgets that are too large or too many in their namespace to be read. They hold all pods of the namespace until last call.",
}

// countUnread registers the metric of budgets that are not read.
func countUnread(ctx context.Context, mgr ctrl.Manager) error {
	return metric.Register(metrics.Registry, "unread budgets", unreadBudgets.NewGauge(func() float64 {
		unread, err := budgetcache.Unread(ctx, mgr.GetCache())
		if err != nil {
			return math.NaN()
		}
		return float64(unread)
	}))
}

// withProtobuf switches built-in objects to protobuf. For many pods this halves the work of both
// sides, and makes less garbage (Kubernetes API Concepts, "Alternate representations of resources").
func withProtobuf(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return config
}

// addSources adds the enabled notice sources.
func addSources(mgr ctrl.Manager, nodes *nodeindex.Index, groups *groups, cloud aws.Config, c Config) error {
	intakeMetrics, err := intake.NewMetrics(metrics.Registry)
	if err != nil {
		return err
	}
	intakeMetrics.Expect(c.Sources)
	o := c.expected()
	o.Live, o.Metrics, o.Clock = mgr.GetAPIReader(), intakeMetrics, time.Now
	recorder := intake.NewRecorder(mgr.GetClient(), nodes, o)
	d := deps{Config: c, mgr: mgr, cloud: cloud, nodes: nodes, groups: groups, reader: mgr.GetClient(), all: nodeindex.ListCached(mgr.GetCache()), recorder: recorder, metrics: intakeMetrics}
	for _, r := range sources() {
		if !slices.Contains(c.Sources, r.name) {
			continue
		}
		source, err := r.build(d)
		if err != nil {
			return fmt.Errorf("creating source %s: %w", r.name, err)
		}
		if err := mgr.Add(sourceRunnable{source, r.where}); err != nil {
			return fmt.Errorf("adding source %s: %w", r.name, err)
		}
	}
	return nil
}

// cachesSynced is ready once the caches have synced.
func cachesSynced(mgr ctrl.Manager) healthz.Checker {
	return func(req *http.Request) error {
		ctx, cancel := context.WithTimeout(req.Context(), time.Second)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the caches have not synced with the API server")
		}
		return nil
	}
}

// reportNodes reports at the start which nodes no notice can reach.
func reportNodes(mgr ctrl.Manager, recorder *events.Recorder) manager.RunnableFunc {
	return func(ctx context.Context) error {
		sourcehealth.ReportNodes(ctx, mgr.GetClient(), recorder)
		return nil
	}
}
