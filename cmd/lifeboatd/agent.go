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
		Use: "agent", Short: "Takes in what a node's own instance metadata says; runs on each node",
		Example: "  lifeboatd agent --node-name ip-10-0-1-7.eu-west-1.compute.internal",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return app.RunAgent(cmd.Context(), c) },
	}
	cmd.AddCommand(bootAgent())
	f := cmd.Flags()
	f.StringVar(&c.Kubeconfig, "kubeconfig", "", "kubeconfig file; in a pod leave it out")
	f.StringVar(&c.NodeName, "node-name", os.Getenv("NODE_NAME"), "node that the agent runs on [$NODE_NAME]")
	f.DurationVar(&c.PollInterval, "poll-interval", 2*time.Second, "how often instance metadata is read")
	f.StringVar(&c.MetricsAddress, "metrics-bind-address", ":8090", "address of the Prometheus metrics; 0 is off")
	f.StringVar(&c.HealthAddress, "health-probe-bind-address", ":8091", "address of /healthz and /readyz; 0 is off")
	f.BoolVar(&c.Development, "text-logs", false, "log as text and not as JSON")
	f.IntVarP(&c.Verbosity, "verbosity", "v", 0, "0: what changed; 1: decisions as well")
	return cmd
}
