// Command lifeboatd is what runs in clusters. See `lifeboatd --help`.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
	_ "time/tzdata" // policies name time zones; images need not have them

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/app"
	"github.com/lifeboat-dev/lifeboat/internal/version"
)

func main() {
	app.LimitGarbage()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := root().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "lifeboatd:", err)
		os.Exit(1)
	}
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use: "lifeboatd", Short: "Gets pods off doomed nodes before they go down",
		Version: version.String(), SilenceUsage: true, SilenceErrors: true,
	}
	cmd.AddCommand(controller(), agent())
	return cmd
}

func controller() *cobra.Command {
	var c app.Config
	cmd := &cobra.Command{
		Use: "controller", Short: "Takes notices in and evacuates nodes; runs in the cluster",
		Example: "  lifeboatd controller --queue-url https://sqs.eu-west-1.amazonaws.com/123456789012/lifeboat-prod",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return app.Run(cmd.Context(), c) },
	}
	f := cmd.Flags()
	f.StringVar(&c.Kubeconfig, "kubeconfig", "", "kubeconfig file; in a pod leave it out")
	f.StringVar(&c.QueueURL, "queue-url", os.Getenv("LIFEBOAT_QUEUE_URL"), "SQS queue that EventBridge delivers notices to [$LIFEBOAT_QUEUE_URL]")
	f.StringVar(&c.KarpenterQueueURL, "karpenter-queue-url", os.Getenv("LIFEBOAT_KARPENTER_QUEUE_URL"), "SQS queue of Karpenter's that Lifeboat feeds once a node is handed over [$LIFEBOAT_KARPENTER_QUEUE_URL]")
	f.StringVar(&c.ClusterName, "cluster-name", "", "what the cluster is called in its wiring (default: as the queue's name says)")
	f.DurationVar(&c.CanaryInterval, "canary-interval", 0, "how often a probe is sent through every rule and waited for, at least 1m; 0 is never (needs events:PutEvents)")
	f.StringSliceVar(&c.Sources, "sources", []string{"sqs", "ec2", "autoscaling"}, "sources of notices that are listened to")
	f.DurationVar(&c.SpotInterval, "spot-interval", 15*time.Second, "how often EC2 is asked about spot requests")
	f.DurationVar(&c.StatusInterval, "status-interval", time.Minute, "how often EC2 is asked about scheduled events and status checks")
	f.DurationVar(&c.StatusThreshold, "status-threshold", 2*time.Minute, "for how long a status check has to fail before that is a notice")
	f.DurationVar(&c.AutoScalingInterval, "autoscaling-interval", 30*time.Second, "how often Auto Scaling is asked about groups")
	f.StringSliceVar(&c.LifecycleHooks, "lifecycle-hooks", []string{"lifeboat-*"}, "names of lifecycle hooks of Auto Scaling groups that are answered, beside those that NodeGroups name; * stands for any text")
	f.StringVar(&c.Account, "account", "", "AWS account whose notices are taken in (default: the one in the queue's URL)")
	f.StringVar(&c.Region, "region", "", "AWS region whose notices are taken in (default: the AWS SDK's)")
	f.StringVar(&c.MetricsAddress, "metrics-bind-address", ":8080", "address of the Prometheus metrics; 0 is off")
	f.StringVar(&c.HealthAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz; 0 is off")
	f.BoolVar(&c.LeaderElect, "leader-elect", true, "let one of several replicas act; all take notices in")
	f.StringVar(&c.Namespace, "namespace", "", "Lifeboat's own namespace, where hook Jobs run, with the Secrets that webhooks' URLs come from (default: the pod's own)")
	f.StringVar(&c.LeaderElectionNamespace, "leader-election-namespace", "", "namespace of the lease (default: the pod's own)")
	f.DurationVar(&c.Margin, "margin", 10*time.Second, "time kept between a pod's last moment and a hard deadline")
	f.DurationVar(&c.TTL, "ttl", 24*time.Hour, "how long finished Interruptions are kept")
	f.BoolVar(&c.Development, "text-logs", false, "log as text and not as JSON")
	f.IntVarP(&c.Verbosity, "verbosity", "v", 0, "0: what changed; 1: decisions as well")
	return cmd
}
