package sqs

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// shortRest is how soon a message that cannot be read comes again where a
	// dead-letter queue waits for it: the sooner it is there the better.
	shortRest = time.Second
	// firstRest and longestRest bound how long it rests where there is none.
	firstRest   = 30 * time.Second
	longestRest = 15 * time.Minute
)

// leave leaves a message that cannot be read in the queue, to be taken by the
// dead-letter queue soon. Where there is none, it rests for longer and longer.
func (s *Source) leave(ctx context.Context, m *types.Message, err error) fate {
	reason := "body"
	var cause *unreadableError
	if errors.As(err, &cause) {
		reason = cause.field
	}
	s.o.Metrics.Unreadable(Name, reason)
	s.say(ctx, "unreadable "+reason, "left unreadable message in the queue",
		"message", aws.ToString(m.MessageId), "error", err.Error(), "begins", quote(aws.ToString(m.Body)),
		"advice", "see who sends it: the queue is for EventBridge's messages as they are; it goes to the dead-letter queue if there is one, else it expires")
	f := fate{word: fateUnreadable}
	if policy := s.redrive.Load(); policy != nil {
		f.again = new(shortRest)
		if policy.Target == "" {
			f.again = rest(m, firstRest, longestRest)
		}
	}
	return f
}

// rest is how long a message rests that nothing can be done with now: twice as long
// each time it comes.
func rest(m *types.Message, first, longest time.Duration) *time.Duration {
	return new(min(longest, first<<min(receives(m)-1, 10)))
}

// passOver says why messages of a sort are of no concern.
func (s *Source) passOver(ctx context.Context, d *decoded) {
	if d.ordinary {
		log.FromContext(ctx).V(1).Info("passed over message", "what", d.what, "why", d.unconcern)
		return
	}
	s.say(ctx, "passed over "+d.what, "passed over message", "what", d.what, "why", d.unconcern,
		"advice", "nothing; to save the traffic, narrow the rule that sends it, and if it was meant to be heard, compare its detail-type with the AWS documentation")
}

// receives is how often a message was received, this time included.
func receives(m *types.Message) int {
	count, err := strconv.Atoi(m.Attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)])
	if err != nil || count < 1 {
		return 1
	}
	return count
}
