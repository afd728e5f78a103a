package sqs_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
)

// random is what differs from run to run in answers.
var random = regexp.MustCompile(`(<(?:RequestId|MessageId|ReceiptHandle)>)[^<]*(<)`)

// poster posts forms as clients of the Query protocol do, and returns status
// and body, the latter without what is random.
func poster(t *testing.T) (post func(path, form string) (int, string), base string) {
	_, base = emulatortest.Serve(t, emulator.Options{})
	return func(path, form string) (int, string) {
		t.Helper()
		status, body := postForm(t.Context(), t, base+path, form)
		return status, random.ReplaceAllString(strings.ReplaceAll(body, base, "BASE"), "$1…$2")
	}, base
}

func postForm(ctx context.Context, t *testing.T, address, form string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIATEST/20260511/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=0")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got := resp.Header.Get("Content-Type"); got != "text/xml" {
		t.Errorf("content type = %q, want text/xml", got)
	}
	return resp.StatusCode, string(body)
}

func TestQueryProtocol(t *testing.T) {
	post, base := poster(t)
	const head, metadata = `<?xml version="1.0" encoding="UTF-8"?>` + "\n", `<ResponseMetadata><RequestId>…</RequestId></ResponseMetadata>`
	answer := func(action, result string) string {
		return head + `<` + action + `Response xmlns="http://queue.amazonaws.com/doc/2012-11-05/">` + result + metadata + `</` + action + `Response>`
	}
	failure := func(code, message string) string {
		return head + `<ErrorResponse xmlns="http://queue.amazonaws.com/doc/2012-11-05/"><Error><Type>Sender</Type><Code>` + code +
			`</Code><Message>` + message + `</Message></Error><RequestId>…</RequestId></ErrorResponse>`
	}
	queue := "QueueUrl=" + url.QueryEscape(base+"/123456789012/q")
	for _, tc := range []struct {
		name, path, form string
		status           int
		want             string
	}{
		{"create", "/", "Action=CreateQueue&Version=2012-11-05&QueueName=q&Attribute.1.Name=VisibilityTimeout&Attribute.1.Value=0&Tag.1.Key=team&Tag.1.Value=a", 200,
			answer("CreateQueue", `<CreateQueueResult><QueueUrl>BASE/123456789012/q</QueueUrl></CreateQueueResult>`)},
		{"list", "/", "Action=ListQueues", 200,
			answer("ListQueues", `<ListQueuesResult><QueueUrl>BASE/123456789012/q</QueueUrl></ListQueuesResult>`)},
		{"send at the queue's path", "/123456789012/q", "Action=SendMessage&MessageBody=a%26b&MessageAttribute.1.Name=raw&MessageAttribute.1.Value.DataType=Binary&MessageAttribute.1.Value.BinaryValue=AAE%3D", 200,
			answer("SendMessage", `<SendMessageResult><MessageId>…</MessageId><MD5OfMessageBody>b96e7bda9c9feee3259b177bd456b0a5</MD5OfMessageBody>`+
				`<MD5OfMessageAttributes>3f6956c178463a275cd1a43345d4a7b1</MD5OfMessageAttributes></SendMessageResult>`)},
		{"receive", "/", "Action=ReceiveMessage&AttributeName.1=ApproximateReceiveCount&MessageAttributeName.1=All&MaxNumberOfMessages=10&" + queue, 200,
			answer("ReceiveMessage", `<ReceiveMessageResult><Message><MessageId>…</MessageId><ReceiptHandle>…</ReceiptHandle>`+
				`<MD5OfBody>b96e7bda9c9feee3259b177bd456b0a5</MD5OfBody><Body>a&amp;b</Body>`+
				`<Attribute><Name>ApproximateReceiveCount</Name><Value>1</Value></Attribute>`+
				`<MD5OfMessageAttributes>3f6956c178463a275cd1a43345d4a7b1</MD5OfMessageAttributes>`+
				`<MessageAttribute><Name>raw</Name><Value><DataType>Binary</DataType><BinaryValue>AAE=</BinaryValue></Value></MessageAttribute>`+
				`</Message></ReceiveMessageResult>`)},
		{"batch fails in part", "/", "Action=DeleteMessageBatch&DeleteMessageBatchRequestEntry.1.Id=x&DeleteMessageBatchRequestEntry.1.ReceiptHandle=bad&" + queue, 200,
			answer("DeleteMessageBatch", `<DeleteMessageBatchResult><BatchResultErrorEntry><Id>x</Id><SenderFault>true</SenderFault>`+
				`<Code>ReceiptHandleIsInvalid</Code><Message>The input receipt handle &#34;bad&#34; is not a valid receipt handle.</Message></BatchResultErrorEntry></DeleteMessageBatchResult>`)},
		{"tags", "/", "Action=ListQueueTags&" + queue, 200,
			answer("ListQueueTags", `<ListQueueTagsResult><Tag><Key>team</Key><Value>a</Value></Tag></ListQueueTagsResult>`)},
		{"attributes", "/", "Action=GetQueueAttributes&AttributeName.1=VisibilityTimeout&AttributeName.2=QueueArn&" + queue, 200,
			answer("GetQueueAttributes", `<GetQueueAttributesResult><Attribute><Name>QueueArn</Name><Value>arn:aws:sqs:us-east-1:123456789012:q</Value></Attribute>`+
				`<Attribute><Name>VisibilityTimeout</Name><Value>0</Value></Attribute></GetQueueAttributesResult>`)},
		{"delete has no result", "/", "Action=DeleteQueue&" + queue, 200, answer("DeleteQueue", "")},
		{"no such queue", "/", "Action=GetQueueUrl&QueueName=q", 400,
			failure("AWS.SimpleQueueService.NonExistentQueue", "The specified queue does not exist.")},
		{"no queue named", "/", "Action=PurgeQueue", 400, failure("MissingParameter", "The request must contain the parameter QueueUrl.")},
		{"no number", "/", "Action=ReceiveMessage&MaxNumberOfMessages=many&" + queue, 400,
			failure("MalformedInput", `reading parameter MaxNumberOfMessages: &#34;many&#34; is not a valid int`)},
		{"unknown action", "/", "Action=Fly", 400, failure("InvalidAction", "The action Fly is not valid for this web service.")},
		{"no action", "/", "QueueName=q", 400, failure("MissingAction", "The request must contain the parameter Action")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			status, got := post(tc.path, tc.form)
			if diff := cmp.Diff(tc.want, got); diff != "" || status != tc.status {
				t.Errorf("status %d, want %d; body (-want +got):\n%s", status, tc.status, diff)
			}
		})
	}
}
