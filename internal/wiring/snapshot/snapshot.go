// Package snapshot is the wiring of an account as it was found, whether an
// account answered, a template was read, or the output of a command: queues,
// their settings, rules and targets, as data. It is pure.
//
// What was not looked at is told from what is not there: see the fields named
// Known.
package snapshot

import (
	"slices"
	"strings"
	"time"
)

// Snapshot is the wiring that was found.
type Snapshot struct {
	// Account and Region are where it is; empty where a template does not say.
	Account string `json:"account,omitempty"`
	Region  string `json:"region,omitempty"`
	// Offline is true for templates and files.
	Offline bool `json:"offline,omitempty"`
	// Queue is the ARN of the queue that Lifeboat reads. It is empty offline
	// where no queue was named: every queue that rules fill is meant then.
	Queue string `json:"queue,omitempty"`
	// QueueMissing is true where AWS says that there is no such queue.
	QueueMissing bool `json:"queueMissing,omitempty"`

	Queues []Queue `json:"queues,omitempty"`
	Rules  []Rule  `json:"rules,omitempty"`
	// Groups are the Auto Scaling groups of a template.
	Groups []Group `json:"groups,omitempty"`

	// Skew is how far the clock here is ahead of AWS's; nil if not known.
	Skew *time.Duration `json:"skew,omitempty"`
	// Caller is the ARN of who looked; empty if not known.
	Caller string `json:"caller,omitempty"`
	// Denied are the actions that AWS refused, such as events:ListRules.
	Denied []Denial `json:"denied,omitempty"`
	// Verdicts are what EventBridge itself says of patterns.
	Verdicts []Verdict `json:"verdicts,omitempty"`
	// Unread are parts of the input that could not be understood.
	Unread []Unread `json:"unread,omitempty"`
}

// Queue is an SQS queue.
type Queue struct {
	ARN  string `json:"arn"`
	Name string `json:"name"`
	URL  string `json:"url,omitempty"`
	// From is where it is written: a file and a name in it.
	From string `json:"from,omitempty"`
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

	// Waiting and InFlight are how many messages nobody and somebody has taken.
	Waiting  int `json:"waiting,omitempty"`
	InFlight int `json:"inFlight,omitempty"`
	// Growth is by how much Waiting grew between two looks.
	Growth int `json:"growth,omitempty"`

	Tags map[string]string `json:"tags,omitempty"`
	// Readers are the policies in the same template that let somebody receive.
	Readers []string `json:"readers,omitempty"`
}

// Rule is an EventBridge rule.
type Rule struct {
	Name string `json:"name"`
	ARN  string `json:"arn,omitempty"`
	// From is where it is written: a file and a name in it.
	From string `json:"from,omitempty"`
	// Bus is the bus; empty or "default" is the default one.
	Bus     string `json:"bus,omitempty"`
	Enabled bool   `json:"enabled"`
	// Pattern is the event pattern in JSON; empty for a schedule.
	Pattern string `json:"pattern,omitempty"`
	// TargetsKnown is true if the targets were read.
	TargetsKnown bool     `json:"targetsKnown,omitempty"`
	Targets      []Target `json:"targets,omitempty"`
}

// Target is where a rule sends what it matches.
type Target struct {
	ID  string `json:"id,omitempty"`
	ARN string `json:"arn"`
	// RoleARN is the role that EventBridge takes on to deliver; empty without.
	RoleARN string `json:"roleARN,omitempty"`
	// Input, InputPath and Transformed say what changes the message.
	Input       string `json:"input,omitempty"`
	InputPath   string `json:"inputPath,omitempty"`
	Transformed bool   `json:"transformed,omitempty"`
	// GroupID is the message group for a FIFO queue.
	GroupID string `json:"groupID,omitempty"`
	// DeadLetterARN is the queue for what cannot be delivered; empty without.
	DeadLetterARN string `json:"deadLetterARN,omitempty"`
}

// Denial is an action that AWS refused.
type Denial struct {
	// Action is such as sqs:GetQueueAttributes.
	Action string `json:"action"`
	// Object is what it was asked of.
	Object string `json:"object"`
}

// Verdict is what EventBridge's TestEventPattern says.
type Verdict struct {
	Rule    string `json:"rule"`
	Sample  string `json:"sample"`
	Matches bool   `json:"matches"`
}

// Unread is a part of the input that could not be understood.
type Unread struct {
	// From is where it is: a file and a name in it.
	From string `json:"from"`
	// What says what it is, and why it was not understood.
	What string `json:"what"`
}

// DefaultBus is the bus on which AWS services speak.
const DefaultBus = "default"

// OnDefaultBus tells whether a rule hears AWS's own services.
func (r Rule) OnDefaultBus() bool { return r.Bus == "" || BusName(r.Bus) == DefaultBus }

// BusName is the name of a bus, of which the name or the ARN is given.
func BusName(bus string) string {
	if !strings.HasPrefix(bus, "arn:") {
		return bus
	}
	_, name, _ := strings.Cut(bus, ":event-bus/")
	return name
}

// To returns the targets of a rule that are a queue.
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

// Name is the last part of an ARN, or the text itself.
func Name(arn string) string {
	return arn[strings.LastIndexAny(arn, ":/")+1:]
}

// Part returns a part of an ARN: 3 is the region, 4 the account. It is empty
// where the text is no ARN.
func Part(arn string, i int) string {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) < 6 || parts[0] != "arn" || i >= len(parts) {
		return ""
	}
	return parts[i]
}
