package wiring

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// Wiring is what brings notices to one cluster, in one account and region.
type Wiring struct {
	// Cluster is the name of the cluster.
	Cluster string `json:"cluster"`
	// Account and Region say where the wiring is. Rules hear only of what
	// happens in their own region.
	Account string `json:"account"`
	Region  string `json:"region"`
	// Queue is where the notices arrive, DeadLetter where those go that could
	// not be read or delivered.
	Queue      Queue `json:"queue"`
	DeadLetter Queue `json:"deadLetter"`
	// Rules are the EventBridge rules on the default bus.
	Rules []Rule `json:"rules"`
}

// Queue is an SQS queue. Zero fields are left to SQS.
type Queue struct {
	Name string `json:"name"`
	// Retention is how long SQS keeps a message.
	Retention time.Duration `json:"retention"`
	// Visibility is how long a received message is hidden from other receivers.
	Visibility time.Duration `json:"visibility,omitempty"`
	// Wait is how long a receive waits for messages unless it says otherwise.
	Wait time.Duration `json:"wait,omitempty"`
	// MaxReceives is how often a message is received before it goes to the
	// dead-letter queue.
	MaxReceives int `json:"maxReceives,omitempty"`
}

// Rule is an EventBridge rule whose target is the queue.
type Rule struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Pattern is the event pattern, in JSON.
	Pattern string `json:"pattern"`
}

const (
	// retention: a controller that was away for a long weekend still hears of a
	// change that is scheduled for later. Warnings that old are dropped by their
	// time.
	retention = 4 * 24 * time.Hour
	// deadLetterRetention is the longest that SQS offers. A message that moves to
	// a dead-letter queue keeps the time at which it was first sent (SQS
	// Developer Guide, Dead-letter queues), so this leaves ten days to look.
	deadLetterRetention = 14 * 24 * time.Hour
	// visibility is for readers that do not ask for one of their own, as
	// lifeboatd does: as short, since it is what a reader that died costs a
	// two-minute warning.
	visibility = 10 * time.Second
	// longPoll is the longest that SQS offers.
	longPoll = 20 * time.Second
	// maxReceives bounds how long the API server may be away before a good notice
	// is set aside. lifeboatd keeps one in hand for some 25 seconds a receive, so
	// that is over ten minutes, far longer than a spot warning is worth anything.
	maxReceives = 30
)

// Wanted is the wiring of a cluster.
func Wanted(cluster, account, region string) Wiring {
	return Wiring{
		Cluster: cluster, Account: account, Region: region,
		Queue: Queue{
			Name: name(cluster, "", maxQueueName), Retention: retention,
			Visibility: visibility, Wait: longPoll, MaxReceives: maxReceives,
		},
		DeadLetter: Queue{Name: name(cluster, "-dead-letter", maxQueueName), Retention: deadLetterRetention},
		Rules: []Rule{
			{
				Name:        RuleName(cluster, "spot-interruption"),
				Description: "EC2 takes a spot instance back, in two minutes",
				Pattern:     `{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"]}`,
			},
			{
				Name:        RuleName(cluster, "rebalance"),
				Description: "A spot instance is at elevated risk of interruption",
				Pattern:     `{"source":["aws.ec2"],"detail-type":["EC2 Instance Rebalance Recommendation"]}`,
			},
			{
				Name:        RuleName(cluster, "state-change"),
				Description: "An instance is stopping or going, or has gone",
				Pattern: `{"source":["aws.ec2"],"detail-type":["EC2 Instance State-change Notification"],` +
					`"detail":{"state":["stopping","stopped","shutting-down","terminated"]}}`,
			},
		},
	}
}

// QueueARN is the ARN of the queue.
func (w Wiring) QueueARN() string { return w.arn("sqs", w.Queue.Name) }

// DeadLetterARN is the ARN of the dead-letter queue.
func (w Wiring) DeadLetterARN() string { return w.arn("sqs", w.DeadLetter.Name) }

// RuleARN is the ARN of a rule on the default bus.
func (w Wiring) RuleARN(rule string) string { return w.arn("events", "rule/"+rule) }

func (w Wiring) arn(service, resource string) string {
	return strings.Join([]string{"arn", partition(w.Region), service, w.Region, w.Account, resource}, ":")
}

// partition of a region (AWS General Reference, Amazon Resource Names).
func partition(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	default:
		return "aws"
	}
}

// Longest names (SQS and EventBridge API references, CreateQueue and PutRule).
const (
	maxQueueName = 80
	maxRuleName  = 64
)

// RuleName is the name of the cluster's rule with a role, such as
// spot-interruption.
func RuleName(cluster, role string) string { return name(cluster, "-"+role, maxRuleName) }

// name is lifeboat-<cluster><suffix>. Where the cluster's name has characters
// that a queue's may not (only letters, digits, - and _ may be) or is too long,
// it is changed, and ends in a digest so that two clusters do not meet.
func name(cluster, suffix string, longest int) string {
	const prefix = "lifeboat-"
	clean := strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z') {
			return r
		}
		return '-'
	}, cluster)
	if room := longest - len(prefix) - len(suffix); clean != cluster || len(clean) > room {
		digest := sha256.Sum256([]byte(cluster))
		tail := "-" + hex.EncodeToString(digest[:4])
		clean = clean[:min(len(clean), room-len(tail))] + tail
	}
	return prefix + clean + suffix
}
