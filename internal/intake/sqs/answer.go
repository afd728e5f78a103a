package sqs

import (
	"context"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const (
	// answersTime is what the answers for a batch may take in all.
	answersTime = 5 * time.Second
	// deleteTries is how often a delete is tried: what fails after that comes
	// again and is found to be a repeat.
	deleteTries = 3
)

// answer tells SQS what becomes of the messages of a batch.
func (s *Source) answer(ctx context.Context, messages []types.Message, fates []fate) {
	ctx, cancel := context.WithTimeout(ctx, answersTime)
	defer cancel()
	var done []types.DeleteMessageBatchRequestEntry
	var later []types.ChangeMessageVisibilityBatchRequestEntry
	for i, f := range fates {
		id := aws.String(strconv.Itoa(i))
		switch {
		case f.ack:
			done = append(done, types.DeleteMessageBatchRequestEntry{Id: id, ReceiptHandle: messages[i].ReceiptHandle})
		case f.again != nil:
			later = append(later, types.ChangeMessageVisibilityBatchRequestEntry{
				Id: id, ReceiptHandle: messages[i].ReceiptHandle, VisibilityTimeout: seconds(*f.again)})
		}
	}
	s.acknowledge(ctx, done)
	s.postpone(ctx, later)
}

// acknowledge deletes messages. SQS answers for each one by itself.
func (s *Source) acknowledge(ctx context.Context, entries []types.DeleteMessageBatchRequestEntry) {
	pause := backoff{longest: time.Second}
	for try := 1; len(entries) > 0; try++ {
		out, err := s.api.DeleteMessageBatch(ctx, &awssqs.DeleteMessageBatchInput{QueueUrl: aws.String(s.queue), Entries: entries}, once)
		switch {
		case err != nil:
			s.failed(ctx, "acknowledge", "sqs:DeleteMessage", err)
		case len(out.Failed) == 0:
			return
		default:
			s.failedEntries(ctx, "acknowledge", out.Failed)
			entries = notDeleted(entries, out.Failed)
		}
		if try == deleteTries || !sleep(ctx, pause.next()) {
			return
		}
	}
}

// notDeleted are the entries worth another try: those that failed by no fault
// of ours.
func notDeleted(entries []types.DeleteMessageBatchRequestEntry, failed []types.BatchResultErrorEntry) []types.DeleteMessageBatchRequestEntry {
	retry := map[string]bool{}
	for _, f := range failed {
		retry[aws.ToString(f.Id)] = !f.SenderFault
	}
	var left []types.DeleteMessageBatchRequestEntry
	for _, e := range entries {
		if retry[aws.ToString(e.Id)] {
			left = append(left, e)
		}
	}
	return left
}

// postpone sets when messages come again. Where that fails they come when the
// visibility ends, which is as well.
func (s *Source) postpone(ctx context.Context, entries []types.ChangeMessageVisibilityBatchRequestEntry) {
	if len(entries) == 0 {
		return
	}
	out, err := s.api.ChangeMessageVisibilityBatch(ctx, &awssqs.ChangeMessageVisibilityBatchInput{QueueUrl: aws.String(s.queue), Entries: entries}, once)
	switch {
	case err != nil:
		s.failed(ctx, "postpone", "sqs:ChangeMessageVisibility", err)
	case len(out.Failed) > 0:
		s.failedEntries(ctx, "postpone", out.Failed)
	}
}

func (s *Source) failed(ctx context.Context, operation, permission string, err error) {
	reason, advice := explain(permission, err)
	s.o.Metrics.Failed(Name, operation, reason)
	s.say(ctx, operation+" "+reason, "could not "+operation+" messages: they come again", "error", err.Error(), "advice", advice)
}

func (s *Source) failedEntries(ctx context.Context, operation string, failed []types.BatchResultErrorEntry) {
	for _, f := range failed {
		s.o.Metrics.Failed(Name, operation, "entry")
		s.say(ctx, operation+" "+aws.ToString(f.Code), "could not "+operation+" a message: it comes again",
			"code", aws.ToString(f.Code), "error", aws.ToString(f.Message))
	}
}
