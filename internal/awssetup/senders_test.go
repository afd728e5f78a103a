package awssetup_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	emulated "github.com/lifeboat-dev/lifeboat/emulator/sqs"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
)

// plainHTTP marks requests as those of a client that uses no TLS.
type plainHTTP struct{}

func (plainHTTP) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("X-Forwarded-Proto", "http")
	return http.DefaultTransport.RoundTrip(r)
}

const opsRole = "arn:aws:iam::123456789012:role/ops"

// ops returns a client with a role that may do everything on queues, by its identity policy.
func (a *account) ops(t *testing.T, change func(*sqs.Options)) *sqs.Client {
	t.Helper()
	if err := a.server.States.IAM.PutRole("ops"); err != nil {
		t.Fatal(err)
	}
	if err := a.server.States.IAM.PutRolePolicy("ops", "p", `{"Statement":{"Effect":"Allow","Action":"sqs:*","Resource":"*"}}`); err != nil {
		t.Fatal(err)
	}
	_, c := a.server.States.STS.AssumeRole(opsRole, "me", time.Now().Add(time.Hour))
	o := a.queues.Options()
	o.Credentials = awshttp.StaticCredentials(c.AccessKeyID, c.SecretAccessKey)
	change(&o)
	return sqs.New(o)
}

func (a *account) url(t *testing.T, queue string) *string {
	t.Helper()
	out, err := a.queues.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: &queue})
	if err != nil {
		t.Fatal(err)
	}
	return out.QueueUrl
}

// Each call is made by a role whose identity policy allows all of SQS.
func TestQueuePolicyRefusesOtherSenders(t *testing.T) {
	t.Parallel()
	const (
		send    = "send"
		receive = "receive"
		redrive = "redrive"
	)
	for name, tc := range map[string]struct {
		senders  []string
		call     string
		dead     bool // the dead-letter queue
		plain    bool
		answered string // the code of the error; empty: success
	}{
		"sending":                             {nil, send, false, false, "AccessDenied"},
		"sending as another sender":           {[]string{opsRole + "2"}, send, false, false, "AccessDenied"},
		"sending as a sender":                 {[]string{opsRole + "2", opsRole}, send, false, false, ""},
		"sending as a sender with a wildcard": {[]string{"arn:aws:iam::123456789012:role/o*"}, send, false, false, ""},
		"a sender without TLS":                {[]string{opsRole}, send, false, true, "AccessDenied"},
		"receiving":                           {nil, receive, false, false, ""},
		"receiving without TLS":               {nil, receive, false, true, "AccessDenied"},
		"receiving dead letters":              {nil, receive, true, false, ""},
		"receiving dead letters without TLS":  {nil, receive, true, true, "AccessDenied"},
		"redriving":                           {nil, redrive, true, false, "AccessDenied"},
		"redriving as a sender":               {[]string{opsRole}, redrive, true, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t)
			a.w.Senders = tc.senders
			a.w.Queue.Wait = 0 // an empty queue answers at once
			a.apply(t, a.plan(t, awssetup.Options{}))
			client := a.ops(t, func(o *sqs.Options) {
				if tc.plain {
					o.HTTPClient = &http.Client{Transport: plainHTTP{}}
				}
			})
			queue := a.url(t, a.w.Queue.Name)
			if tc.dead {
				queue = a.url(t, a.w.DeadLetter.Name)
			}
			var err error
			switch tc.call {
			case send:
				_, err = client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: queue, MessageBody: aws.String("b")})
			case receive:
				_, err = client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: queue})
			case redrive:
				_, err = client.StartMessageMoveTask(t.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(a.w.DeadLetterARN())})
			}
			if got := awshttp.Code(err); got != tc.answered || (err != nil) != (tc.answered != "") {
				t.Errorf("%s: %v, want %q", tc.call, err, tc.answered)
			}
		})
	}
}

// A rule of the same account that is not Lifeboat's cannot reach the queue; Lifeboat's can, which
// TestEveryProbeArrives proves for each of them.
func TestQueuePolicyRefusesOtherRules(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.apply(t, a.plan(t, awssetup.Options{}))
	deliver := func(rule string) error {
		return a.server.States.SQS.Deliver(a.w.QueueARN(), "b", emulated.Sender{
			ServicePrincipal: "events.amazonaws.com", SourceARN: a.w.RuleARN(rule), SourceAccount: a.w.Account,
		})
	}
	if err := deliver("others"); err == nil {
		t.Error("another rule of the account delivered to the queue")
	}
	if err := deliver(a.w.Rules[0].Name); err != nil {
		t.Errorf("a rule of the cluster: %v", err)
	}
}
