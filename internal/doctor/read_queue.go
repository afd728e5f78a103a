package doctor

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
)

// readQueue reads the queue that Lifeboat uses, and its dead-letter queue.
func (l *accountReader) readQueue(ctx context.Context) error {
	name := l.target.Desired.Queue.Name
	l.out.Queue = l.target.Desired.QueueARN()
	if l.target.QueueURL != "" {
		name = snapshot.Name(l.target.QueueURL)
		l.out.Queue = l.arnOf(name)
	}
	l.target.report("reading the queue " + name)
	q, err := l.fetchQueue(ctx, name, l.target.QueueURL)
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
	return l.readQueueByARN(ctx, q.DeadLetterARN)
}

// arnOf returns the ARN of a queue of this account.
func (l *accountReader) arnOf(name string) string {
	w := l.target.Desired
	w.Queue.Name = name
	return w.QueueARN()
}

// fetchQueue reads a queue. It returns nil if the queue does not exist. If AWS denies
// the call, only the name is known.
func (l *accountReader) fetchQueue(ctx context.Context, name, url string) (*snapshot.Queue, error) {
	unseen := &snapshot.Queue{Name: name, ARN: l.arnOf(name), URL: url}
	if url == "" {
		out, err := l.clients.Queues.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name})
		if isMissing(err) {
			l.succeeded++
			return nil, nil
		}
		if denied, err := l.recordCall("sqs:GetQueueUrl", "queue "+name, err); err != nil || denied {
			return unseen, err
		}
		url = aws.ToString(out.QueueUrl)
		unseen.URL = url
	}
	out, err := l.clients.Queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &url, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameAll},
	})
	if isMissing(err) {
		l.succeeded++
		return nil, nil
	}
	if denied, err := l.recordCall("sqs:GetQueueAttributes", "queue "+name, err); err != nil || denied {
		return unseen, err
	}
	l.recordSkew(out.ResultMetadata)
	q := snapshot.FromAttributes(out.Attributes)
	q.URL = url
	if q.ARN == "" {
		q.ARN, q.Name = unseen.ARN, name
	}
	return &q, l.readTags(ctx, &q)
}

// readTags reads the tags of a queue, which identify its owner.
func (l *accountReader) readTags(ctx context.Context, q *snapshot.Queue) error {
	out, err := l.clients.Queues.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: &q.URL})
	if isMissing(err) {
		return nil // deleted between two calls
	}
	denied, err := l.recordCall("sqs:ListQueueTags", "queue "+q.Name, err)
	if err == nil && !denied {
		q.Tags = out.Tags
	}
	return err
}

func isMissing(err error) bool {
	var missing *sqstypes.QueueDoesNotExist
	return errors.As(err, &missing) || code(err) == "QueueDoesNotExist"
}

// readQueueByARN reads a queue of this account and region, unless it was read before.
func (l *accountReader) readQueueByARN(ctx context.Context, arn string) error {
	if arn == "" || l.hasQueue(arn) || snapshot.Part(arn, 4) != l.out.Account || snapshot.Part(arn, 3) != l.out.Region {
		return nil
	}
	if slices.Contains(l.out.Absent, arn) {
		return nil
	}
	q, err := l.fetchQueue(ctx, snapshot.Name(arn), "")
	switch {
	case err != nil:
	case q == nil:
		l.out.Absent = append(l.out.Absent, arn)
	default:
		l.out.Queues = append(l.out.Queues, *q)
	}
	return err
}

func (l *accountReader) hasQueue(arn string) bool {
	return slices.ContainsFunc(l.out.Queues, func(q snapshot.Queue) bool { return q.ARN == arn })
}

// readOtherQueues reads the other queues to which the rules send, and the dead-letter
// queues of their targets.
func (l *accountReader) readOtherQueues(ctx context.Context) error {
	for _, r := range l.out.Rules {
		for _, t := range r.Targets {
			for _, arn := range []string{t.ARN, t.DeadLetterARN} {
				if snapshot.Part(arn, 2) != "sqs" {
					continue
				}
				if err := l.readQueueByARN(ctx, arn); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// invalidReceiptHandle is a receipt handle that no message has: SQS checks the
// permission before the handle.
const invalidReceiptHandle = "lifeboat-doctor-tries-permissions"

// tryPermissions tests the permissions of a reader. It does not test receiving, which
// would hide a notice from the controller for a while.
func (l *accountReader) tryPermissions(ctx context.Context) error {
	if l.clients.Messages == nil || l.url == "" {
		return nil
	}
	l.target.report("testing permissions")
	object := "queue " + snapshot.Name(l.out.Queue)
	_, err := l.clients.Messages.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &l.url, ReceiptHandle: aws.String(invalidReceiptHandle)})
	if err := l.recordTrial("sqs:DeleteMessage", object, err); err != nil {
		return err
	}
	_, err = l.clients.Messages.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: &l.url, ReceiptHandle: aws.String(invalidReceiptHandle)})
	return l.recordTrial("sqs:ChangeMessageVisibility", object, err)
}

// recordTrial records the result of a permission test. An error about the handle or
// the queue means that the permission exists. An error of SQS itself says nothing.
func (l *accountReader) recordTrial(action, object string, err error) error {
	var api smithy.APIError
	if errors.As(err, &api) && !isDenied(err) && api.ErrorFault() != smithy.FaultServer && status(err) < http.StatusInternalServerError {
		err = nil
	}
	_, err = l.recordCall(action, object, err)
	return err
}

// status returns the HTTP status of a failed call, or 0.
func status(err error) int {
	var response *awshttp.ResponseError
	if !errors.As(err, &response) {
		return 0
	}
	return response.HTTPStatusCode()
}

// measureGrowth counts the waiting messages a second time.
func (l *accountReader) measureGrowth(ctx context.Context) error {
	if l.url == "" || len(l.out.Queues) == 0 || !l.out.Queues[0].Known {
		return nil
	}
	name := sqstypes.QueueAttributeNameApproximateNumberOfMessages
	out, err := l.clients.Queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &l.url, AttributeNames: []sqstypes.QueueAttributeName{name}})
	if err != nil {
		return ctx.Err() // the first count remains: a second one is optional
	}
	if n, err := strconv.Atoi(out.Attributes[string(name)]); err == nil {
		q := &l.out.Queues[0]
		q.Growth, q.Waiting = n-q.Waiting, n
	}
	return nil
}
