package sqs

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// notDeleted returns the entries worth another try: those that failed through no fault
// of the sender.
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

func (s *Source) failed(ctx context.Context, operation, permission string, err error) {
	reason, advice := explain(permission, err)
	s.o.Metrics.Failed(Name, operation, reason)
	s.logThrottled(ctx, operation+" "+reason, "cannot "+operation+" messages: they become visible again", "error", err.Error(), "advice", advice)
}

func (s *Source) failedEntries(ctx context.Context, operation string, failed []types.BatchResultErrorEntry) {
	for _, f := range failed {
		s.o.Metrics.Failed(Name, operation, "entry")
		s.logThrottled(ctx, operation+" "+aws.ToString(f.Code), "cannot "+operation+" a message: it becomes visible again",
			"code", aws.ToString(f.Code), "error", aws.ToString(f.Message))
	}
}

// logThrottled logs at most one line a minute for each key.
func (s *Source) logThrottled(ctx context.Context, key, message string, names ...any) {
	if held, ok := s.throttle.Allow(key); ok {
		log.FromContext(ctx).Info(message, append(names, "alikeSince", held)...)
	}
}
