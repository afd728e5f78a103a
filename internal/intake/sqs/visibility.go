package sqs

import (
	"context"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

// renewVisibility extends the visibility timeout of messages until ctx ends; the returned
// channel is closed once it has stopped. Renewal lets the timeout be short, so that a
// crash costs a spot warning little of its two minutes.
func (s *Source) renewVisibility(ctx context.Context, messages []types.Message) <-chan struct{} {
	stopped := make(chan struct{})
	all := make([]visibilityChange, len(messages)) // the caller changes the messages meanwhile
	for i, m := range messages {
		all[i] = visibilityChange{handle: aws.ToString(m.ReceiptHandle), timeout: s.o.Visibility}
	}
	go func() {
		defer close(stopped)
		for sleep.For(ctx, s.o.Visibility/2) {
			s.changeVisibility(ctx, all)
		}
	}()
	return stopped
}

// visibilityChange hides a message for a time from now on.
type visibilityChange struct {
	handle  string
	timeout time.Duration
}

// changeVisibility sets visibility timeouts. Best effort: where it fails, the message
// becomes visible when its current timeout ends.
func (s *Source) changeVisibility(ctx context.Context, all []visibilityChange) {
	ctx, cancel := context.WithTimeout(ctx, responseTime)
	defer cancel()
	var entries []types.ChangeMessageVisibilityBatchRequestEntry
	for i, c := range all {
		entries = append(entries, types.ChangeMessageVisibilityBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(c.handle), VisibilityTimeout: seconds(c.timeout)})
	}
	out, err := s.api.ChangeMessageVisibilityBatch(ctx, &awssqs.ChangeMessageVisibilityBatchInput{QueueUrl: aws.String(s.queue), Entries: entries}, once)
	switch {
	case err != nil:
		s.failed(ctx, "postpone", "sqs:ChangeMessageVisibility", err)
	case len(out.Failed) > 0:
		s.failedEntries(ctx, "postpone", out.Failed)
	}
}
