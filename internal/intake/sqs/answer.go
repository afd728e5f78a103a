package sqs

import (
	"context"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

const (
	// answersTime is what it may take in all to tell SQS of a batch.
	answersTime = 5 * time.Second
	// deleteTries is how often a delete is tried: what fails after that comes
	// again and is found to be a repeat.
	deleteTries = 3
)

// answer says what is to become of a message; it is done beside the receiving.
func (s *Source) answer(m *letter, f fate) {
	switch {
	case f.ack:
		s.deletes.in <- m.handle()
	case f.again != nil:
		if f.word == string(intake.NotYetKnown) && m.mayWait() {
			s.lobby.add(m, s.o.Clock().Add(*f.again))
		}
		s.returns.in <- postponement{handle: m.handle(), by: *f.again}
	}
}

// acknowledge deletes messages. SQS answers for each one by itself.
func (s *Source) acknowledge(ctx context.Context, handles []string) {
	ctx, cancel := context.WithTimeout(ctx, answersTime)
	defer cancel()
	var entries []types.DeleteMessageBatchRequestEntry
	for i, handle := range handles {
		entries = append(entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &handle})
	}
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
		if try == deleteTries || !sleep.For(ctx, pause.next()) {
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

// postponement says when a message may be received again.
type postponement struct {
	handle string
	by     time.Duration
}

// postpone sets when messages come again. Where that fails they come when the
// visibility ends, which is as well.
func (s *Source) postpone(ctx context.Context, all []postponement) {
	ctx, cancel := context.WithTimeout(ctx, answersTime)
	defer cancel()
	var entries []types.ChangeMessageVisibilityBatchRequestEntry
	for i, p := range all {
		entries = append(entries, types.ChangeMessageVisibilityBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(p.handle), VisibilityTimeout: seconds(p.by)})
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
