package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/app"
)

func agent() *cobra.Command {
	var c app.AgentConfig
	cmd := &cobra.Command{
		Use: "agent", Short: "Run the agent that reads the instance metadata of its node",
		Example: "  lifeboatd agent --node-name ip-10-0-1-7.eu-west-1.compute.internal",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return app.RunAgent(cmd.Context(), c) },
	}
	cmd.AddCommand(bootAgent())
	f := cmd.Flags()
	f.StringVar(&c.Kubeconfig, "kubeconfig", "", "path of the kubeconfig file (default: the pod's service account)")
	f.StringVar(&c.NodeName, "node-name", os.Getenv("NODE_NAME"), "name of the node on which the agent runs [$NODE_NAME]")
	f.DurationVar(&c.PollInterval, "poll-interval", 2*time.Second, "interval between reads of instance metadata")
	f.StringVar(&c.MetricsAddress, "metrics-bind-address", "127.0.0.1:8090", "host:port of the Prometheus metrics; 0 disables them")
	f.StringVar(&c.HealthAddress, "health-probe-bind-address", "127.0.0.1:8091", "host:port of /healthz and /readyz; 0 disables them")
	f.BoolVar(&c.Development, "text-logs", false, "log as text instead of JSON")
	f.IntVarP(&c.Verbosity, "verbosity", "v", 0, "log level; 0: changes; 1: also decisions")
	return cmd
}
