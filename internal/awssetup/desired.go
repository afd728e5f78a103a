package awssetup

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
)

// Wiring is the set of AWS resources that delivers notices to one cluster, in one
// account and region.
type Wiring struct {
	// Cluster is the name of the cluster.
	Cluster string `json:"cluster"`
	// Account, Region and Partition are the location of the wiring. Rules receive
	// only events of their own region.
	Account   string `json:"account"`
	Region    string `json:"region"`
	Partition string `json:"partition"`
	// Queue receives the notices. DeadLetter receives undeliverable and unreadable
	// messages.
	Queue      Queue `json:"queue"`
	DeadLetter Queue `json:"deadLetter"`
	// Topic is the name of the SNS topic that several clusters of the account share; empty
	// without one. The rules then send to the topic, and the topic to the queue.
	Topic string `json:"topic,omitempty"`
	// Leaves is the topic that the cluster shared before. The queue's policy still allows it, so
	// that no notice is refused while the cluster's own rules replace it.
	Leaves string `json:"leaves,omitempty"`
	// Rules are the EventBridge rules on the default bus.
	Rules []Rule `json:"rules"`
	// Groups are the Auto Scaling groups to which the Auto Scaling rules are limited.
	// If empty, the rules match all groups.
	Groups []string `json:"groups,omitempty"`
	// Senders are the ARNs of the roles and users that may send to the queue themselves:
	// for drills, and to redrive the dead-letter queue. They may contain asterisks.
	Senders []string `json:"senders,omitempty"`

	// Replaces are the names of the rules that merged rules replace. The queue's policy allows
	// them too, so that no notice is refused while one form replaces the other.
	Replaces []string `json:"replaces,omitempty"`
}

// Queue is an SQS queue. Zero fields have the default of SQS.
type Queue struct {
	Name string `json:"name"`
	// Retention is how long SQS keeps a message.
	Retention time.Duration `json:"retention"`
	// Visibility is how long a received message is hidden from other receivers.
	Visibility time.Duration `json:"visibility,omitempty"`
	// Wait is the default wait time of a receive call.
	Wait time.Duration `json:"wait,omitempty"`
	// MaxReceives is how often a message is received before it goes to the
	// dead-letter queue.
	MaxReceives int `json:"maxReceives,omitempty"`
}

const (
	// retention lets a controller that was down for a long weekend still receive
	// changes that are scheduled for later. Expired warnings are dropped by their
	// timestamp.
	retention = 4 * 24 * time.Hour
	// deadLetterRetention is the maximum of SQS. A message in a dead-letter queue
	// keeps the time at which it was first sent (SQS Developer Guide, "Dead-letter
	// queues"), so an operator has ten days to look at it.
	deadLetterRetention = 14 * 24 * time.Hour
	// visibility is for readers that set no visibility timeout. lifeboatd sets its
	// own. It is short, because after a crash of the reader it delays a two-minute
	// warning.
	visibility = 10 * time.Second
	// longPoll is the maximum of SQS.
	longPoll = 20 * time.Second
	// maxReceives limits how long the API server may be unavailable before a good
	// notice moves to the dead-letter queue. lifeboatd holds a message for about 25
	// seconds per receive, so the limit is over ten minutes. A spot warning is
	// useless long before that.
	maxReceives = 30
)

// Desired returns the wiring of a cluster. Account and region may be placeholders,
// for example ${AWS::Region}, if another tool fills them in. The caller must then set
// Partition.
func Desired(cluster, account, region string) Wiring {
	w := Wiring{
		Cluster: cluster, Account: account, Region: region, Partition: snapshot.Partition(region),
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

// Target returns the target of each rule: the queue, and the dead-letter queue for
// undeliverable events; or the topic.
func (w Wiring) Target() Target {
	if w.Topic != "" {
		return Target{ID: topicTargetID, ARN: w.TopicARN(w.Topic)}
	}
	return Target{ID: targetID, ARN: w.QueueARN(), DeadLetterARN: w.DeadLetterARN()}
}

// RuleARN is the ARN of a rule on the default bus.
func (w Wiring) RuleARN(rule string) string { return w.arn("events", "rule/"+rule) }

// BusARN is the ARN of the default bus, to which AWS sends its events.
func (w Wiring) BusARN() string { return w.arn("events", "event-bus/default") }

// GroupARN returns a pattern for the ARN of an Auto Scaling group, for policies. AWS
// generates a part of the ARN when the group is created (Service Authorization
// Reference, "Amazon EC2 Auto Scaling").
func (w Wiring) GroupARN(group string) string {
	return w.arn("autoscaling", "autoScalingGroup:*:autoScalingGroupName/"+group)
}

func (w Wiring) arn(service, resource string) string {
	return strings.Join([]string{"arn", w.Partition, service, w.Region, w.Account, resource}, ":")
}

// The tags of the resources that Lifeboat creates.
const (
	// TagCluster names the cluster of a queue or a rule.
	TagCluster = "lifeboat.dev/cluster"
	// TagManagedBy names the manager of the resource: [ManagedByLifeboat], or the
	// tool that applied a template of `lifeboat aws emit`.
	TagManagedBy = "lifeboat.dev/managed-by"
	// TagTopic names the shared topic of a queue, a rule or the topic itself.
	TagTopic = "lifeboat.dev/topic"
	// ManagedByLifeboat marks resources that Apply created, and may change and
	// delete.
	ManagedByLifeboat = "lifeboat"
)

// Tags returns the tags of the resources of one cluster that Apply creates.
func (w Wiring) Tags() map[string]string {
	tags := map[string]string{TagCluster: w.Cluster, TagManagedBy: ManagedByLifeboat}
	if w.Topic != "" {
		tags[TagTopic] = w.Topic
	}
	return tags
}

// RuleTags returns the tags of the rules that Apply creates, and those of the topic: clusters
// share them.
func (w Wiring) RuleTags() map[string]string {
	tags := w.Tags()
	if w.Topic != "" {
		delete(tags, TagCluster)
	}
	return tags
}

// Maximum lengths of names (SQS and EventBridge API references, CreateQueue and
// PutRule).
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

// RulePrefix is the common prefix of all rule names of a cluster, including those of
// other releases. Rules of other clusters can have it too.
func RulePrefix(cluster string) string {
	const longestRole = 24
	clean := sanitize(cluster)
	room := maxRuleName - len(prefix) - longestRole - digestLength
	if clean == cluster && len(clean) <= room {
		return prefix + clean + "-"
	}
	return prefix + clean[:min(len(clean), room)]
}

// digestLength is the length of a digest in a name, including its hyphen.
const digestLength = 9

// name returns lifeboat-<cluster><suffix>. A queue name may contain only letters,
// digits, - and _. If the cluster's name has other characters or is too long, it is
// changed and ends in a digest, so that two clusters never share a name.
func name(cluster, suffix string, longest int) string {
	clean := sanitize(cluster)
	if room := longest - len(prefix) - len(suffix); clean != cluster || len(clean) > room {
		digest := sha256.Sum256([]byte(cluster))
		return nameWithDigest(clean, "-"+hex.EncodeToString(digest[:4]), suffix, longest)
	}
	return prefix + clean + suffix
}

// nameWithDigest returns a name with a digest before its suffix, cut to the maximum
// length.
func nameWithDigest(clean, digest, suffix string, longest int) string {
	room := longest - len(prefix) - len(digest) - len(suffix)
	return prefix + clean[:min(len(clean), room)] + digest + suffix
}

func sanitize(cluster string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z') {
			return r
		}
		return '-'
	}, cluster)
}
