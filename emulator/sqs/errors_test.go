package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// second is the error of a call.
func second[T any](_ T, err error) error { return err }

func wantCode(t *testing.T, code string, err error) {
	t.Helper()
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != code {
		t.Errorf("error = %v, want code %s", err, code)
	}
}

// is reports whether an error has the type that the SDK makes of it.
func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

type errorCase struct {
	name string
	call func(context.Context) error
	code string
	typ  func(error) bool // nil where the SDK has no type
}

func (tc errorCase) run(t *testing.T) {
	err := tc.call(t.Context())
	wantCode(t, tc.code, err)
	if tc.typ != nil && !tc.typ(err) {
		t.Errorf("error has the wrong type: %v", err)
	}
}

func TestQueueErrorsHaveAWSCodes(t *testing.T) {
	c := newClient(t)
	url := newQueue(t, c, "q", map[string]string{"VisibilityTimeout": "30"})
	gone := aws.String(strings.Replace(*url, "/q", "/gone", 1))
	newQueue(t, c, "shown", nil)
	must(c.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: newQueue(t, c, "deleted", nil)}))(t)
	purged := newQueue(t, c, "purged", nil)
	must(c.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: purged}))(t)
	set := func(name, value string) func(context.Context) error {
		return func(ctx context.Context) error {
			return second(c.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: url, Attributes: map[string]string{name: value}}))
		}
	}
	create := func(name string, attributes map[string]string) func(context.Context) error {
		return func(ctx context.Context) error {
			return second(c.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes}))
		}
	}
	receiveFrom := func(url *string) func(context.Context) error {
		return func(ctx context.Context) error {
			return second(c.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: url}))
		}
	}
	for _, tc := range []errorCase{
		{"unknown queue", receiveFrom(gone), "AWS.SimpleQueueService.NonExistentQueue", is[*types.QueueDoesNotExist]},
		{"queue of another account", receiveFrom(aws.String("http://x/210987654321/q")), "AWS.SimpleQueueService.NonExistentQueue", is[*types.QueueDoesNotExist]},
		{"no queue URL", receiveFrom(aws.String("q")), "InvalidAddress", is[*types.InvalidAddress]},
		{"queue exists otherwise", create("q", map[string]string{"VisibilityTimeout": "31"}), "QueueAlreadyExists", is[*types.QueueNameExists]},
		{"name with a space", create("a b", nil), "InvalidParameterValue", nil},
		{"name too long", create(strings.Repeat("x", 81), nil), "InvalidParameterValue", nil},
		{"FIFO queue", create("q.fifo", map[string]string{"FifoQueue": "true"}), "AWS.SimpleQueueService.UnsupportedOperation", is[*types.UnsupportedOperation]},
		{"name deleted recently", create("deleted", nil), "AWS.SimpleQueueService.QueueDeletedRecently", is[*types.QueueDeletedRecently]},
		{"purged recently", func(ctx context.Context) error {
			return second(c.PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: purged}))
		}, "AWS.SimpleQueueService.PurgeQueueInProgress", is[*types.PurgeQueueInProgress]},
		{"unknown attribute", set("Colour", "red"), "InvalidAttributeName", is[*types.InvalidAttributeName]},
		{"read-only attribute", set("QueueArn", "x"), "InvalidAttributeName", is[*types.InvalidAttributeName]},
		{"asking for an unknown attribute", func(ctx context.Context) error {
			return second(c.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: url, AttributeNames: []types.QueueAttributeName{"Colour"}}))
		}, "InvalidAttributeName", is[*types.InvalidAttributeName]},
		{"visibility out of range", set("VisibilityTimeout", "43201"), "InvalidAttributeValue", is[*types.InvalidAttributeValue]},
		{"retention out of range", set("MessageRetentionPeriod", "59"), "InvalidAttributeValue", is[*types.InvalidAttributeValue]},
		{"delay is no number", set("DelaySeconds", "soon"), "InvalidAttributeValue", is[*types.InvalidAttributeValue]},
		{"size out of range", set("MaximumMessageSize", "1023"), "InvalidAttributeValue", is[*types.InvalidAttributeValue]},
		{"policy is no JSON", set("Policy", "{"), "InvalidAttributeValue", is[*types.InvalidAttributeValue]},
		{"redrive to nowhere", set("RedrivePolicy", `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:123456789012:none","maxReceiveCount":3}`), "InvalidParameterValue", nil},
		{"redrive without count", set("RedrivePolicy", `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:123456789012:shown"}`), "InvalidParameterValue", nil},
		{"redrive allowance of no kind", set("RedriveAllowPolicy", `{"redrivePermission":"some"}`), "InvalidParameterValue", nil},
		{"moving from no dead-letter queue", func(ctx context.Context) error {
			return second(c.StartMessageMoveTask(ctx, &sqs.StartMessageMoveTaskInput{SourceArn: aws.String("arn:aws:sqs:us-east-1:123456789012:q")}))
		}, "InvalidParameterValue", nil},
		{"moves of an unknown queue", func(ctx context.Context) error {
			return second(c.ListMessageMoveTasks(ctx, &sqs.ListMessageMoveTasksInput{SourceArn: aws.String("arn:aws:sqs:us-east-1:123456789012:none")}))
		}, "ResourceNotFoundException", is[*types.ResourceNotFoundException]},
	} {
		t.Run(tc.name, tc.run)
	}
}

func TestMessageErrorsHaveAWSCodes(t *testing.T) {
	c := newClient(t)
	url, shown := newQueue(t, c, "q", nil), newQueue(t, c, "shown", map[string]string{"VisibilityTimeout": "0"})
	send(t, c, shown, "m")
	visible := receive(t, c, &sqs.ReceiveMessageInput{QueueUrl: shown})[0].ReceiptHandle
	sendBody := func(body string) func(context.Context) error {
		return func(ctx context.Context) error {
			return second(c.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: url, MessageBody: &body}))
		}
	}
	receiveFrom := func(in sqs.ReceiveMessageInput) func(context.Context) error {
		return func(ctx context.Context) error { return second(c.ReceiveMessage(ctx, &in)) }
	}
	batch := func(ids ...string) func(context.Context) error {
		return func(ctx context.Context) error {
			in := &sqs.SendMessageBatchInput{QueueUrl: url, Entries: []types.SendMessageBatchRequestEntry{}}
			for _, id := range ids {
				in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{Id: &id, MessageBody: aws.String(strings.Repeat("x", 600<<10))})
			}
			return second(c.SendMessageBatch(ctx, in))
		}
	}
	for _, tc := range []errorCase{
		{"empty body", sendBody(""), "MissingParameter", nil},
		{"body too large", sendBody(strings.Repeat("x", 1<<20+1)), "InvalidParameterValue", nil},
		{"body with a control character", sendBody("\x00"), "InvalidMessageContents", is[*types.InvalidMessageContents]},
		{"body with U+FFFE", sendBody("\ufffe"), "InvalidMessageContents", is[*types.InvalidMessageContents]},
		{"eleven messages", receiveFrom(sqs.ReceiveMessageInput{QueueUrl: url, MaxNumberOfMessages: 11}), "InvalidParameterValue", nil},
		{"wait of 21 s", receiveFrom(sqs.ReceiveMessageInput{QueueUrl: url, WaitTimeSeconds: 21}), "InvalidParameterValue", nil},
		{"malformed handle", func(ctx context.Context) error {
			return second(c.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: aws.String("x")}))
		}, "ReceiptHandleIsInvalid", is[*types.ReceiptHandleIsInvalid]},
		{"handle of another queue", func(ctx context.Context) error {
			return second(c.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: visible}))
		}, "ReceiptHandleIsInvalid", is[*types.ReceiptHandleIsInvalid]},
		{"hiding what is not in flight", func(ctx context.Context) error {
			return second(c.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: shown, ReceiptHandle: visible, VisibilityTimeout: 5}))
		}, "AWS.SimpleQueueService.MessageNotInflight", is[*types.MessageNotInflight]},
		{"empty batch", batch(), "AWS.SimpleQueueService.EmptyBatchRequest", is[*types.EmptyBatchRequest]},
		{"eleven entries", batch(strings.Split("abcdefghijk", "")...), "AWS.SimpleQueueService.TooManyEntriesInBatchRequest", is[*types.TooManyEntriesInBatchRequest]},
		{"ids repeated", batch("a", "a"), "AWS.SimpleQueueService.BatchEntryIdsNotDistinct", is[*types.BatchEntryIdsNotDistinct]},
		{"bad id", batch("a b"), "AWS.SimpleQueueService.InvalidBatchEntryId", is[*types.InvalidBatchEntryId]},
		{"batch too large", batch("a", "b"), "AWS.SimpleQueueService.BatchRequestTooLong", is[*types.BatchRequestTooLong]},
	} {
		t.Run(tc.name, tc.run)
	}
}

func TestQueuePolicyDeniesCallers(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	url := newQueue(t, c, "q", map[string]string{"Policy": `{"Statement":[
		{"Effect":"Deny","Principal":"*","Action":["sqs:PurgeQueue","sqs:DeleteMessage"],"Resource":"*"},
		{"Effect":"Deny","Principal":"*","Action":"sqs:*","Resource":"*","Condition":{"Bool":{"aws:SecureTransport":"false"}}}]}`})
	send(t, c, url, "m")
	wantCode(t, "AccessDenied", second(c.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: url, Entries: []types.DeleteMessageBatchRequestEntry{
		{Id: aws.String("a"), ReceiptHandle: aws.String("x")},
	}})))
	wantCode(t, "AccessDenied", second(c.PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: url})))
}

func TestRedriveAllowPolicyIsEnforced(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	url, dead := newQueue(t, c, "q", nil), newQueue(t, c, "dead", map[string]string{
		"RedriveAllowPolicy": `{"redrivePermission":"byQueue","sourceQueueArns":["arn:aws:sqs:us-east-1:123456789012:friend"]}`,
	})
	redrive := map[string]string{"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":1}`, attributes(t, c, dead, "QueueArn")["QueueArn"])}
	wantCode(t, "InvalidParameterValue", second(c.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: url, Attributes: redrive})))
	newQueue(t, c, "friend", redrive)
}
