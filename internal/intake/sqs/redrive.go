package sqs

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

// inspect reads the queue's redrive policy once, with retries.
func (s *Source) inspect(ctx context.Context) {
	pause := backoff{longest: longestPause}
	for {
		out, err := s.api.GetQueueAttributes(ctx, &awssqs.GetQueueAttributesInput{
			QueueUrl:       aws.String(s.queue),
			AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameRedrivePolicy},
		}, once)
		if err == nil {
			s.setRedrive(ctx, out.Attributes)
			return
		}
		if ctx.Err() != nil {
			return
		}
		reason, advice := explain("sqs:GetQueueAttributes", err)
		s.o.Metrics.Failed(Name, "inspect", reason)
		s.logThrottled(ctx, "inspect "+reason, "cannot read whether the queue has a dead-letter queue", "error", err, "advice", advice)
		if reason == reasonDenied || !sleep.For(ctx, pause.next()) {
			return
		}
	}
}

// setRedrive stores the redrive policy and logs what is wrong with it.
func (s *Source) setRedrive(ctx context.Context, attributes map[string]string) {
	policy, err := redriveOf(attributes)
	logger := log.FromContext(ctx)
	switch {
	case err != nil:
		logger.Error(err, "cannot decode the queue's redrive policy")
		return
	case policy.Target == "":
		logger.Info("queue has no dead-letter queue: unreadable messages become visible again until they expire",
			"advice", fmt.Sprintf(`create a queue for them, then: aws sqs set-queue-attributes --queue-url %s --attributes '{"RedrivePolicy":"{\"deadLetterTargetArn\":\"ARN\",\"maxReceiveCount\":\"10\"}"}'`, s.queue))
	case policy.Receives < s.o.MaxReceives:
		logger.Info("queue moves messages to its dead-letter queue early: notices of instances that register late are dropped early too",
			"maxReceiveCount", policy.Receives, "advice", fmt.Sprintf("set maxReceiveCount of the queue's redrive policy to %d or more", s.o.MaxReceives+2))
	}
	s.redrive.Store(&policy)
}
