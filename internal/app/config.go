package app

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Config is what `lifeboatd controller` can be told.
type Config struct {
	// Kubeconfig is a file to reach the cluster by; empty means the pod's own
	// service account, or $KUBECONFIG.
	Kubeconfig string
	// QueueURL is the SQS queue that EventBridge delivers notices to.
	QueueURL string
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
	if c.QueueURL == "" {
		return c, errors.New("no source of notices: give the SQS queue with --queue-url or LIFEBOAT_QUEUE_URL")
	}
	u, err := url.Parse(c.QueueURL)
	if err != nil || u.Host == "" {
		return c, fmt.Errorf("--queue-url %q is not a queue URL: write it as `aws sqs get-queue-url` prints it", c.QueueURL)
	}
	if c.Account == "" {
		// https://sqs.<region>.amazonaws.com/<account>/<name>
		if parts := strings.Split(strings.Trim(u.Path, "/"), "/"); len(parts) == 2 && account.MatchString(parts[0]) {
			c.Account = parts[0]
		}
	}
	if c.Account != "" && !account.MatchString(c.Account) {
		return c, fmt.Errorf("--account %q is not an AWS account id: write its twelve digits", c.Account)
	}
	if c.Margin < 0 || c.Margin > time.Minute {
		return c, fmt.Errorf("--margin %s is out of range: write a duration from 0s to 1m", c.Margin)
	}
	if c.TTL < time.Minute {
		return c, fmt.Errorf("--ttl %s is too short: write at least 1m", c.TTL)
	}
	return c, nil
}
