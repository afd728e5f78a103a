package sqs

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
)

// API is the part of SQS that is used; NewClient makes the real one.
type API interface {
	ReceiveMessage(context.Context, *awssqs.ReceiveMessageInput, ...func(*awssqs.Options)) (*awssqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(context.Context, *awssqs.DeleteMessageBatchInput, ...func(*awssqs.Options)) (*awssqs.DeleteMessageBatchOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *awssqs.ChangeMessageVisibilityBatchInput, ...func(*awssqs.Options)) (*awssqs.ChangeMessageVisibilityBatchOutput, error)
	GetQueueAttributes(context.Context, *awssqs.GetQueueAttributesInput, ...func(*awssqs.Options)) (*awssqs.GetQueueAttributesOutput, error)
}

const (
	// longestWait is SQS's limit for a long poll, and batchSize its limit for a batch (Amazon
	// SQS API Reference, ReceiveMessage and DeleteMessageBatch).
	longestWait = 20 * time.Second
	batchSize   = 10
	// answerTime is the limit for a response beyond the wait. The SDK has none: a connection
	// that a firewall dropped would hang forever.
	answerTime = 10 * time.Second
)

// NewClient makes a client whose timeout is slightly longer than a long poll. The endpoint can
// be set as for every AWS SDK: AWS_ENDPOINT_URL_SQS, or AWS_ENDPOINT_URL.
func NewClient(config aws.Config) *awssqs.Client {
	return awssqs.NewFromConfig(awshttp.WithTimeout(config, longestWait+answerTime))
}

// once disables the SDK's retries: receivers have their own backoff, and log it.
func once(o *awssqs.Options) { o.RetryMaxAttempts = 1 }

// checkURL reports whether a queue is given by its URL, and not by name or ARN.
func checkURL(queue string) error {
	u, err := url.Parse(queue)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") || len(u.Path) < 2 {
		return fmt.Errorf("%q is no queue URL: give one such as https://sqs.eu-west-1.amazonaws.com/123456789012/lifeboat (aws sqs get-queue-url --queue-name NAME prints it)", queue)
	}
	return nil
}

// redrive is the redrive policy of a queue.
type redrive struct {
	// Target is the ARN of the dead-letter queue; empty: there is none.
	Target string
	// Receives is after how many receives a message is moved there.
	Receives int
}

// redriveOf reads the attribute RedrivePolicy, in which maxReceiveCount may be a number or a
// string.
func redriveOf(attributes map[string]string) (redrive, error) {
	text := attributes[string(types.QueueAttributeNameRedrivePolicy)]
	if text == "" {
		return redrive{}, nil
	}
	var policy struct {
		Target   string `json:"deadLetterTargetArn"`
		Receives any    `json:"maxReceiveCount"`
	}
	if err := json.Unmarshal([]byte(text), &policy); err != nil {
		return redrive{}, fmt.Errorf("reading RedrivePolicy: %w", err)
	}
	receives, err := strconv.Atoi(fmt.Sprint(policy.Receives))
	if err != nil {
		return redrive{}, fmt.Errorf("reading maxReceiveCount of RedrivePolicy: %w", err)
	}
	return redrive{Target: policy.Target, Receives: receives}, nil
}

// backoff spaces failed calls, so that many replicas do not retry at the same time when SQS
// recovers, and none retries much later.
type backoff struct {
	longest  time.Duration
	failures int
}

const (
	firstPause   = 250 * time.Millisecond
	longestPause = 5 * time.Second // between receives that fail
)

// next returns the pause after one more failure: between half and all of a time that doubles up
// to the longest pause.
func (b *backoff) next() time.Duration {
	pause := b.longest
	if b.failures < 10 {
		pause = min(b.longest, firstPause<<b.failures)
		b.failures++
	}
	return pause/2 + rand.N(pause/2)
}

func (b *backoff) reset() { b.failures = 0 }
