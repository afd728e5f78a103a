package app

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudtrail"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"k8s.io/client-go/rest"

	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
)

// recorded are the requests that reach a server.
type recorded struct{ requests []string }

func (r *recorded) RoundTrip(q *http.Request) (*http.Response, error) {
	r.requests = append(r.requests, q.Method+" "+q.URL.Path)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader("{}")), Request: q}, nil
}

func TestObserveWritesOnlyOwnObjects(t *testing.T) {
	for request, allowed := range map[string]bool{
		"GET /api/v1/nodes":                                                                       true,
		"GET /api/v1/namespaces/default/pods":                                                     true,
		"POST /apis/lifeboat.dev/v1beta1/interruptions":                                           true,
		"PATCH /apis/lifeboat.dev/v1beta1/interruptions/i-1/status":                               true,
		"PUT /apis/coordination.k8s.io/v1/namespaces/lifeboat-system/leases/lifeboat-controller":  true,
		"POST /apis/events.k8s.io/v1/namespaces/default/events":                                   true,
		"POST /api/v1/namespaces/lifeboat-system/events":                                          true,
		"POST /apis/authentication.k8s.io/v1/tokenreviews":                                        true,
		"POST /apis/authorization.k8s.io/v1/subjectaccessreviews":                                 true,
		"PATCH /api/v1/nodes/a":                                                                   false,
		"DELETE /api/v1/nodes/a":                                                                  false,
		"POST /api/v1/namespaces/default/pods/web-1/eviction":                                     false,
		"DELETE /api/v1/namespaces/default/pods/web-1":                                            false,
		"PATCH /api/v1/namespaces/events/pods/web-1":                                              false,
		"POST /apis/karpenter.sh/v1/nodeclaims":                                                   false,
		"POST /apis/batch/v1/namespaces/lifeboat-hooks/jobs":                                      false,
		"PATCH /api/v1/namespaces/default/pods/apis/lifeboat.dev/v1beta1/interruptions/something": false,
	} {
		server := &recorded{}
		config := &rest.Config{Transport: server}
		Config{Observe: true}.guardCluster(config)
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		method, path, _ := strings.Cut(request, " ")
		q, err := http.NewRequestWithContext(t.Context(), method, "https://api.example.com"+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(q)
		if err == nil {
			_ = resp.Body.Close()
		}
		if (err == nil) != allowed || (len(server.requests) == 1) != allowed {
			t.Errorf("%s: error %v, sent %v; want allowed: %t", request, err, server.requests, allowed)
		}
	}
}

func TestObserveChangesNothingOnAWS(t *testing.T) {
	server := &recorded{}
	plain := aws.Config{
		Region: "eu-west-1", Credentials: awshttp.StaticCredentials("a", "b"),
		HTTPClient: &http.Client{Transport: server}, BaseEndpoint: aws.String("https://aws.example.com"), RetryMaxAttempts: 1,
	}
	guarded := Config{Observe: true}.guardCloud(plain)
	groups, queue, trail := autoscaling.NewFromConfig(guarded), sqs.NewFromConfig(guarded), cloudtrail.NewFromConfig(guarded)
	calls := map[string]struct {
		call    func() error
		allowed bool
	}{
		"complete a hook": {func() error {
			_, err := groups.CompleteLifecycleAction(t.Context(), &autoscaling.CompleteLifecycleActionInput{
				AutoScalingGroupName: aws.String("g"), LifecycleHookName: aws.String("h"), LifecycleActionResult: aws.String("CONTINUE"),
			})
			return err
		}, false},
		"send to Karpenter's queue": {func() error {
			_, err := queue.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String("https://q"), MessageBody: aws.String("m")})
			return err
		}, false},
		"look for refused answers": {func() error {
			_, err := trail.LookupEvents(t.Context(), &cloudtrail.LookupEventsInput{})
			return err
		}, true},
		"receive": {func() error {
			_, err := queue.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String("https://q")})
			return err
		}, true},
		"acknowledge": {func() error {
			_, err := queue.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: aws.String("https://q"), ReceiptHandle: aws.String("r")})
			return err
		}, true},
	}
	for name, c := range calls {
		server.requests = nil
		err := c.call()
		if (len(server.requests) > 0) != c.allowed || !c.allowed && !strings.Contains(err.Error(), "mode Observe") {
			t.Errorf("%s: sent %v, error %v; want sent: %t", name, server.requests, err, c.allowed)
		}
	}
	if len(plain.APIOptions) > 0 {
		t.Error("the configuration of the caller was changed")
	}
}

func TestModeHasTwoValues(t *testing.T) {
	if observe, err := ParseMode(ModeObserve); !observe || err != nil {
		t.Errorf("Observe: %t, %v", observe, err)
	}
	if observe, err := ParseMode(ModeAct); observe || err != nil {
		t.Errorf("Act: %t, %v", observe, err)
	}
	if _, err := ParseMode("observe"); err == nil || !strings.Contains(err.Error(), "write Act or Observe") {
		t.Errorf("a word in another case: %v", err)
	}
}
