package diagnose

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lifeboat-dev/lifeboat/internal/wiring/snapshot"
)

// queue looks at the queue that Lifeboat reads, and its dead-letter queue.
func (l *look) queue(ctx context.Context) error {
	name := l.target.Want.Queue.Name
	l.out.Queue = l.target.Want.QueueARN()
	if l.target.QueueURL != "" {
		name = snapshot.Name(l.target.QueueURL)
		l.out.Queue = l.arnOf(name)
	}
	l.target.step("looking at the queue " + name)
	q, err := l.oneQueue(ctx, name, l.target.QueueURL)
	if err != nil {
		return err
	}
	if l.out.QueueMissing = q == nil; q == nil {
		return nil
	}
	l.out.Queue, l.url = q.ARN, q.URL
	if l.out.Account == "" || l.out.Region == "" {
		l.out.Account, l.out.Region = snapshot.Part(q.ARN, 4), snapshot.Part(q.ARN, 3)
	}
	l.out.Queues = append(l.out.Queues, *q)
	if l.brief {
		return nil
	}
	return l.deadLetters(ctx, q.DeadLetterARN)
}

// arnOf is the ARN of a queue of this account.
func (l *look) arnOf(name string) string {
	w := l.target.Want
	w.Queue.Name = name
	return w.QueueARN()
}

// oneQueue looks at a queue; nil says that there is none of this name. Where AWS
// refuses, all that is known is its name.
func (l *look) oneQueue(ctx context.Context, name, url string) (*snapshot.Queue, error) {
	unseen := &snapshot.Queue{Name: name, ARN: l.arnOf(name), URL: url}
	if url == "" {
		out, err := l.clients.Queues.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name})
		if isMissing(err) {
			l.seen++
			return nil, nil
		}
		if denied, err := l.answered("sqs:GetQueueUrl", "queue "+name, err); err != nil || denied {
			return unseen, err
		}
		url = aws.ToString(out.QueueUrl)
		unseen.URL = url
	}
	out, err := l.clients.Queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &url, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameAll},
	})
	if isMissing(err) {
		l.seen++
		return nil, nil
	}
	if denied, err := l.answered("sqs:GetQueueAttributes", "queue "+name, err); err != nil || denied {
		return unseen, err
	}
	l.clock(out.ResultMetadata)
	q := snapshot.FromAttributes(out.Attributes)
	q.URL = url
	if q.ARN == "" {
		q.ARN, q.Name = unseen.ARN, name
	}
	if l.brief {
		return &q, nil
	}
	return &q, l.tags(ctx, &q)
}

// tags reads the tags of a queue, which tell whose it is.
func (l *look) tags(ctx context.Context, q *snapshot.Queue) error {
	out, err := l.clients.Queues.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: &q.URL})
	if isMissing(err) {
		return nil // deleted between two calls
	}
	denied, err := l.answered("sqs:ListQueueTags", "queue "+q.Name, err)
	if err == nil && !denied {
		q.Tags = out.Tags
	}
	return err
}

func isMissing(err error) bool {
	var missing *sqstypes.QueueDoesNotExist
	return errors.As(err, &missing) || code(err) == "QueueDoesNotExist"
}

// deadLetters looks at a dead-letter queue, unless that is done.
func (l *look) deadLetters(ctx context.Context, arn string) error {
	if arn == "" || l.known(arn) || snapshot.Part(arn, 4) != l.out.Account || snapshot.Part(arn, 3) != l.out.Region {
		return nil
	}
	q, err := l.oneQueue(ctx, snapshot.Name(arn), "")
	if err == nil && q != nil {
		l.out.Queues = append(l.out.Queues, *q)
	}
	return err
}

func (l *look) known(arn string) bool {
	return slices.ContainsFunc(l.out.Queues, func(q snapshot.Queue) bool { return q.ARN == arn })
}

// otherQueues looks at the queues that rules for notices fill besides, and at
// where they put what they cannot deliver.
func (l *look) otherQueues(ctx context.Context) error {
	for _, r := range l.out.Rules {
		for _, t := range r.Targets {
			for _, arn := range []string{t.ARN, t.DeadLetterARN} {
				if snapshot.Part(arn, 2) != "sqs" {
					continue
				}
				if err := l.deadLetters(ctx, arn); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// bogus is a receipt handle that no message has: SQS looks at the permission
// before it looks at the handle.
const bogus = "lifeboat-doctor-tries-permissions"

// permissions tries what a reader does with messages. Receiving is not tried: it
// would take a notice away from the controller for a while.
func (l *look) permissions(ctx context.Context) error {
	if l.clients.Messages == nil || l.url == "" {
		return nil
	}
	l.target.step("trying permissions")
	object := "queue " + snapshot.Name(l.out.Queue)
	_, err := l.clients.Messages.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &l.url, ReceiptHandle: aws.String(bogus)})
	if err := l.tried("sqs:DeleteMessage", object, err); err != nil {
		return err
	}
	_, err = l.clients.Messages.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: &l.url, ReceiptHandle: aws.String(bogus)})
	return l.tried("sqs:ChangeMessageVisibility", object, err)
}

// tried notes how a trial went: any answer about the handle, or the queue, says
// that the permission is there.
func (l *look) tried(action, object string, err error) error {
	if code(err) != "" && !isDenied(err) {
		err = nil
	}
	_, err = l.answered(action, object, err)
	return err
}

// growth counts the waiting messages a second time.
func (l *look) growth(ctx context.Context) error {
	if l.url == "" || len(l.out.Queues) == 0 || !l.out.Queues[0].Known {
		return nil
	}
	name := sqstypes.QueueAttributeNameApproximateNumberOfMessages
	out, err := l.clients.Queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &l.url, AttributeNames: []sqstypes.QueueAttributeName{name}})
	if isMissing(err) || isDenied(err) {
		return nil // meanwhile; what was seen stands
	}
	if err != nil {
		return fmt.Errorf("counting messages: %w", err)
	}
	if n, err := strconv.Atoi(out.Attributes[string(name)]); err == nil {
		q := &l.out.Queues[0]
		q.Growth, q.Waiting = n-q.Waiting, n
	}
	return nil
}
