package app

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/lifeboat-dev/lifeboat/internal/controller/unheard"
	"github.com/lifeboat-dev/lifeboat/internal/probe"
	"github.com/lifeboat-dev/lifeboat/internal/wiring"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/diagnose"
)

// causeOf finds out why the queue did not bring a notice, by looking at the
// wiring as `lifeboat doctor` does.
func causeOf(cloud aws.Config, c Config) unheard.Cause {
	clients := diagnose.NewClients(sqs.NewFromConfig(cloud), eventbridge.NewFromConfig(cloud))
	target := diagnose.Target{Want: wiring.Wanted(c.ClusterName, c.Account, c.Region), QueueURL: c.QueueURL}
	return func(ctx context.Context, kind string) (because, advice string) {
		if c.QueueURL == "" {
			return "there is no queue", "wire it: lifeboat wire apply --cluster " + c.ClusterName
		}
		return diagnose.Cause(ctx, clients, target, kind)
	}
}

// addCanary adds the canary, if there is to be one.
func addCanary(mgr ctrl.Manager, cloud aws.Config, c Config) error {
	if c.CanaryInterval == 0 {
		return nil
	}
	kube, err := client.NewWithWatch(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme()})
	if err != nil {
		return fmt.Errorf("making the canary's client: %w", err)
	}
	prober := probe.New(probe.Options{Events: eventbridge.NewFromConfig(cloud), Kube: kube, Cluster: c.ClusterName})
	canary, err := probe.NewCanary(prober, wiring.Wanted(c.ClusterName, c.Account, c.Region).Rules, c.CanaryInterval, metrics.Registry)
	if err != nil {
		return err
	}
	return mgr.Add(canary)
}

// clusterOf is the cluster's name as the queue's tells it, if `lifeboat wire`
// made it: lifeboat-<cluster>.
func clusterOf(queueURL string) string {
	name, ok := strings.CutPrefix(queueURL[strings.LastIndexByte(queueURL, '/')+1:], "lifeboat-")
	if !ok {
		return ""
	}
	return name
}
