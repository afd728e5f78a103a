package awsmetrics_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awsmetrics"
)

// replies answers requests in turn: an HTTP status and, for an error, its code.
type replies []struct {
	status int
	code   string
}

func (r *replies) Do(*http.Request) (*http.Response, error) {
	next := (*r)[0]
	*r = (*r)[1:]
	if next.status == 0 {
		return nil, errors.New("no route")
	}
	header := http.Header{"Content-Type": {"application/x-amz-json-1.0"}}
	body := `{}`
	if next.code != "" {
		body = `{"__type":"` + next.code + `","message":"no"}`
	}
	return &http.Response{StatusCode: next.status, Header: header, Body: io.NopCloser(strings.NewReader(body))}, nil
}

func TestRequestsAreCounted(t *testing.T) {
	for name, tc := range map[string]struct {
		replies replies
		retries int
		want    string
	}{
		"success":      {replies{{200, ""}}, 1, "ok 1"},
		"denied":       {replies{{403, "AccessDeniedException"}}, 1, "denied 1"},
		"refused":      {replies{{400, "QueueDoesNotExist"}}, 1, "refused 1"},
		"server error": {replies{{500, "InternalFailure"}}, 1, "failed 1"},
		"no network":   {replies{{0, ""}}, 1, "failed 1"},
		"a retry":      {replies{{400, "ThrottlingException"}, {200, ""}}, 2, "ok 1, throttled 1"},
	} {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			config, err := awsmetrics.Use(aws.Config{
				Region: "eu-west-1", HTTPClient: &tc.replies, RetryMaxAttempts: tc.retries,
				Credentials: awshttp.StaticCredentials("a", "b"),
			}, registry)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = sqs.NewFromConfig(config).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String("https://sqs.eu-west-1.amazonaws.com/1/q")})
			var want strings.Builder
			want.WriteString("# HELP lifeboat_aws_requests_total Requests to AWS, by service, operation and result. Each try of a retried call counts.\n# TYPE lifeboat_aws_requests_total counter\n")
			for result := range strings.SplitSeq(tc.want, ", ") {
				what, n, _ := strings.Cut(result, " ")
				want.WriteString(`lifeboat_aws_requests_total{operation="ReceiveMessage",result="` + what + `",service="SQS"} ` + n + "\n")
			}
			if err := testutil.GatherAndCompare(registry, strings.NewReader(want.String()), "lifeboat_aws_requests_total"); err != nil {
				t.Error(err)
			}
			if n, err := testutil.GatherAndCount(registry, "lifeboat_aws_request_seconds"); n != 1 || err != nil {
				t.Errorf("%d histograms, %v", n, err)
			}
		})
	}
}
