package app

import (
	"os"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/lifeboat-dev/lifeboat/internal/controller/tracing"
	"github.com/lifeboat-dev/lifeboat/internal/tracing/otlp"
	"github.com/lifeboat-dev/lifeboat/internal/version"
)

// addTracing adds the controller that sends spans, if a collector is named.
func (c Config) addTracing(mgr ctrl.Manager) error {
	client, err := otlp.New(c.TracingEndpoint, map[string]string{
		"service.version": version.String(), "k8s.cluster.name": c.ClusterName,
		"cloud.provider": "aws", "cloud.region": c.Region, "cloud.account.id": c.Account,
	}, os.Getenv)
	if err != nil || client == nil {
		return err
	}
	mgr.GetLogger().Info("sending spans of finished Interruptions", "collector", client.Endpoint())
	loop, err := tracing.New(tracing.Options{Sender: client, Version: version.String(), Clock: time.Now, Registerer: metrics.Registry})
	if err != nil {
		return err
	}
	return loop.Register(mgr)
}
