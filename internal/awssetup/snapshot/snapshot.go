// Package snapshot describes existing wiring as data: queues, their settings, rules
// and targets. The source is an account, a template or the output of a command. The
// package is pure.
//
// The fields named Known distinguish what does not exist from what was not read.
package snapshot

import (
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/symbol"
)

// Snapshot is the existing wiring.
type Snapshot struct {
	// Account and Region are its location; empty if a template does not define them.
	Account string `json:"account,omitempty"`
	Region  string `json:"region,omitempty"`
	// Offline is true for templates and files.
	Offline bool `json:"offline,omitempty"`
	// Queue is the ARN of the queue that Lifeboat reads. It is empty offline if no
	// queue was named; the check then covers every queue that rules fill.
	Queue string `json:"queue,omitempty"`
	// QueueMissing is true if the queue does not exist.
	QueueMissing bool `json:"queueMissing,omitempty"`

	Queues []Queue `json:"queues,omitempty"`
	// Absent are the ARNs of queues that others name and that do not exist.
	Absent []string `json:"absent,omitempty"`
	Rules  []Rule   `json:"rules,omitempty"`
	// Topics are the SNS topics that may send to the queue.
	Topics []Topic `json:"topics,omitempty"`
	// BusRules is the number of all rules on the default bus; 0 if unknown.
	BusRules int `json:"busRules,omitempty"`
	// Groups are the Auto Scaling groups of a template.
	Groups []Group `json:"groups,omitempty"`

	// Skew is the difference of the local clock to AWS's, positive if it is ahead;
	// nil if unknown.
	Skew *time.Duration `json:"skew,omitempty"`
	// Caller is the ARN of the credentials; empty if unknown.
	Caller string `json:"caller,omitempty"`
	// Denied are the AWS actions without an answer, for example events:ListRules.
	Denied []Denial `json:"denied,omitempty"`
	// Verdicts are the results of EventBridge's own pattern test.
	Verdicts []Verdict `json:"verdicts,omitempty"`
	// Unread are parts of the input that could not be interpreted.
	Unread []Unread `json:"unread,omitempty"`
	// Incomplete is true if parts of the wiring are missing: a kind that no rule delivers
	// may have one there.
	Incomplete bool `json:"incomplete,omitempty"`
	// KOps are the files that kops update cluster writes, with the name of the cluster.
	KOps map[string]string `json:"kops,omitempty"`
}

// Queue is an SQS queue.
type Queue struct {
	ARN  string `json:"arn"`
	Name string `json:"name"`
	URL  string `json:"url,omitempty"`
	// From is its source: a file and a name in it. Reference is the text by which
	// that file refers to its ARN, in JSON; empty if there is none.
	From      string `json:"from,omitempty"`
	Reference string `json:"reference,omitempty"`
	// Known is true if the attributes were read.
	Known bool `json:"known,omitempty"`
	// PolicyKnown is true if the policy was read.
	PolicyKnown bool `json:"policyKnown,omitempty"`
	// Policy is the policy document; empty without one.
	Policy string `json:"policy,omitempty"`

	Retention   time.Duration `json:"retention,omitempty"`
	Visibility  time.Duration `json:"visibility,omitempty"`
	Delay       time.Duration `json:"delay,omitempty"`
	MaximumSize int           `json:"maximumSize,omitempty"` // bytes

	// KMSKey is the key of SSE-KMS; empty without it.
	KMSKey string `json:"kmsKey,omitempty"`
	// KeyPolicy is the policy of that key, where it is known.
	KeyPolicy string `json:"keyPolicy,omitempty"`
	// ManagedSSE is true for SSE-SQS.
	ManagedSSE bool `json:"managedSSE,omitempty"`

	FIFO                bool `json:"fifo,omitempty"`
	ContentDeduplicated bool `json:"contentDeduplicated,omitempty"`

	// DeadLetterARN is the dead-letter queue; empty without one. MaxReceives is
	// how often a message is received before it goes there.
	DeadLetterARN string `json:"deadLetterARN,omitempty"`
	MaxReceives   int    `json:"maxReceives,omitempty"`

	// Waiting and InFlight are the numbers of visible messages and of received
	// messages that are not deleted yet.
	Waiting  int `json:"waiting,omitempty"`
	InFlight int `json:"inFlight,omitempty"`
	// Growth is the change of Waiting between two reads.
	Growth int `json:"growth,omitempty"`

	Tags map[string]string `json:"tags,omitempty"`
	// Readers are the policies in the same template that allow receiving from the
	// queue.
	Readers []string `json:"readers,omitempty"`
}

// Rule is an EventBridge rule.
type Rule struct {
	Name string `json:"name"`
	ARN  string `json:"arn,omitempty"`
	// From is its source: a file and a name in it. Reference is the text by which
	// that file refers to its ARN, in JSON; empty if there is none.
	From      string `json:"from,omitempty"`
	Reference string `json:"reference,omitempty"`
	// Bus is the event bus; empty or "default" is the default bus.
	Bus     string `json:"bus,omitempty"`
	Enabled bool   `json:"enabled"`
	// Pattern is the event pattern in JSON; empty for a schedule.
	Pattern string `json:"pattern,omitempty"`
	// Scheduled is true for a rule with a schedule.
	Scheduled bool `json:"scheduled,omitempty"`
	// TargetsKnown is true if the targets were read.
	TargetsKnown bool     `json:"targetsKnown,omitempty"`
	Targets      []Target `json:"targets,omitempty"`
}

// Target is the destination of a rule's events.
type Target struct {
	ID  string `json:"id,omitempty"`
	ARN string `json:"arn"`
	// RoleARN is the role that EventBridge assumes for the delivery; empty without a
	// role.
	RoleARN string `json:"roleARN,omitempty"`
	// Input, InputPath and Transformed change the message.
	Input       string `json:"input,omitempty"`
	InputPath   string `json:"inputPath,omitempty"`
	Transformed bool   `json:"transformed,omitempty"`
	// GroupID is the message group for a FIFO queue.
	GroupID string `json:"groupID,omitempty"`
	// DeadLetterARN is the queue for undeliverable events; empty without one.
	DeadLetterARN string `json:"deadLetterARN,omitempty"`
	// Topic is the topic between the rule and the queue; see [Snapshot.ThroughTopics].
	Topic string `json:"topic,omitempty"`
}

// Denial is an AWS action without an answer: AWS denied it, or it failed.
type Denial struct {
	// Action is for example sqs:GetQueueAttributes.
	Action string `json:"action"`
	// Object is the resource of the call.
	Object string `json:"object"`
	// Failure is the error of a call that failed; empty if AWS denied it.
	Failure string `json:"failure,omitempty"`
}

// Verdict is the result of EventBridge's TestEventPattern.
type Verdict struct {
	Rule    string `json:"rule"`
	Sample  string `json:"sample"`
	Matches bool   `json:"matches"`
}

// Unread is a part of the input that could not be interpreted.
type Unread struct {
	// From is its source: a file and a name in it.
	From string `json:"from"`
	// What describes the part and the reason.
	What string `json:"what"`
	// Fix says what the doctor needs in order to read it; empty if that is not known.
	Fix string `json:"fix,omitempty"`
}

// Title is the name of the queue for people: the name in its file, if AWS generates a
// part of the queue's name.
func (q Queue) Title() string { return title(q.Name, q.From) }

// Title is the name of the rule for people; see [Queue.Title].
func (r Rule) Title() string { return title(r.Name, r.From) }

func title(name, from string) string {
	if _, within, ok := strings.Cut(from, ", "); ok && symbol.Within(name) {
		return within
	}
	return name
}

// Partition returns the partition of a region (AWS General Reference, "Amazon
// Resource Names"; the region table of the AWS SDK).
func Partition(region string) string {
	for _, p := range []struct{ prefix, partition string }{
		{"cn-", "aws-cn"}, {"us-gov-", "aws-us-gov"}, {"us-iso-", "aws-iso"}, {"us-isob-", "aws-iso-b"},
		{"eu-isoe-", "aws-iso-e"}, {"us-isof-", "aws-iso-f"}, {"eusc-", "aws-eusc"},
	} {
		if strings.HasPrefix(region, p.prefix) {
			return p.partition
		}
	}
	return "aws"
}

// URLSuffix returns the domain of a partition's endpoints (the region table of the AWS
// SDK).
func URLSuffix(partition string) string {
	suffixes := map[string]string{
		"aws-cn": "amazonaws.com.cn", "aws-iso": "c2s.ic.gov", "aws-iso-b": "sc2s.sgov.gov",
		"aws-iso-e": "cloud.adc-e.uk", "aws-iso-f": "csp.hci.ic.gov", "aws-eusc": "amazonaws.eu",
	}
	if suffix := suffixes[partition]; suffix != "" {
		return suffix
	}
	return "amazonaws.com"
}

// DefaultBus is the bus to which AWS services send events.
const DefaultBus = "default"

// OnDefaultBus reports whether the rule is on the default bus, to which AWS services
// send events.
func (r Rule) OnDefaultBus() bool { return r.Bus == "" || BusName(r.Bus) == DefaultBus }

// BusName returns the name of a bus, given its name or ARN.
func BusName(bus string) string {
	if !strings.HasPrefix(bus, "arn:") {
		return bus
	}
	_, name, _ := strings.Cut(bus, ":event-bus/")
	return name
}

// To returns the targets of the rule with this queue.
func (r Rule) To(queue string) []Target {
	var all []Target
	for _, t := range r.Targets {
		if t.ARN == queue {
			all = append(all, t)
		}
	}
	return all
}

// FindQueue returns the queue with an ARN.
func (s Snapshot) FindQueue(arn string) (Queue, bool) {
	i := slices.IndexFunc(s.Queues, func(q Queue) bool { return q.ARN == arn })
	if i < 0 {
		return Queue{ARN: arn, Name: Name(arn)}, false
	}
	return s.Queues[i], true
}

// Name returns the last part of an ARN, or the text itself.
func Name(arn string) string {
	return arn[strings.LastIndexAny(arn, ":/")+1:]
}

// Part returns a part of an ARN: 3 is the region, 4 the account. It returns "" if the
// text is not an ARN.
func Part(arn string, i int) string {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) < 6 || parts[0] != "arn" || i >= len(parts) {
		return ""
	}
	return parts[i]
}
