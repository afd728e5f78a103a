package app

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/lifeboat-dev/lifeboat/internal/controller/unheard"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/probe"
	"github.com/lifeboat-dev/lifeboat/internal/wiring"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/diagnose"
)

// causeOf finds out why the queue did not bring a notice, by looking at the
// wiring as `lifeboat doctor` does.
func causeOf(cloud aws.Config, c Config) unheard.Cause {
	clients := diagnose.NewClients(sqs.NewFromConfig(cloud), eventbridge.NewFromConfig(cloud))
	target := c.target()
	return func(ctx context.Context, kind string) (because, advice string) {
		if c.QueueURL == "" {
			return "there is no queue", "wire it: lifeboat wire apply --cluster " + cmp.Or(c.ClusterName, "NAME")
		}
		return diagnose.Cause(ctx, clients, target, kind)
	}
}

// target is the wiring to look at. Its cluster goes into advice, which is followed:
// better no name there than one that is only guessed.
func (c Config) target() diagnose.Target {
	t := diagnose.Target{Desired: c.wiring(), QueueURL: c.QueueURL}
	if c.guessed {
		t.Desired.Cluster = "NAME"
	}
	return t
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
	canary, err := probe.NewCanary(prober, c.wiring().Rules, c.CanaryInterval, metrics.Registry)
	if err != nil {
		return err
	}
	return mgr.Add(canary)
}

// clusterOf is the cluster's name as the queue's tells it, if `lifeboat wire` made
// it: lifeboat-<cluster>; and whether it may be changed in that.
func clusterOf(queueURL string) (cluster string, guessed bool) {
	w, sure := wiring.InferFromQueueName(queueOf(queueURL), "", "")
	return w.Cluster, !sure
}

// queueOf is the name of a queue, which its URL ends in.
func queueOf(queueURL string) string { return queueURL[strings.LastIndexByte(queueURL, '/')+1:] }

// wiring is what the cluster's is to be like. Where its name is guessed, so are the
// names in the wiring, from the same queue.
func (c Config) wiring() wiring.Wiring {
	if c.guessed {
		w, _ := wiring.InferFromQueueName(queueOf(c.QueueURL), c.Account, c.Region)
		return w
	}
	return wiring.Desired(c.ClusterName, c.Account, c.Region)
}

// expected says whose notices and probes are taken in. A probe names the cluster as
// whoever sent it was told: it is ours if `lifeboat wire` makes our queue for that
// name.
func (c Config) expected() intake.Options {
	return intake.Options{Account: c.Account, Region: c.Region, Cluster: c.ClusterName, Alias: c.called}
}

// tagReader reads the tags of queues; *sqs.Client does.
type tagReader interface {
	ListQueueTags(context.Context, *sqs.ListQueueTagsInput, ...func(*sqs.Options)) (*sqs.ListQueueTagsOutput, error)
}

// longestNaming bounds how long the start waits for the cluster's name.
const longestNaming = 5 * time.Second

// named has the queue's tag tell the cluster's name, where the queue's name leaves it
// open. Roles of before this was asked may not read it: then it says what to do,
// and goes on with the guess.
func (c Config) named(ctx context.Context, queues tagReader) Config {
	if !c.guessed {
		c.checkName(ctx)
		return c
	}
	ctx, cancel := context.WithTimeout(ctx, longestNaming)
	defer cancel()
	out, err := queues.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: &c.QueueURL})
	if err == nil {
		if name := out.Tags[wiring.TagCluster]; name != "" && wiring.QueueName(name) == queueOf(c.QueueURL) {
			c.ClusterName, c.guessed = name, false
			return c
		}
		err = fmt.Errorf("reading the queue's tags: none named %s tells a cluster of which this is the queue", wiring.TagCluster)
	}
	ctrl.LoggerFrom(ctx).Info("the cluster's name is not known for sure", "queue", c.QueueURL, "guess", c.ClusterName, "cause", err.Error(), "advice", nameIt)
	return c
}

// checkName says so where the queue is one of `lifeboat wire`, but by its name not of
// the cluster that was given: one of the two was copied from elsewhere. It is no
// error, since a queue that others made can be called as they like.
func (c Config) checkName(ctx context.Context) {
	if of, _ := clusterOf(c.QueueURL); of != "" && !c.called(of) {
		ctrl.LoggerFrom(ctx).Info("the queue has the name of another cluster's", "queue", c.QueueURL, "cluster", c.ClusterName,
			"advice", "see that aws.clusterName and aws.queueURL of the chart are of one cluster; probes and tags go by the name")
	}
}

// called reports whether a name is the cluster's, or one for which `lifeboat wire`
// makes the same queue.
func (c Config) called(name string) bool {
	return wiring.QueueName(name) == wiring.QueueName(c.ClusterName)
}

// nameIt says what to do where the cluster's name is only guessed.
const nameIt = "give the name that `lifeboat wire` was given: aws.clusterName of the chart, or --cluster-name"
