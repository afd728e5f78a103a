package emulator_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/lifeboat-dev/lifeboat/emulator"
	ec2state "github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
)

// plainHTTP marks requests as those of a client that uses no TLS.
type plainHTTP struct{ next http.RoundTripper }

func (p plainHTTP) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("X-Forwarded-Proto", "http")
	return p.next.RoundTrip(r)
}

// limited is an account with a queue, and a role with one policy.
type limited struct {
	server *emulator.Server
	url    string
	role   string
}

func newLimited(t *testing.T, policy string) limited {
	t.Helper()
	server, url := emulatortest.Serve(t, emulator.Options{})
	l := limited{server, url, "arn:aws:iam::123456789012:role/limited"}
	for _, err := range []error{
		server.States.SQS.Create("q", nil, map[string]string{"team": "a"}), server.States.IAM.PutRole("limited"),
		server.States.IAM.PutRolePolicy("limited", "p", policy),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// config is the SDK's configuration for a session of the role.
func (l limited) config() aws.Config {
	_, c := l.server.States.STS.AssumeRole(l.role, "me", time.Now().Add(time.Hour))
	return aws.Config{
		Region: l.server.Region(), BaseEndpoint: &l.url, RetryMaxAttempts: 1, HTTPClient: awshttp.NewClient(),
		Credentials: awshttp.StaticCredentials(c.AccessKeyID, c.SecretAccessKey),
	}
}

func (l limited) receive(t *testing.T, cfg aws.Config) error {
	t.Helper()
	_, err := sqs.NewFromConfig(cfg).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(l.url + "/123456789012/q")})
	return err
}

// refused checks the code and a part of the message of an error; both empty: there is none.
func refused(t *testing.T, err error, code, part string) {
	t.Helper()
	var api smithy.APIError
	switch {
	case code == "" && err != nil:
		t.Errorf("refused: %v", err)
	case code == "":
	case !errors.As(err, &api) || api.ErrorCode() != code || !strings.Contains(api.ErrorMessage(), part):
		t.Errorf("error %v, want %s with %q", err, code, part)
	}
}

func allow(actions, resource, condition string) string {
	return `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":` + actions + `,"Resource":"` + resource + `","Condition":` + condition + `}]}`
}

func TestRolePoliciesLimitSessions(t *testing.T) {
	t.Parallel()
	const queue = "arn:aws:sqs:us-east-1:123456789012:q"
	who := "User: arn:aws:sts::123456789012:assumed-role/limited/me is not authorized to perform: sqs:ReceiveMessage on resource: " + queue
	notAllowed := who + " because no identity-based policy allows the sqs:ReceiveMessage action"
	for name, tc := range map[string]struct{ policy, code, part string }{
		"the action on the queue":      {allow(`"sqs:ReceiveMessage"`, queue, "{}"), "", ""},
		"another action":               {allow(`"sqs:SendMessage"`, queue, "{}"), "AccessDenied", notAllowed},
		"another queue":                {allow(`"sqs:*"`, queue+"2", "{}"), "AccessDenied", notAllowed},
		"the tag of the queue":         {allow(`"sqs:*"`, "*", `{"StringEquals":{"aws:ResourceTag/team":"a"}}`), "", ""},
		"another tag of the queue":     {allow(`"sqs:*"`, "*", `{"StringEquals":{"aws:ResourceTag/team":"b"}}`), "AccessDenied", notAllowed},
		"the region":                   {allow(`"sqs:*"`, "*", `{"StringEquals":{"aws:RequestedRegion":"us-east-1"}}`), "", ""},
		"another region":               {allow(`"sqs:*"`, "*", `{"StringEquals":{"aws:RequestedRegion":"us-east-2"}}`), "AccessDenied", notAllowed},
		"the role":                     {allow(`"sqs:*"`, "*", `{"ArnEquals":{"aws:PrincipalArn":"arn:aws:iam::123456789012:role/limited"}}`), "", ""},
		"the credentials of instances": {allow(`"sqs:*"`, "*", `{"Null":{"ec2:SourceInstanceARN":"false"}}`), "AccessDenied", notAllowed},
		"an explicit deny": {
			`{"Statement":[{"Effect":"Allow","Action":"*","Resource":"*"},{"Effect":"Deny","Action":"sqs:Receive*","Resource":"*"}]}`,
			"AccessDenied", who + " with an explicit deny in an identity-based policy",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLimited(t, tc.policy)
			refused(t, l.receive(t, l.config()), tc.code, tc.part)
		})
	}
}

func TestRolesWithoutPoliciesMayDoEverything(t *testing.T) {
	t.Parallel()
	l := newLimited(t, allow(`"ec2:*"`, "*", "{}"))
	l.role = "arn:aws:iam::123456789012:role/other"
	refused(t, l.receive(t, l.config()), "", "")
	l.role = "arn:aws:iam::123456789012:role/limited"
	if err := l.server.States.IAM.DeleteRolePolicy("limited", "p"); err != nil {
		t.Fatal(err)
	}
	refused(t, l.receive(t, l.config()), "AccessDenied", "no identity-based policy allows")
}

func TestQueuePoliciesAllowAndDenySessions(t *testing.T) {
	t.Parallel()
	l := newLimited(t, allow(`"ec2:*"`, "*", "{}"))
	statement := func(effect, principal, condition string) string {
		return `{"Effect":"` + effect + `","Principal":` + principal + `,"Action":"sqs:*","Resource":"*","Condition":` + condition + `}`
	}
	set := func(statements ...string) {
		t.Helper()
		policy := `{"Version":"2012-10-17","Statement":[` + strings.Join(statements, ",") + `]}`
		if err := l.server.States.SQS.SetAttributes("q", map[string]string{"Policy": policy}); err != nil {
			t.Fatal(err)
		}
	}
	byRole := statement("Allow", `{"AWS":"`+l.role+`"}`, "{}")
	set(byRole)
	refused(t, l.receive(t, l.config()), "", "")
	set(byRole, statement("Deny", `"*"`, `{"Bool":{"aws:SecureTransport":"false"}}`))
	refused(t, l.receive(t, l.config()), "", "")
	plain := l.config()
	plain.HTTPClient = &http.Client{Transport: plainHTTP{http.DefaultTransport}}
	refused(t, l.receive(t, plain), "AccessDenied", "with an explicit deny in a resource-based policy")
	set(byRole, statement("Deny", `"*"`, `{"ArnNotLike":{"aws:PrincipalArn":"arn:aws:iam::123456789012:role/other"}}`))
	refused(t, l.receive(t, l.config()), "AccessDenied", "with an explicit deny in a resource-based policy")
}

func TestInstanceSessionsHaveTheirInstance(t *testing.T) {
	t.Parallel()
	l := newLimited(t, allow(`"sqs:*"`, "*", `{"ArnEquals":{"ec2:SourceInstanceARN":"arn:aws:ec2:us-east-1:123456789012:instance/i-1"}}`))
	cfg := l.config()
	c := l.server.States.STS.AssumeRoleOfInstance(l.role, "i-1", time.Now().Add(time.Hour))
	cfg.Credentials = awshttp.StaticCredentials(c.AccessKeyID, c.SecretAccessKey)
	refused(t, l.receive(t, cfg), "", "")
}

func TestEC2ChecksEachInstance(t *testing.T) {
	t.Parallel()
	l := newLimited(t, allow(`"ec2:TerminateInstances"`, "*", `{"StringEquals":{"ec2:ResourceTag/team":"a"}}`))
	var ids []string
	for _, team := range []string{"a", "b"} {
		made, err := l.server.States.EC2.Launch(ec2state.LaunchInput{ImageID: "ami-1", Min: 1, Max: 1, Tags: map[string]string{"team": team}})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, made[0].ID)
	}
	client := ec2.NewFromConfig(l.config())
	_, err := client.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: ids})
	refused(t, err, "UnauthorizedOperation", "not authorized to perform: ec2:TerminateInstances on resource: arn:aws:ec2:us-east-1:123456789012:instance/"+ids[1])
	_, err = client.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: ids[:1]})
	refused(t, err, "", "")
}

func TestEventBridgeChecksEachEvent(t *testing.T) {
	t.Parallel()
	l := newLimited(t, allow(`"events:PutEvents"`, "*", `{"StringEquals":{"events:source":"mine"}}`))
	put := func(sources ...string) error {
		in := &eventbridge.PutEventsInput{}
		for _, s := range sources {
			in.Entries = append(in.Entries, ebtypes.PutEventsRequestEntry{Source: aws.String(s), DetailType: aws.String("d"), Detail: aws.String("{}")})
		}
		_, err := eventbridge.NewFromConfig(l.config()).PutEvents(t.Context(), in)
		return err
	}
	refused(t, put("mine"), "", "")
	refused(t, put("mine", "aws.ec2"), "AccessDeniedException", "events:PutEvents on resource: arn:aws:events:us-east-1:123456789012:event-bus/default")
}
