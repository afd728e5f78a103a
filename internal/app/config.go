package app

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Config is what `lifeboatd controller` can be told.
type Config struct {
	// Kubeconfig is a file to reach the cluster by; empty means the pod's own
	// service account, or $KUBECONFIG.
	Kubeconfig string
	// Sources are the sources of notices that are listened to, by name. Empty
	// means all.
	Sources []string
	// SpotInterval, StatusInterval and AutoScalingInterval are how often AWS is
	// asked about spot requests, about instance status, and about groups.
	SpotInterval, StatusInterval, AutoScalingInterval time.Duration
	// LifecycleHooks are patterns for the names of lifecycle hooks that are answered,
	// beside those that NodeGroups name; * stands for any text. Empty: lifeboat-*.
	LifecycleHooks []string
	// StatusThreshold is for how long a status check has to fail before that
	// is a notice.
	StatusThreshold time.Duration
	// ClusterName is what the cluster is called in its wiring, and at AWS. Empty
	// means as the queue's name says, if it is lifeboat-<cluster>.
	ClusterName string
	// guessed: ClusterName is of the queue's name, and may be changed in it.
	guessed bool
	// CanaryInterval is how often all rules are probed; zero: never.
	CanaryInterval time.Duration
	// QueueURL is the SQS queue that EventBridge delivers notices to.
	QueueURL string
	// KarpenterQueueURL is the SQS queue that Karpenter takes its interruptions
	// from, which Lifeboat then feeds; empty: it has none.
	KarpenterQueueURL string
	// Account is the AWS account whose notices are taken in. Empty means the
	// one in the queue's URL.
	Account string
	// Region is the AWS region whose notices are taken in. Empty means the one
	// that the AWS SDK is configured for.
	Region string
	// MetricsAddress and HealthAddress are host:port to serve on; "0" is off.
	MetricsAddress, HealthAddress string
	// LeaderElect lets one of several replicas act; all of them take notices in.
	LeaderElect bool
	// LeaderElectionNamespace holds the lease; empty means the pod's own.
	LeaderElectionNamespace string
	// Namespace is Lifeboat's own; empty means that of the lease, or the pod's
	// own, or lifeboat-system.
	Namespace string
	// Margin is kept between a pod's last moment and a hard deadline.
	Margin time.Duration
	// TTL is how long finished Interruptions are kept.
	TTL time.Duration
	// Development logs as text for people and not as JSON.
	Development bool
	// Verbosity is 0 for what changed and 1 for decisions as well.
	Verbosity int
}

var account = regexp.MustCompile(`^\d{12}$`)

// complete fills in what follows from the rest, or says what is missing.
func (c Config) complete() (Config, error) {
	if len(c.Sources) == 0 {
		c.Sources = sourceNames()
	}
	if err := c.checkSources(); err != nil {
		return c, err
	}
	u, err := queueURL("--queue-url", c.QueueURL)
	if err != nil {
		return c, err
	}
	if _, err := queueURL("--karpenter-queue-url", c.KarpenterQueueURL); err != nil {
		return c, err
	}
	if c.KarpenterQueueURL != "" && c.KarpenterQueueURL == c.QueueURL {
		return c, errors.New("--karpenter-queue-url is Lifeboat's own queue: Karpenter needs one of its own, which no EventBridge rule feeds")
	}
	c.Namespace = cmp.Or(c.Namespace, c.LeaderElectionNamespace, podNamespace(), defaultNamespace)
	if c.ClusterName == "" {
		c.ClusterName, c.guessed = clusterOf(c.QueueURL)
	}
	if c.Account == "" {
		c.Account = accountOf(u)
	}
	if c.Account != "" && !account.MatchString(c.Account) {
		return c, fmt.Errorf("--account %q is not an AWS account id: write its twelve digits", c.Account)
	}
	return c, c.checkTimes()
}

// queueURL reads the URL that a flag gives of a queue, if it does.
func queueURL(flag, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if text != "" && (err != nil || u.Host == "") {
		return nil, fmt.Errorf("%s %q is not a queue URL: write it as `aws sqs get-queue-url` prints it", flag, text)
	}
	return u, nil
}

// defaultNamespace is where the documentation installs Lifeboat.
const defaultNamespace = "lifeboat-system"

// podNamespace is the namespace of the pod that this runs in, or empty
// (Kubernetes documentation, "Accessing the Kubernetes API from a Pod").
func podNamespace() string {
	text, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// accountOf is the account in a queue's URL, which is
// https://sqs.<region>.amazonaws.com/<account>/<name>, or empty.
func accountOf(queue *url.URL) string {
	if parts := strings.Split(strings.Trim(queue.Path, "/"), "/"); len(parts) == 2 && account.MatchString(parts[0]) {
		return parts[0]
	}
	return ""
}

// checkTimes checks what is said of times and what hangs on it.
func (c Config) checkTimes() error {
	switch {
	case c.CanaryInterval != 0 && c.ClusterName == "":
		return errors.New("--canary-interval needs the cluster's name, which the queue's does not tell: add --cluster-name")
	case c.Margin < 0 || c.Margin > time.Minute:
		return fmt.Errorf("--margin %s is out of range: write a duration from 0s to 1m", c.Margin)
	case c.TTL < time.Minute:
		return fmt.Errorf("--ttl %s is too short: write at least 1m", c.TTL)
	}
	return nil
}

// checkSources checks what is said of the sources of notices.
func (c Config) checkSources() error {
	for _, name := range c.Sources {
		if !slices.Contains(sourceNames(), name) {
			return fmt.Errorf("--sources: there is no source %q: write some of %s", name, strings.Join(sourceNames(), ","))
		}
	}
	if c.QueueURL == "" && slices.Contains(c.Sources, notice.SourceQueue) {
		return errors.New("no queue to take notices from: give the SQS queue with --queue-url or LIFEBOAT_QUEUE_URL, or leave sqs out of --sources")
	}
	for _, f := range []struct {
		name     string
		interval time.Duration
	}{
		{"--spot-interval", c.SpotInterval}, {"--status-interval", c.StatusInterval},
		{"--status-threshold", c.StatusThreshold}, {"--autoscaling-interval", c.AutoScalingInterval},
	} {
		if f.interval != 0 && (f.interval < time.Second || f.interval > time.Hour) { // zero: the source's own default
			return fmt.Errorf("%s %s is out of range: write a duration from 1s to 1h", f.name, f.interval)
		}
	}
	return nil
}
