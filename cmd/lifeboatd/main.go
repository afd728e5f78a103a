// Command lifeboatd runs in the cluster, as the controller and as the agent on
// nodes. See `lifeboatd --help`.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
	_ "time/tzdata" // policies name time zones, which an image may lack

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/app"
	"github.com/lifeboat-dev/lifeboat/internal/version"
)

func main() {
	app.ConfigureRuntime()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := root().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "lifeboatd:", err)
		os.Exit(1)
	}
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use: "lifeboatd", Short: "Move pods off AWS nodes before an interruption",
		Version: version.String(), SilenceUsage: true, SilenceErrors: true,
	}
	cmd.AddCommand(controller(), agent(), check(), console())
	return cmd
}

func controller() *cobra.Command {
	var (
		c    app.Config
		mode string
	)
	cmd := &cobra.Command{
		Use: "controller", Short: "Run the controller that receives notices and drains nodes",
		Example: "  lifeboatd controller --queue-url https://sqs.eu-west-1.amazonaws.com/123456789012/lifeboat-prod",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if c.Observe, err = app.ParseMode(mode); err != nil {
				return err
			}
			return app.Run(cmd.Context(), c)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Kubeconfig, "kubeconfig", "", "path of the kubeconfig file (default: the pod's service account)")
	f.StringVar(&c.QueueURL, "queue-url", os.Getenv("LIFEBOAT_QUEUE_URL"), "URL of the SQS queue to which EventBridge delivers notices [$LIFEBOAT_QUEUE_URL]")
	f.StringVar(&c.KarpenterQueueURL, "karpenter-queue-url", os.Getenv("LIFEBOAT_KARPENTER_QUEUE_URL"), "URL of Karpenter's own SQS queue, to which Lifeboat forwards notices when it hands a node over [$LIFEBOAT_KARPENTER_QUEUE_URL]")
	f.DurationVar(&c.KarpenterGuard, "karpenter-guard", 0, "how long a mark lasts that keeps Karpenter from deleting NodeClaims whose policy delays or refuses a drain, from 5m to 24h; 0 sets none (needs the chart's admission policy lifeboat-karpenter)")
	f.StringVar(&c.ClusterName, "cluster-name", "", "cluster name used in AWS resource tags (default: derived from the queue name)")
	f.DurationVar(&c.CanaryInterval, "canary-interval", 0, "interval between probes of every EventBridge rule, at least 1m; 0 disables probes (needs events:PutEvents)")
	f.StringSliceVar(&c.Sources, "sources", []string{"sqs", "ec2", "autoscaling", "imds"}, "sources of notices to use")
	f.DurationVar(&c.SpotInterval, "spot-interval", 15*time.Second, "interval between reads of spot requests from EC2")
	f.DurationVar(&c.StatusInterval, "status-interval", time.Minute, "interval between reads of scheduled events and status checks from EC2")
	f.DurationVar(&c.StatusThreshold, "status-threshold", 2*time.Minute, "time that a status check must fail before it counts as a notice")
	f.DurationVar(&c.AutoScalingInterval, "autoscaling-interval", 30*time.Second, "interval between reads of Auto Scaling groups")
	f.DurationVar(&c.CloudTrailInterval, "cloudtrail-interval", 0, "interval between reads of CloudTrail's event history for refused answers to lifecycle hooks, such as 5m; 0 disables them (needs cloudtrail:LookupEvents)")
	f.StringSliceVar(&c.LifecycleHooks, "lifecycle-hooks", []string{"lifeboat-*"}, "names of lifecycle hooks to answer, in addition to those in NodeGroups; * matches any text")
	f.StringVar(&c.Account, "account", "", "AWS account whose notices are accepted (default: the account in the queue URL)")
	f.StringVar(&c.Region, "region", "", "AWS region whose notices are accepted (default: the region of the AWS SDK)")
	f.StringVar(&c.MetricsAddress, "metrics-bind-address", ":8080", "host:port of the Prometheus metrics, without a host on all addresses; 0 disables them")
	f.BoolVar(&c.MetricsSecure, "metrics-secure", false, "serve the metrics by TLS, with a self-signed certificate, to clients whose bearer token may get /metrics")
	f.StringVar(&c.HealthAddress, "health-probe-bind-address", ":8081", "host:port of /healthz and /readyz, without a host on all addresses; 0 disables them")
	f.BoolVar(&c.LeaderElect, "leader-elect", true, "elect one replica to act; all replicas receive notices")
	f.StringVar(&c.Namespace, "namespace", "", "Lifeboat's own namespace, with the Secrets of webhook URLs (default: the pod's namespace)")
	f.StringSliceVar(&c.HookNamespaces, "hook-namespaces", nil, "namespaces in which hooks of policies may run Jobs (default: none)")
	f.BoolVar(&c.Webhooks.HTTP, "webhook-allow-http", false, "let webhooks of policies call http URLs, not only https")
	f.BoolVar(&c.Webhooks.Private, "webhook-allow-private", false, "let webhooks of policies call private addresses, such as those of the cluster")
	f.BoolVar(&c.Webhooks.Loopback, "webhook-allow-loopback", false, "let webhooks of policies call loopback addresses (for tests)")
	f.StringVar(&c.LeaderElectionNamespace, "leader-election-namespace", "", "namespace of the leader election lease (default: the pod's namespace)")
	f.BoolVar(&c.Surge, "surge", true, "start the successors of pods first, where that is safe; false evicts all pods, and needs no permission to patch pods")
	f.BoolVar(&c.OutOfServiceTaint, "out-of-service-taint", false, "taint the Node of an instance that EC2 says is stopped or terminated as node.kubernetes.io/out-of-service, so that Kubernetes detaches its volumes at once (needs the chart value outOfServiceTaint.enabled)")
	f.StringVar(&mode, "mode", app.ModeAct, "Act, or Observe: receive notices, decide and report, but change no node, pod or AWS resource")
	f.DurationVar(&c.Margin, "margin", 10*time.Second, "time to keep between the end of a pod and a hard deadline")
	f.DurationVar(&c.TTL, "ttl", 24*time.Hour, "time to keep completed Interruptions")
	f.StringVar(&c.TracingEndpoint, "tracing-endpoint", "", "URL of an OTLP/HTTP collector for the spans of finished Interruptions, such as http://otel-collector.monitoring:4318 (default: OTEL_EXPORTER_OTLP_ENDPOINT, if set; else none)")
	f.BoolVar(&c.Development, "text-logs", false, "log as text instead of JSON")
	f.IntVarP(&c.Verbosity, "verbosity", "v", 0, "log level; 0: changes; 1: also decisions")
	return cmd
}
