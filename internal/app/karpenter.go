package app

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
	"github.com/lifeboat-dev/lifeboat/internal/controller/nodeclaimguard"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeclaims"
)

// watchClaims watches the replacement NodeClaims on the leader and sends
// changed ones to the channels.
func watchClaims(ctx context.Context, mgr ctrl.Manager, changed ...chan<- event.TypedGenericEvent[string]) (*nodeclaims.Watcher, error) {
	kube, err := client.NewWithWatch(mgr.GetConfig(), client.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
	})
	if err != nil {
		return nil, fmt.Errorf("creating the client for NodeClaims: %w", err)
	}
	claims := nodeclaims.New(kube, nodeclaims.Interval, notify(ctx, changed...))
	return claims, mgr.Add(claims)
}

// readChannels are those channels for changed NodeClaims that something reads. With mode Observe
// nothing reads orphaned, and a full channel would stop the watch.
func (c Config) readChannels(replaced, orphaned chan<- event.TypedGenericEvent[string]) []chan<- event.TypedGenericEvent[string] {
	if c.Observe {
		return []chan<- event.TypedGenericEvent[string]{replaced}
	}
	return []chan<- event.TypedGenericEvent[string]{replaced, orphaned}
}

// forwardTimeout bounds one message to Karpenter's queue. A worker of the drains waits for it, and
// the pass itself retries.
const forwardTimeout = 5 * time.Second

// toKarpenter returns a function that sends a message to Karpenter's queue; nil
// if none is configured.
func toKarpenter(cloud aws.Config, c Config) func(context.Context, string) error {
	if c.KarpenterQueueURL == "" {
		return nil
	}
	queue := sqs.NewFromConfig(awshttp.WithTimeout(cloud, forwardTimeout), func(o *sqs.Options) { o.RetryMaxAttempts = 1 })
	return func(ctx context.Context, message string) error {
		_, err := queue.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &c.KarpenterQueueURL, MessageBody: &message})
		return err
	}
}

// addClaimGuard adds the controller that marks the NodeClaims which Karpenter may not delete for
// an interruption, if that is wanted.
func (c Config) addClaimGuard(mgr ctrl.Manager) error {
	if c.KarpenterGuard == 0 {
		return nil
	}
	return nodeclaimguard.New(nodeclaimguard.Options{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Limit: c.KarpenterGuard, Clock: time.Now,
	}).Register(mgr)
}
