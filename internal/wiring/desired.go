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
	// Account, Region and Partition say where the wiring is. Rules hear only of
	// what happens in their own region.
	Account   string `json:"account"`
	Region    string `json:"region"`
	Partition string `json:"partition"`
	// Queue is where the notices arrive, DeadLetter where those go that could
	// not be read or delivered.
	Queue      Queue `json:"queue"`
	DeadLetter Queue `json:"deadLetter"`
	// Rules are the EventBridge rules on the default bus.
	Rules []Rule `json:"rules"`
	// Groups are the Auto Scaling groups that the rules about them are limited
	// to; none: they hear of all.
	Groups []string `json:"groups,omitempty"`
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

// Wanted is the wiring of a cluster. Account and region may be placeholders, such
// as ${AWS::Region}, where text is made of it that somebody else fills in; the
// partition then is the caller's to set.
func Wanted(cluster, account, region string) Wiring {
	w := Wiring{
		Cluster: cluster, Account: account, Region: region, Partition: partition(region),
		Queue: Queue{
			Name: QueueName(cluster), Retention: retention,
			Visibility: visibility, Wait: longPoll, MaxReceives: maxReceives,
		},
		DeadLetter: Queue{Name: name(cluster, deadLetterSuffix, maxQueueName), Retention: deadLetterRetention},
	}
	for _, r := range roles() {
		w.Rules = append(w.Rules, r.rule(cluster))
	}
	return w
}

// QueueARN is the ARN of the queue.
func (w Wiring) QueueARN() string { return w.arn("sqs", w.Queue.Name) }

// DeadLetterARN is the ARN of the dead-letter queue.
func (w Wiring) DeadLetterARN() string { return w.arn("sqs", w.DeadLetter.Name) }

// Target is what each rule sends to: the queue, and what cannot be delivered to
// the dead-letter queue, where a person can see it.
func (w Wiring) Target() Target {
	return Target{ID: targetID, ARN: w.QueueARN(), DeadLetterARN: w.DeadLetterARN()}
}

// RuleARN is the ARN of a rule on the default bus.
func (w Wiring) RuleARN(rule string) string { return w.arn("events", "rule/"+rule) }

// BusARN is the ARN of the default bus, on which AWS puts its events.
func (w Wiring) BusARN() string { return w.arn("events", "event-bus/default") }

// GroupARN is what the ARN of an Auto Scaling group looks like, for policies: a part
// of it is made up when the group is created (Service Authorization Reference,
// "Amazon EC2 Auto Scaling").
func (w Wiring) GroupARN(group string) string {
	return w.arn("autoscaling", "autoScalingGroup:*:autoScalingGroupName/"+group)
}

func (w Wiring) arn(service, resource string) string {
	return strings.Join([]string{"arn", w.Partition, service, w.Region, w.Account, resource}, ":")
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

// The tags of what Lifeboat made.
const (
	// TagCluster names the cluster that a queue or a rule is for.
	TagCluster = "lifeboat.dev/cluster"
	// TagManagedBy says who looks after it: [ManagedByLifeboat], or the tool that
	// applied a template which `lifeboat wire emit` printed.
	TagManagedBy = "lifeboat.dev/managed-by"
	// ManagedByLifeboat marks what Apply made, may change and may delete.
	ManagedByLifeboat = "lifeboat"
)

// Tags are the tags of everything that Apply makes.
func (w Wiring) Tags() map[string]string {
	return map[string]string{TagCluster: w.Cluster, TagManagedBy: ManagedByLifeboat}
}

// Longest names (SQS and EventBridge API references, CreateQueue and PutRule).
const (
	maxQueueName = 80
	maxRuleName  = 64
)

// QueueName is the name of the cluster's queue.
func QueueName(cluster string) string { return name(cluster, "", maxQueueName) }

// RuleName is the name of the cluster's rule with a role, such as
// spot-interruption.
func RuleName(cluster, role string) string { return name(cluster, "-"+role, maxRuleName) }

const (
	prefix           = "lifeboat-"
	deadLetterSuffix = "-dead-letter"
)

// RulePrefix begins the names of all rules of a cluster, those of other releases
// too, and perhaps some of other clusters.
func RulePrefix(cluster string) string {
	const longestRole = 24
	clean := cleaned(cluster)
	room := maxRuleName - len(prefix) - longestRole - digestLength
	if clean == cluster && len(clean) <= room {
		return prefix + clean + "-"
	}
	return prefix + clean[:min(len(clean), room)]
}

// digestLength is that of a digest in a name, with its hyphen.
const digestLength = 9

// name is lifeboat-<cluster><suffix>. Where the cluster's name has characters
// that a queue's may not (only letters, digits, - and _ may be) or is too long,
// it is changed, and ends in a digest so that two clusters do not meet.
func name(cluster, suffix string, longest int) string {
	clean := cleaned(cluster)
	if room := longest - len(prefix) - len(suffix); clean != cluster || len(clean) > room {
		digest := sha256.Sum256([]byte(cluster))
		return digested(clean, "-"+hex.EncodeToString(digest[:4]), suffix, longest)
	}
	return prefix + clean + suffix
}

// digested is a name that ends in a digest before its suffix, cut to a length.
func digested(clean, digest, suffix string, longest int) string {
	room := longest - len(prefix) - len(digest) - len(suffix)
	return prefix + clean[:min(len(clean), room)] + digest + suffix
}

func cleaned(cluster string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z') {
			return r
		}
		return '-'
	}, cluster)
}
