package sqs_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
)

// newClient returns a real SQS client of an emulated account of its own.
func newClient(t testing.TB) *sqs.Client {
	t.Helper()
	_, client := newServer(t)
	return client
}

func newServer(t testing.TB) (*emulator.Server, *sqs.Client) {
	t.Helper()
	server, url := emulatortest.Serve(t, emulator.Options{})
	return server, sqs.New(sqs.Options{
		Region:       server.Region(),
		BaseEndpoint: &url,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIATEST", SecretAccessKey: "secret"}, nil
		}),
		RetryMaxAttempts: 1,
	})
}

// must returns v, or ends the test.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func newQueue(t testing.TB, c *sqs.Client, name string, attributes map[string]string) *string {
	t.Helper()
	return must(c.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes}))(t).QueueUrl
}

func send(t testing.TB, c *sqs.Client, url *string, body string) *sqs.SendMessageOutput {
	t.Helper()
	return must(c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: url, MessageBody: &body}))(t)
}

func receive(t testing.TB, c *sqs.Client, in *sqs.ReceiveMessageInput) []types.Message {
	t.Helper()
	return must(c.ReceiveMessage(t.Context(), in))(t).Messages
}

func attributes(t testing.TB, c *sqs.Client, url *string, names ...types.QueueAttributeName) map[string]string {
	t.Helper()
	return must(c.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: url, AttributeNames: names}))(t).Attributes
}

func TestQueueCreateAndDelete(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	url := newQueue(t, c, "orders", map[string]string{"VisibilityTimeout": "45"})
	if !strings.HasPrefix(*url, "http://127.0.0.1:") || !strings.HasSuffix(*url, "/123456789012/orders") {
		t.Errorf("queue URL = %s", *url)
	}
	if again := newQueue(t, c, "orders", map[string]string{"VisibilityTimeout": "45"}); *again != *url {
		t.Errorf("creating the queue again gave %s, want %s", *again, *url)
	}
	newQueue(t, c, "orders", nil)
	found := must(c.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("orders")}))(t)
	if *found.QueueUrl != *url {
		t.Errorf("GetQueueUrl = %s, want %s", *found.QueueUrl, *url)
	}

	got := attributes(t, c, url, types.QueueAttributeNameAll)
	for _, name := range []string{"CreatedTimestamp", "LastModifiedTimestamp"} {
		if got[name] == "" {
			t.Errorf("attribute %s is missing", name)
		}
		delete(got, name)
	}
	want := map[string]string{
		"ApproximateNumberOfMessages": "0", "ApproximateNumberOfMessagesDelayed": "0",
		"ApproximateNumberOfMessagesNotVisible": "0", "DelaySeconds": "0", "MaximumMessageSize": "1048576",
		"MessageRetentionPeriod": "345600", "QueueArn": "arn:aws:sqs:us-east-1:123456789012:orders",
		"ReceiveMessageWaitTimeSeconds": "0", "SqsManagedSseEnabled": "true", "VisibilityTimeout": "45",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}

	must(c.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: url, Attributes: map[string]string{
		"DelaySeconds": "3", "MessageRetentionPeriod": "60", "KmsMasterKeyId": "alias/mine",
	}}))(t)
	got = attributes(t, c, url, "DelaySeconds", "MessageRetentionPeriod", "KmsMasterKeyId", "SqsManagedSseEnabled", "Policy")
	want = map[string]string{
		"DelaySeconds": "3", "MessageRetentionPeriod": "60", "KmsMasterKeyId": "alias/mine", "SqsManagedSseEnabled": "false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attributes after setting some (-want +got):\n%s", diff)
	}

	must(c.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: url}))(t)
	wantCode(t, "AWS.SimpleQueueService.NonExistentQueue", second(c.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: url})))
}

func TestListQueuesIsPaged(t *testing.T) {
	c := newClient(t)
	for i := range 5 {
		newQueue(t, c, fmt.Sprintf("a-%d", i), nil)
	}
	newQueue(t, c, "b", nil)
	var names []string
	pages := 0
	for p := sqs.NewListQueuesPaginator(c, &sqs.ListQueuesInput{QueueNamePrefix: aws.String("a-"), MaxResults: aws.Int32(2)}); p.HasMorePages(); pages++ {
		for _, url := range must(p.NextPage(t.Context()))(t).QueueUrls {
			names = append(names, url[strings.LastIndex(url, "/")+1:])
		}
	}
	if diff := cmp.Diff([]string{"a-0", "a-1", "a-2", "a-3", "a-4"}, names); diff != "" || pages != 3 {
		t.Errorf("in %d pages (-want +got):\n%s", pages, diff)
	}
}

func TestTags(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	url := must(c.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("q"), Tags: map[string]string{"team": "a", "env": "x"}}))(t).QueueUrl
	must(c.TagQueue(ctx, &sqs.TagQueueInput{QueueUrl: url, Tags: map[string]string{"team": "b", "tier": "1"}}))(t)
	must(c.UntagQueue(ctx, &sqs.UntagQueueInput{QueueUrl: url, TagKeys: []string{"env"}}))(t)
	got := must(c.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: url}))(t).Tags
	if diff := cmp.Diff(map[string]string{"team": "b", "tier": "1"}, got); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
}

func TestSendReceiveDelete(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	url := newQueue(t, c, "q", nil)
	body := "{\"id\":\"ü <&> \r\n\t😀\"}"
	sent := must(c.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: url, MessageBody: &body, MessageGroupId: aws.String("tenant"),
		MessageAttributes: map[string]types.MessageAttributeValue{
			"kind": {DataType: aws.String("String"), StringValue: aws.String("spot")},
			"raw":  {DataType: aws.String("Binary.png"), BinaryValue: []byte{0, 1, 255}},
		},
		MessageSystemAttributes: map[string]types.MessageSystemAttributeValue{
			"AWSTraceHeader": {DataType: aws.String("String"), StringValue: aws.String("Root=1-5759e988-bd862e3fe1be46a994272793")},
		},
	}))(t)
	got := receive(t, c, &sqs.ReceiveMessageInput{
		QueueUrl: url, MaxNumberOfMessages: 10, MessageAttributeNames: []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"},
	})
	if len(got) != 1 {
		t.Fatalf("received %d messages, want 1", len(got))
	}
	m := got[0]
	if *m.Body != body || *m.MessageId != *sent.MessageId || *m.MD5OfMessageAttributes != *sent.MD5OfMessageAttributes {
		t.Errorf("received %q %s %s, sent %q %s %s", *m.Body, *m.MessageId, *m.MD5OfMessageAttributes,
			body, *sent.MessageId, *sent.MD5OfMessageAttributes)
	}
	if sent.MD5OfMessageSystemAttributes == nil {
		t.Error("no MD5OfMessageSystemAttributes")
	}
	if raw := m.MessageAttributes["raw"]; !slices.Equal(raw.BinaryValue, []byte{0, 1, 255}) || *raw.DataType != "Binary.png" {
		t.Errorf("binary attribute = %v", raw)
	}
	wantNames := []string{"AWSTraceHeader", "ApproximateFirstReceiveTimestamp", "ApproximateReceiveCount", "MessageGroupId", "SenderId", "SentTimestamp"}
	if diff := cmp.Diff(wantNames, slices.Sorted(maps.Keys(m.Attributes))); diff != "" {
		t.Errorf("system attributes (-want +got):\n%s", diff)
	}
	if len(receive(t, c, &sqs.ReceiveMessageInput{QueueUrl: url})) != 0 {
		t.Error("a message in flight was received again")
	}
	must(c.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: m.ReceiptHandle}))(t)
	must(c.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: m.ReceiptHandle}))(t) // succeeds as well
	counts := attributes(t, c, url, "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
	if diff := cmp.Diff(map[string]string{"ApproximateNumberOfMessages": "0", "ApproximateNumberOfMessagesNotVisible": "0"}, counts); diff != "" {
		t.Errorf("counts after delete (-want +got):\n%s", diff)
	}
}

func TestOnlyWantedAttributesAreReturned(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	url := newQueue(t, c, "q", map[string]string{"VisibilityTimeout": "0"})
	text := func(s string) types.MessageAttributeValue {
		return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &s}
	}
	must(c.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: url, MessageBody: aws.String("m"), MessageAttributes: map[string]types.MessageAttributeValue{
		"a.one": text("1"), "a.two": text("2"), "b": text("3"),
	}}))(t)
	for _, tc := range []struct{ ask, want []string }{
		{nil, nil},
		{[]string{"b"}, []string{"b"}},
		{[]string{"a.*"}, []string{"a.one", "a.two"}},
		{[]string{".*"}, []string{"a.one", "a.two", "b"}},
	} {
		m := receive(t, c, &sqs.ReceiveMessageInput{QueueUrl: url, MessageAttributeNames: tc.ask})[0]
		if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(m.MessageAttributes))); diff != "" || m.Attributes != nil {
			t.Errorf("asked for %v (-want +got):\n%s; system attributes %v", tc.ask, diff, m.Attributes)
		}
	}
}

func TestBatchesFailPartly(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	url := newQueue(t, c, "q", map[string]string{"MaximumMessageSize": "1024"})
	sent := must(c.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: url, Entries: []types.SendMessageBatchRequestEntry{
		{Id: aws.String("good"), MessageBody: aws.String("one")},
		{Id: aws.String("control"), MessageBody: aws.String("bell \a")},
		{Id: aws.String("large"), MessageBody: aws.String(strings.Repeat("x", 1025))},
		{Id: aws.String("late"), MessageBody: aws.String("two"), DelaySeconds: 901},
	}}))(t)
	if len(sent.Successful) != 1 || *sent.Successful[0].Id != "good" {
		t.Errorf("sent %v, want only good", sent.Successful)
	}
	wantFailed(t, sent.Failed, map[string]string{
		"control": "InvalidMessageContents", "large": "InvalidParameterValue", "late": "InvalidParameterValue",
	})

	handle := receive(t, c, &sqs.ReceiveMessageInput{QueueUrl: url})[0].ReceiptHandle
	changed := must(c.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: url,
		Entries: []types.ChangeMessageVisibilityBatchRequestEntry{
			{Id: aws.String("good"), ReceiptHandle: handle, VisibilityTimeout: 60},
			{Id: aws.String("bad"), ReceiptHandle: aws.String("nonsense"), VisibilityTimeout: 60},
			{Id: aws.String("long"), ReceiptHandle: handle, VisibilityTimeout: 43201},
		}}))(t)
	if len(changed.Successful) != 1 {
		t.Errorf("changed %v, want one", changed.Successful)
	}
	wantFailed(t, changed.Failed, map[string]string{"bad": "ReceiptHandleIsInvalid", "long": "InvalidParameterValue"})

	deleted := must(c.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: url, Entries: []types.DeleteMessageBatchRequestEntry{
		{Id: aws.String("bad"), ReceiptHandle: aws.String("nonsense")},
		{Id: aws.String("good"), ReceiptHandle: handle},
	}}))(t)
	if len(deleted.Successful) != 1 || *deleted.Successful[0].Id != "good" {
		t.Errorf("deleted %v, want only good", deleted.Successful)
	}
	wantFailed(t, deleted.Failed, map[string]string{"bad": "ReceiptHandleIsInvalid"})
}

func wantFailed(t *testing.T, failed []types.BatchResultErrorEntry, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for _, f := range failed {
		got[*f.Id] = *f.Code
		if !f.SenderFault || aws.ToString(f.Message) == "" {
			t.Errorf("failure of %s: SenderFault %v, message %q", *f.Id, f.SenderFault, aws.ToString(f.Message))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("failed entries (-want +got):\n%s", diff)
	}
}

func TestChangeVisibilityAndPurge(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	url := newQueue(t, c, "q", nil)
	send(t, c, url, "m")
	handle := receive(t, c, &sqs.ReceiveMessageInput{QueueUrl: url})[0].ReceiptHandle
	must(c.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: url, ReceiptHandle: handle, VisibilityTimeout: 0}))(t)
	again := receive(t, c, &sqs.ReceiveMessageInput{QueueUrl: url})
	if len(again) != 1 || *again[0].ReceiptHandle == *handle {
		t.Fatalf("received %v, want the message again with another handle", again)
	}
	must(c.PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: url}))(t)
	if n := attributes(t, c, url, "ApproximateNumberOfMessagesNotVisible")["ApproximateNumberOfMessagesNotVisible"]; n != "0" {
		t.Errorf("%s messages left after purge", n)
	}
}

func TestLongPollWakesOnArrival(t *testing.T) {
	c := newClient(t)
	url := newQueue(t, c, "q", map[string]string{"ReceiveMessageWaitTimeSeconds": "20"})
	got := make(chan []types.Message, 1)
	began := time.Now()
	go func() {
		out, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: url})
		if err != nil {
			t.Error(err)
			out = &sqs.ReceiveMessageOutput{}
		}
		got <- out.Messages
	}()
	send(t, c, url, "m")
	if n := len(<-got); n != 1 || time.Since(began) > 10*time.Second {
		t.Errorf("long poll returned %d messages after %v", n, time.Since(began))
	}
}

func TestDeadLettersAndRedrive(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	dead := newQueue(t, c, "dead", nil)
	deadARN := attributes(t, c, dead, "QueueArn")["QueueArn"]
	url := newQueue(t, c, "q", map[string]string{
		"VisibilityTimeout": "0", "RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":"2"}`, deadARN),
	})
	id := send(t, c, url, "poison").MessageId
	for range 2 {
		if n := len(receive(t, c, &sqs.ReceiveMessageInput{QueueUrl: url})); n != 1 {
			t.Fatalf("received %d messages, want 1", n)
		}
	}
	if n := len(receive(t, c, &sqs.ReceiveMessageInput{QueueUrl: url})); n != 0 {
		t.Fatalf("received %d messages after maxReceiveCount, want 0", n)
	}
	sources := must(c.ListDeadLetterSourceQueues(ctx, &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: dead}))(t).QueueUrls
	if diff := cmp.Diff([]string{*url}, sources); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	m := receive(t, c, &sqs.ReceiveMessageInput{QueueUrl: dead, VisibilityTimeout: 1,
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{"DeadLetterQueueSourceArn"}})[0]
	if *m.MessageId != *id || m.Attributes["DeadLetterQueueSourceArn"] != "arn:aws:sqs:us-east-1:123456789012:q" {
		t.Errorf("dead letter %s from %v, want %s", *m.MessageId, m.Attributes, *id)
	}
	must(c.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: dead, ReceiptHandle: m.ReceiptHandle}))(t)

	handle := must(c.StartMessageMoveTask(ctx, &sqs.StartMessageMoveTaskInput{SourceArn: &deadARN}))(t).TaskHandle
	tasks := must(c.ListMessageMoveTasks(ctx, &sqs.ListMessageMoveTasksInput{SourceArn: &deadARN}))(t).Results
	if len(tasks) != 1 || *tasks[0].Status != "COMPLETED" || tasks[0].ApproximateNumberOfMessagesMoved != 1 {
		t.Errorf("move tasks = %+v", tasks)
	}
	wantCode(t, "InvalidParameterValue", second(c.CancelMessageMoveTask(ctx, &sqs.CancelMessageMoveTaskInput{TaskHandle: handle})))
	if n := attributes(t, c, dead, "ApproximateNumberOfMessages")["ApproximateNumberOfMessages"]; n != "0" {
		t.Errorf("%s messages left in the dead-letter queue", n)
	}
	back := receive(t, c, &sqs.ReceiveMessageInput{QueueUrl: url})
	if len(back) != 1 || *back[0].Body != "poison" || *back[0].MessageId == *id {
		t.Errorf("redriven %v, want poison under a new id", back)
	}
}

func TestPermissions(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	url := newQueue(t, c, "q", nil)
	must(c.AddPermission(ctx, &sqs.AddPermissionInput{QueueUrl: url, Label: aws.String("share"),
		AWSAccountIds: []string{"210987654321"}, Actions: []string{"SendMessage"}}))(t)
	got := attributes(t, c, url, "Policy")["Policy"]
	want := `{"Version":"2012-10-17","Id":"arn:aws:sqs:us-east-1:123456789012:q/SQSDefaultPolicy","Statement":[` +
		`{"Sid":"share","Effect":"Allow","Principal":{"AWS":["arn:aws:iam::210987654321:root"]},` +
		`"Action":["SQS:SendMessage"],"Resource":"arn:aws:sqs:us-east-1:123456789012:q"}]}`
	if got != want {
		t.Errorf("policy = %s\nwant %s", got, want)
	}
	must(c.RemovePermission(ctx, &sqs.RemovePermissionInput{QueueUrl: url, Label: aws.String("share")}))(t)
	if got := attributes(t, c, url, "Policy"); len(got) != 0 {
		t.Errorf("policy after removal = %v", got)
	}
}
