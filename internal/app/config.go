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

	"github.com/lifeboat-dev/lifeboat/internal/hooks/runner"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Config is the configuration of `lifeboatd controller`.
type Config struct {
	// Kubeconfig is the kubeconfig file; empty: the pod's service account, or
	// $KUBECONFIG.
	Kubeconfig string
	// Sources are the names of the enabled notice sources. Empty: all but CloudTrail, which
	// CloudTrailInterval enables.
	Sources []string
	// SpotInterval, StatusInterval and AutoScalingInterval are the polling
	// intervals of spot requests, instance status and Auto Scaling groups.
	SpotInterval, StatusInterval, AutoScalingInterval time.Duration
	// LifecycleHooks are name patterns of the lifecycle hooks that Lifeboat
	// answers, in addition to those that NodeGroups name; * matches any text.
	// Empty: lifeboat-*.
	LifecycleHooks []string
	// StatusThreshold is how long a status check must fail before it becomes a
	// notice.
	StatusThreshold time.Duration
	// ClusterName is the cluster name in the wiring and in AWS tags. Empty:
	// derived from the queue name, if that is lifeboat-<cluster>.
	ClusterName string
	// guessed is true if ClusterName comes from the queue's name, which may
	// contain a changed form of it.
	guessed bool
	// CloudTrailInterval is how often CloudTrail's event history is polled for refused calls;
	// zero: never.
	CloudTrailInterval time.Duration
	// CanaryInterval is how often all rules are probed; zero: never.
	CanaryInterval time.Duration
	// QueueURL is the SQS queue that EventBridge delivers notices to.
	QueueURL string
	// KarpenterQueueURL is Karpenter's own interruption queue, to which
	// Lifeboat forwards notices; empty: none.
	KarpenterQueueURL string
	// KarpenterGuard is how long Karpenter may delete no NodeClaim whose policy
	// delays or refuses a drain, without a sign of life of Lifeboat; zero: it
	// may delete all of them.
	KarpenterGuard time.Duration
	// Account is the AWS account whose notices are accepted. Empty: the one in
	// the queue's URL.
	Account string
	// Region is the AWS region whose notices are accepted. Empty: the region of
	// the AWS SDK's configuration.
	Region string
	// MetricsAddress and HealthAddress are host:port to serve on; "0" disables.
	MetricsAddress, HealthAddress string
	// MetricsSecure serves the metrics by TLS, to clients whose token may get /metrics.
	MetricsSecure bool
	// LeaderElect enables leader election; all replicas receive notices.
	LeaderElect bool
	// LeaderElectionNamespace is the namespace of the lease; empty: the pod's.
	LeaderElectionNamespace string
	// Namespace is Lifeboat's own; empty: that of the lease, else the pod's,
	// else lifeboat-system.
	Namespace string
	// HookNamespaces are the namespaces in which hooks may run Jobs. Empty: none.
	HookNamespaces []string
	// Webhooks limits what webhooks of policies may call.
	Webhooks runner.Destinations
	// Margin is the reserve between a pod's last moment and a hard deadline.
	Margin time.Duration
	// Surge lets Lifeboat start the successor of a pod before it evicts the pod. That
	// needs the permission to patch pods.
	Surge bool
	// OutOfServiceTaint has Kubernetes detach the volumes of an instance that EC2 says is stopped
	// or terminated.
	OutOfServiceTaint bool
	// Observe records, decides and reports only: see observe.go.
	Observe bool
	// TTL is how long finished Interruptions are kept.
	TTL time.Duration
	// TracingEndpoint is the URL of an OTLP/HTTP collector; empty: that of the OTEL_ variables, if any.
	TracingEndpoint string
	// Development logs text instead of JSON.
	Development bool
	// Verbosity 0 logs changes, 1 also decisions.
	Verbosity int
}

var account = regexp.MustCompile(`^\d{12}$`)

// complete sets the defaults, or returns an error that names what is missing.
func (c Config) complete() (Config, error) {
	if len(c.Sources) == 0 {
		c.Sources = sourceNames()
	}
	if err := c.checkSources(); err != nil {
		return c, err
	}
	if c.CloudTrailInterval != 0 {
		c.Sources = append(slices.Clone(c.Sources), notice.SourceCloudTrail)
	}
	u, err := queueURL("--queue-url", c.QueueURL)
	if err != nil {
		return c, err
	}
	if _, err := queueURL("--karpenter-queue-url", c.KarpenterQueueURL); err != nil {
		return c, err
	}
	if c.KarpenterQueueURL != "" && c.KarpenterQueueURL == c.QueueURL {
		return c, errors.New("--karpenter-queue-url is Lifeboat's own queue: create a separate queue for Karpenter, without EventBridge rules")
	}
	c.Namespace = cmp.Or(c.Namespace, c.LeaderElectionNamespace, podNamespace(), defaultNamespace)
	if slices.Contains(c.HookNamespaces, c.Namespace) {
		return c, fmt.Errorf("--hook-namespaces names %s, which is Lifeboat's own: create another namespace for hook Jobs", c.Namespace)
	}
	if c.ClusterName == "" {
		c.ClusterName, c.guessed = clusterOf(c.QueueURL)
	}
	if c.Account == "" {
		c.Account = accountOf(u)
	}
	if c.Account != "" && !account.MatchString(c.Account) {
		return c, fmt.Errorf("--account %q is not an AWS account id: write its twelve digits", c.Account)
	}
	return c, errors.Join(c.checkMode(), c.checkTimes())
}

// queueURL parses the queue URL of a flag; the flag may be empty.
func queueURL(flag, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if text != "" && (err != nil || u.Host == "") {
		return nil, fmt.Errorf("%s %q is not a queue URL: write it as `aws sqs get-queue-url` prints it", flag, text)
	}
	return u, nil
}

// defaultNamespace is where the documentation installs Lifeboat.
const defaultNamespace = "lifeboat-system"

// podNamespace is the namespace of the current pod, or empty (Kubernetes
// documentation, "Accessing the Kubernetes API from a Pod").
func podNamespace() string {
	text, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// accountOf is the account in a queue URL, which is
// https://sqs.<region>.amazonaws.com/<account>/<name>, or empty.
func accountOf(queue *url.URL) string {
	if parts := strings.Split(strings.Trim(queue.Path, "/"), "/"); len(parts) == 2 && account.MatchString(parts[0]) {
		return parts[0]
	}
	return ""
}

// checkTimes checks the durations and what depends on them.
func (c Config) checkTimes() error {
	switch {
	case c.CanaryInterval != 0 && c.ClusterName == "":
		return errors.New("--canary-interval needs the cluster name, which cannot be derived from the queue name: set --cluster-name")
	case c.Margin < 0 || c.Margin > time.Minute:
		return fmt.Errorf("--margin %s is out of range: write a duration from 0s to 1m", c.Margin)
	case c.KarpenterGuard != 0 && (c.KarpenterGuard < 5*time.Minute || c.KarpenterGuard > 24*time.Hour):
		return fmt.Errorf("--karpenter-guard %s is out of range: write a duration from 5m to 24h, or 0 for no guard", c.KarpenterGuard)
	case c.TTL < time.Minute:
		return fmt.Errorf("--ttl %s is too short: write at least 1m", c.TTL)
	}
	return nil
}

// checkSources checks the settings of the notice sources.
func (c Config) checkSources() error {
	for _, name := range c.Sources {
		if !slices.Contains(sourceNames(), name) {
			return fmt.Errorf("--sources: unknown source %q: choose from %s", name, strings.Join(sourceNames(), ","))
		}
	}
	if c.QueueURL == "" && slices.Contains(c.Sources, notice.SourceQueue) {
		return errors.New("no SQS queue: set --queue-url or LIFEBOAT_QUEUE_URL, or remove sqs from --sources")
	}
	for _, f := range []struct {
		name     string
		interval time.Duration
	}{
		{"--spot-interval", c.SpotInterval}, {"--status-interval", c.StatusInterval},
		{"--status-threshold", c.StatusThreshold}, {"--autoscaling-interval", c.AutoScalingInterval},
		{"--cloudtrail-interval", c.CloudTrailInterval},
	} {
		if f.interval != 0 && (f.interval < time.Second || f.interval > time.Hour) { // zero: the source's own default
			return fmt.Errorf("%s %s is out of range: write a duration from 1s to 1h", f.name, f.interval)
		}
	}
	return nil
}
