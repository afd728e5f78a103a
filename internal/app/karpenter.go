package app

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/lifeboat-dev/lifeboat/internal/claimwatch"
)

// watchClaims watches the NodeClaims that are replacements, on the leader alone,
// and tells who is concerned of each that changes.
func watchClaims(ctx context.Context, mgr ctrl.Manager, tell ...chan<- event.TypedGenericEvent[string]) (*claimwatch.Watcher, error) {
	kube, err := client.NewWithWatch(mgr.GetConfig(), client.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
	})
	if err != nil {
		return nil, fmt.Errorf("making the client for NodeClaims: %w", err)
	}
	claims := claimwatch.New(kube, claimwatch.Interval, notify(ctx, tell...))
	return claims, mgr.Add(claims)
}

// toKarpenter puts messages on Karpenter's own queue; nil: there is none that
// Lifeboat feeds.
func toKarpenter(cloud aws.Config, c Config) func(context.Context, string) error {
	if c.KarpenterQueueURL == "" {
		return nil
	}
	queue := sqs.NewFromConfig(cloud)
	return func(ctx context.Context, message string) error {
		_, err := queue.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &c.KarpenterQueueURL, MessageBody: &message})
		return err
	}
}
