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

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/probe"
	"github.com/lifeboat-dev/lifeboat/internal/controller/sourcehealth"
	"github.com/lifeboat-dev/lifeboat/internal/doctor"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
)

// causeOf finds out why the queue did not deliver a notice. It checks the
// wiring like `lifeboat doctor`.
func causeOf(cloud aws.Config, c Config) sourcehealth.Cause {
	clients := doctor.NewClients(sqs.NewFromConfig(cloud), eventbridge.NewFromConfig(cloud)) // without SNS, for a small program
	target := c.target()
	return func(ctx context.Context, kind string) (because, advice string) {
		if c.QueueURL == "" {
			return "there is no queue", "create it: lifeboat aws setup --cluster " + cmp.Or(c.ClusterName, "NAME")
		}
		return doctor.Cause(ctx, clients, target, kind)
	}
}

// target is the wiring to check. Users copy the cluster name from the advice,
// so a guessed name is replaced by a placeholder.
func (c Config) target() doctor.Target {
	t := doctor.Target{Desired: c.wiring(), QueueURL: c.QueueURL}
	if c.guessed {
		t.Desired.Cluster = "NAME"
	}
	return t
}

// addCanary adds the canary if it is enabled.
func addCanary(mgr ctrl.Manager, cloud aws.Config, c Config) error {
	if c.CanaryInterval == 0 {
		return nil
	}
	kube, err := client.NewWithWatch(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme()})
	if err != nil {
		return fmt.Errorf("creating the canary's client: %w", err)
	}
	prober := probe.New(probe.Options{Events: eventbridge.NewFromConfig(cloud), Kube: kube, Cluster: c.ClusterName})
	canary, err := probe.NewCanary(prober, c.wiring().Rules, c.CanaryInterval, metrics.Registry)
	if err != nil {
		return err
	}
	return mgr.Add(canary)
}

// clusterOf derives the cluster name from the queue name if `lifeboat aws`
// made it: lifeboat-<cluster>. guessed is true if the queue name may contain a
// changed form.
func clusterOf(queueURL string) (cluster string, guessed bool) {
	w, sure := awssetup.InferFromQueueName(queueOf(queueURL), "", "")
	return w.Cluster, !sure
}

// queueOf is the last part of a queue URL, its name.
func queueOf(queueURL string) string { return queueURL[strings.LastIndexByte(queueURL, '/')+1:] }

// wiring is the wiring that the cluster should have. If the cluster name is
// guessed, the names derive from the queue name.
func (c Config) wiring() awssetup.Wiring {
	if c.guessed {
		w, _ := awssetup.InferFromQueueName(queueOf(c.QueueURL), c.Account, c.Region)
		return w
	}
	return awssetup.Desired(c.ClusterName, c.Account, c.Region)
}

// expected are the limits for accepted notices and probes. A probe contains the
// cluster name that its sender knows: it is ours if `lifeboat aws` derives our
// queue name from it.
func (c Config) expected() intake.Options {
	var rules []string
	for _, rule := range c.wiring().Rules {
		rules = append(rules, rule.Role)
	}
	return intake.Options{Account: c.Account, Region: c.Region, Cluster: c.ClusterName, Alias: c.isCluster, Rules: rules}
}

// tagReader reads queue tags; *sqs.Client implements it.
type tagReader interface {
	ListQueueTags(context.Context, *sqs.ListQueueTagsInput, ...func(*sqs.Options)) (*sqs.ListQueueTagsOutput, error)
}

// namingTimeout bounds how long the start waits for the cluster name.
const namingTimeout = 5 * time.Second

// resolveClusterName reads the cluster name from the queue's tag if the queue
// name is ambiguous. Older IAM roles may not read tags: it then logs what to do
// and keeps the guess.
func (c Config) resolveClusterName(ctx context.Context, queues tagReader) Config {
	if !c.guessed {
		c.checkName(ctx)
		return c
	}
	ctx, cancel := context.WithTimeout(ctx, namingTimeout)
	defer cancel()
	out, err := queues.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: &c.QueueURL})
	if err == nil {
		if name := out.Tags[awssetup.TagCluster]; name != "" && awssetup.QueueName(name) == queueOf(c.QueueURL) {
			c.ClusterName, c.guessed = name, false
			return c
		}
		err = fmt.Errorf("reading the queue's tags: the tag %s is missing or belongs to another cluster", awssetup.TagCluster)
	}
	ctrl.LoggerFrom(ctx).Info("the cluster name is uncertain", "queue", c.QueueURL, "guess", c.ClusterName, "cause", err.Error(), "advice", clusterNameAdvice)
	return c
}

// checkName logs a warning if `lifeboat aws` made the queue for another
// cluster than the configured one. It is not an error: users may choose queue
// names.
func (c Config) checkName(ctx context.Context) {
	if of, _ := clusterOf(c.QueueURL); of != "" && !c.isCluster(of) {
		ctrl.LoggerFrom(ctx).Info("the queue name belongs to another cluster", "queue", c.QueueURL, "cluster", c.ClusterName,
			"advice", "check that the chart values aws.clusterName and aws.queueURL belong to the same cluster; probes and tags use the name")
	}
}

// isCluster reports whether a name is the cluster's, or one for which `lifeboat
// aws` derives the same queue name.
func (c Config) isCluster(name string) bool {
	return awssetup.QueueName(name) == awssetup.QueueName(c.ClusterName)
}

// clusterNameAdvice says what to do about a guessed cluster name.
const clusterNameAdvice = "set the name that was used with `lifeboat aws`: chart value aws.clusterName, or --cluster-name"
