package sqs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// firstDeadLetterRetry and longestDeadLetterRetry bound the backoff where a redrive policy
	// moves an unreadable message to a dead-letter queue after some receives: the sooner the
	// better, but thousands that return each second would delay real notices.
	firstDeadLetterRetry   = time.Second
	longestDeadLetterRetry = 10 * time.Second
	// firstUnreadableRetry and longestUnreadableRetry bound the backoff where there is no
	// dead-letter queue.
	firstUnreadableRetry   = 30 * time.Second
	longestUnreadableRetry = 15 * time.Minute
)

// leaveUnreadable leaves a message that cannot be decoded in the queue, for the
// dead-letter queue or, without one, to be received again with backoff.
func (s *Source) leaveUnreadable(ctx context.Context, m *types.Message, err error) disposition {
	reason := "body"
	var cause *unreadableError
	if errors.As(err, &cause) {
		reason = cause.field
	}
	s.o.Metrics.Unreadable(Name, reason)
	s.logThrottled(ctx, "unreadable "+reason, "left unreadable message in the queue",
		"message", aws.ToString(m.MessageId), "error", err.Error(), "begins", quote(aws.ToString(m.Body)),
		"advice", "see who sends it: the queue is for EventBridge's messages as they are; it goes to the dead-letter queue if there is one, else it expires")
	d := disposition{outcome: outcomeUnreadable}
	if policy := s.redrive.Load(); policy != nil {
		d.retryIn = retryAfter(m, firstDeadLetterRetry, longestDeadLetterRetry)
		if policy.Target == "" {
			d.retryIn = retryAfter(m, firstUnreadableRetry, longestUnreadableRetry)
		}
	}
	return d
}

// retryAfter doubles the time for which a message is hidden with each receive.
func retryAfter(m *types.Message, first, longest time.Duration) *time.Duration {
	return new(min(longest, first<<min(receives(m)-1, 10)))
}

// logIgnored logs why a message does not concern this cluster.
func (s *Source) logIgnored(ctx context.Context, d *decoded) {
	if d.ordinary {
		log.FromContext(ctx).V(1).Info("ignored message", "what", d.what, "why", d.unconcern)
		return
	}
	s.logThrottled(ctx, "ignored "+d.what, "ignored message", "what", d.what, "why", d.unconcern,
		"advice", "nothing; to save the traffic, narrow the rule that sends it; if Lifeboat should understand it, compare its detail-type with the AWS documentation")
}

// receives is how often the message was received, this time included.
func receives(m *types.Message) int {
	count, err := strconv.Atoi(m.Attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)])
	if err != nil || count < 1 {
		return 1
	}
	return count
}

// unreadableError says which part of a message could not be read.
type unreadableError struct {
	// field is the part of the message, such as detail.instance-id. It is from a closed list,
	// so that it can be a metric label.
	field string
	// cause says what was found and what was expected.
	cause string
}

func (e *unreadableError) Error() string { return "reading " + e.field + ": " + e.cause }

func unreadable(field, cause string, args ...any) error {
	return &unreadableError{field: field, cause: fmt.Sprintf(cause, args...)}
}

// maxQuote is how much of a value from a message goes into a log line.
const maxQuote = 80

func quote(s string) string {
	if len(s) > maxQuote {
		s = strings.ToValidUTF8(s[:maxQuote], "") + "…"
	}
	return fmt.Sprintf("%q", s)
}

// unreadableJSON is the error for JSON that is not an object of strings. parent is the field that
// contains it; empty: the whole body.
func unreadableJSON(parent string, err error) error {
	var wrongType *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &wrongType):
		return unreadable(cmp.Or(parent, "body"), "expected a JSON object: %v", err)
	case wrongType.Field == "":
		return unreadable(cmp.Or(parent, "body"), "found a JSON %s, expected a JSON object", wrongType.Value)
	}
	return unreadable(strings.TrimPrefix(parent+"."+wrongType.Field, "."), "found a JSON %s, expected a string", wrongType.Value)
}
