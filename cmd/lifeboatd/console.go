package main

import (
	"github.com/spf13/cobra"

	"github.com/lifeboat-dev/lifeboat/internal/app"
)

func console() *cobra.Command {
	var c app.ConsoleConfig
	cmd := &cobra.Command{
		Use: "console", Short: "Serve the read-only web page about interruptions, for the API server's proxy",
		Long: `Serve the web page of ` + "`lifeboat console`" + ` in the cluster. It shows Interruptions, node groups
and policies with the rights of the pod's service account. It checks no viewer: the
API server's proxy does that. Do not expose it in another way.`,
		Example: "  lifeboatd console --bind-address :8474 --cluster-name prod",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return app.RunConsole(cmd.Context(), c) },
	}
	f := cmd.Flags()
	f.StringVar(&c.Kubeconfig, "kubeconfig", "", "path of the kubeconfig file (default: the pod's service account)")
	f.StringVar(&c.Address, "bind-address", "127.0.0.1:8474", "host:port of the page; without a host on all addresses")
	f.StringVar(&c.HealthAddress, "health-probe-bind-address", "127.0.0.1:8475", "host:port of /healthz and /readyz; 0 disables them")
	f.StringVar(&c.ClusterName, "cluster-name", "", "name of the cluster on the page")
	f.BoolVar(&c.Development, "text-logs", false, "log as text instead of JSON")
	f.IntVarP(&c.Verbosity, "verbosity", "v", 0, "log level; 0: changes")
	return cmd
}
