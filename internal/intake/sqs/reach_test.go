package sqs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/google/go-cmp/cmp"
)

func TestErrorsAreExplained(t *testing.T) {
	code := func(code string) error { return &smithy.GenericAPIError{Code: code, Message: "as AWS says"} }
	status := func(status int, err error) error {
		return &awshttp.ResponseError{ResponseError: &smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: err}}
	}
	for _, test := range []struct {
		err    error
		reason string
		advice string
	}{
		{&types.QueueDoesNotExist{}, reasonNoQueue, "--queue-url"},
		{code("AWS.SimpleQueueService.NonExistentQueue"), reasonNoQueue, "create the queue"},
		{code("AccessDenied"), reasonDenied, "grant sqs:ReceiveMessage"},
		{status(403, code("AccessDeniedException")), reasonDenied, "grant sqs:ReceiveMessage"},
		{code("KMS.AccessDeniedException"), reasonKey, "kms:Decrypt"},
		{&types.KmsAccessDenied{}, reasonKey, "kms:Decrypt"},
		{code("ExpiredToken"), reasonCredentials, "Pod Identity"},
		{fmt.Errorf("get identity: get credentials: %w", errors.New("no EC2 IMDS role found")), reasonCredentials, "Pod Identity"},
		{&types.OverLimit{}, reasonThrottled, "nothing"},
		{status(503, errors.New("no body")), reasonUnavailable, "nothing"},
		{status(500, code("Unknown")), reasonUnavailable, "nothing"},
		{code("UnsupportedOperation"), reasonRefused, "account and region"},
		{context.DeadlineExceeded, reasonUnreachable, "security groups"},
		{errors.New("dial tcp: connection refused"), reasonUnreachable, "security groups"},
	} {
		reason, advice := explain("sqs:ReceiveMessage", fmt.Errorf("operation error SQS: %w", test.err))
		if reason != test.reason || !strings.Contains(advice, test.advice) {
			t.Errorf("%v: %s, %q, want %s, …%s…", test.err, reason, advice, test.reason, test.advice)
		}
	}
}

func TestReach(t *testing.T) {
	at := time.Date(2026, 5, 11, 8, 0, 0, 0, time.UTC)
	var r reach
	expect := func(wantAway time.Duration, wantNews bool) {
		t.Helper()
		if away, news := r.found(at); away != wantAway || news != wantNews {
			t.Errorf("found: %s, %v, want %s, %v", away, news, wantAway, wantNews)
		}
	}
	expect(0, true)
	expect(0, false)
	r.missed(at)
	r.missed(at.Add(time.Second)) // another receiver: still away since then
	at = at.Add(20 * time.Second)
	expect(20*time.Second, true)
	expect(0, false)
}

func TestBackoff(t *testing.T) {
	for range 100 {
		b := backoff{longest: longestPause}
		for _, full := range []time.Duration{250, 500, 1000, 2000, 4000, 5000, 5000, 5000, 5000, 5000, 5000, 5000} {
			full *= time.Millisecond
			if got := b.next(); got < full/2 || got >= full {
				t.Fatalf("pause %s, want from %s to %s", got, full/2, full)
			}
		}
		b.reset()
		if got := b.next(); got >= firstPause {
			t.Fatalf("first pause after a reset: %s", got)
		}
	}
}

func TestRedriveOf(t *testing.T) {
	for _, test := range []struct {
		policy string
		want   redrive
		bad    bool
	}{
		{"", redrive{}, false},
		{`{"deadLetterTargetArn":"arn:x","maxReceiveCount":1000}`, redrive{"arn:x", 1000}, false},
		{`{"deadLetterTargetArn":"arn:x","maxReceiveCount":"5"}`, redrive{"arn:x", 5}, false},
		{`{"deadLetterTargetArn":"arn:x"}`, redrive{}, true},
		{`nonsense`, redrive{}, true},
	} {
		got, err := redriveOf(map[string]string{"RedrivePolicy": test.policy})
		if diff := cmp.Diff(test.want, got); diff != "" || (err != nil) != test.bad {
			t.Errorf("%s: %v (-want +got):\n%s", test.policy, err, diff)
		}
	}
}
