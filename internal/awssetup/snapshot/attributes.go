package snapshot

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// FromAttributes converts the result of GetQueueAttributes (SQS API Reference). An
// invalid number counts as zero.
func FromAttributes(attributes map[string]string) Queue {
	number := func(name string) int {
		n, err := strconv.Atoi(attributes[name])
		if err != nil {
			return 0
		}
		return n
	}
	seconds := func(name string) time.Duration { return time.Duration(number(name)) * time.Second }
	q := Queue{
		ARN: attributes["QueueArn"], Name: Name(attributes["QueueArn"]), Known: true, PolicyKnown: true,
		Policy:    attributes["Policy"],
		Retention: seconds("MessageRetentionPeriod"), Visibility: seconds("VisibilityTimeout"), Delay: seconds("DelaySeconds"),
		MaximumSize: number("MaximumMessageSize"), KMSKey: attributes["KmsMasterKeyId"],
		ManagedSSE: strings.EqualFold(attributes["SqsManagedSseEnabled"], "true"),
		FIFO:       strings.EqualFold(attributes["FifoQueue"], "true"), ContentDeduplicated: strings.EqualFold(attributes["ContentBasedDeduplication"], "true"),
		Waiting: number("ApproximateNumberOfMessages"), InFlight: number("ApproximateNumberOfMessagesNotVisible"),
	}
	q.Redrive(attributes["RedrivePolicy"])
	return q
}

// Redrive reads a redrive policy in JSON. An unreadable policy counts as none. SQS
// writes maxReceiveCount as a number and also accepts it as text.
func (q *Queue) Redrive(policy string) {
	var redrive struct {
		Target string          `json:"deadLetterTargetArn"`
		Max    json.RawMessage `json:"maxReceiveCount"`
	}
	if policy == "" || json.Unmarshal([]byte(policy), &redrive) != nil {
		return
	}
	q.DeadLetterARN = redrive.Target
	if n, err := strconv.Atoi(strings.Trim(string(redrive.Max), `"`)); err == nil {
		q.MaxReceives = n
	}
}

// The defaults of SQS (SQS API Reference, CreateQueue).
const (
	DefaultRetention   = 4 * 24 * time.Hour
	DefaultVisibility  = 30 * time.Second
	DefaultMaximumSize = 1 << 20
)
