package snapshot

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// FromAttributes is a queue as GetQueueAttributes describes it (SQS API
// Reference). What is not a number where one belongs counts as zero.
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

// Redrive reads a redrive policy, in JSON; one that cannot be read counts as
// none. SQS writes maxReceiveCount as a number and takes it as text too.
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

// What SQS gives a queue whose template says nothing (SQS API Reference,
// CreateQueue).
const (
	DefaultRetention   = 4 * 24 * time.Hour
	DefaultVisibility  = 30 * time.Second
	DefaultMaximumSize = 1 << 20
)

// The marks of what a template leaves open.
const (
	OpenRegion  = "{region}"
	OpenAccount = "{account}"
	// Open begins the name of anything else that a template leaves open.
	Open = "{?"
)
