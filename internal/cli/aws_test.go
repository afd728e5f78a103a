package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
	"github.com/lifeboat-dev/lifeboat/internal/doctor"
)

// awsAccount is an emulated AWS account that --sandbox selects.
type awsAccount struct {
	*harness

	server *emulator.Server
	url    string
	queues *sqs.Client
	rules  *eventbridge.Client
}

func newAWSAccount(t *testing.T) *awsAccount {
	t.Helper()
	server, url := emulatortest.Serve(t, emulator.Options{})
	cfg := aws.Config{Region: server.Region(), BaseEndpoint: &url, Credentials: awshttp.StaticCredentials("AKIAEXAMPLE", "x")}
	return &awsAccount{harness: atEndpoint(t, url), server: server, url: url, queues: sqs.NewFromConfig(cfg), rules: eventbridge.NewFromConfig(cfg)}
}

// atEndpoint makes --sandbox select the AWS endpoint at a URL.
func atEndpoint(t *testing.T, url string) *harness {
	t.Helper()
	return &harness{t: t, setup: func(s *session) {
		s.findSandbox = func(string) (connection, error) {
			return connection{
				endpoint: url, region: "us-east-1", accessKeyID: "AKIAEXAMPLE", secretAccessKey: "x", lifeboatd: &doctor.Process{Alive: true},
			}, nil
		}
	}}
}

// aws runs an aws command for the cluster prod.
func (e *awsAccount) aws(args ...string) result {
	e.t.Helper()
	r := e.run(e.t.Context(), append(append([]string{"aws"}, args...), "--sandbox=default", "--cluster", "prod")...)
	r.out, r.err = strings.ReplaceAll(r.out, e.url, "https://sqs"), strings.ReplaceAll(r.err, e.url, "https://sqs")
	return r
}

func (e *awsAccount) want(r result, code int) {
	e.t.Helper()
	if r.code != code {
		e.t.Fatalf("exit code %d, want %d\n%s%s", r.code, code, r.out, r.err)
	}
}

func TestAWSApplyAndDestroy(t *testing.T) {
	e := newAWSAccount(t)
	plan := e.aws("plan")
	e.want(plan, ExitChanges)
	golden(t, "aws-plan-new.golden", plan.out)
	e.want(e.aws("plan"), ExitChanges) // the plan changed nothing
	const sender = "arn:aws:iam::123456789012:role/ops-*"
	if again := e.aws("plan", "--sender", sender, "--region", "us-east-1"); !strings.Contains(again.out, "aws setup --cluster prod --sender '"+sender+"' --region us-east-1`") {
		t.Errorf("the printed command lacks flags:\n%s%s", again.out, again.err)
	}

	apply := e.aws("setup", "--yes")
	e.want(apply, ExitOK)
	if !strings.HasPrefix(apply.out, strings.Split(plan.out, "\nRun `lifeboat aws setup")[0]) {
		t.Errorf("apply does not show the plan first:\n%s", apply.out)
	}
	for _, want := range []string{"created queue lifeboat-prod-dead-letter\ncreated queue lifeboat-prod\ncreated rule lifeboat-prod-spot-interruption\n",
		"The queue: https://sqs/123456789012/lifeboat-prod\n", "--set-string aws.queueURL=https://sqs/123456789012/lifeboat-prod --set-string aws.clusterName=prod\n"} {
		if !strings.Contains(apply.out, want) {
			t.Errorf("apply does not say %q:\n%s", want, apply.out)
		}
	}
	plan = e.aws("plan")
	e.want(plan, ExitOK)
	if want := "AWS resources of cluster prod in account 123456789012, region us-east-1\n\nNo changes are needed.\n"; plan.out != want {
		t.Errorf("second plan:\n%s", plan.out)
	}

	url := "https://sqs/123456789012/lifeboat-prod"
	send := func() error {
		_, err := e.queues.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(strings.Replace(url, "https://sqs", e.url, 1)), MessageBody: aws.String("x")})
		return err
	}
	s := &session{name: "lifeboat"}
	if err := send(); !strings.Contains(s.hint(awsError{err}), "lifeboat aws setup --cluster NAME --sender ARN") {
		t.Errorf("sending without --sender: %v, hint %q", err, s.hint(awsError{err}))
	}
	e.want(e.aws("setup", "--yes", "--sender", "arn:aws:iam::123456789012:user/lifeboat"), ExitOK)
	if err := send(); err != nil {
		t.Fatal(err)
	}
	e.want(e.aws("plan"), ExitChanges)  // would remove the sender
	e.want(e.aws("destroy"), ExitUsage) // no terminal for the confirmation
	e.interactive, e.stdin = true, "n\n"
	refused := e.aws("destroy")
	e.want(refused, ExitFailed)
	e.stdin = "y\n"
	destroyed := e.aws("destroy")
	e.want(destroyed, ExitOK)
	golden(t, "aws-destroy.golden", destroyed.out+"--- standard error\n"+destroyed.err)
	again := e.aws("destroy")
	e.want(again, ExitOK)
	if !strings.Contains(again.out, "No changes are needed.") {
		t.Errorf("destroyed twice:\n%s", again.out)
	}
	soon := e.aws("setup", "--yes")
	e.want(soon, ExitFailed)
	if !strings.Contains(soon.err, "try again in a minute") {
		t.Errorf("queues that were just deleted:\n%s", soon.err)
	}
}

func TestAWSPlanShowsDriftAndConflicts(t *testing.T) {
	e := newAWSAccount(t)
	e.want(e.aws("setup", "--yes"), ExitOK)
	queue := aws.String(e.url + "/123456789012/lifeboat-prod")
	if _, err := e.queues.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: queue, Attributes: map[string]string{
		"KmsMasterKeyId": "alias/aws/sqs", "MessageRetentionPeriod": "300",
		"Policy": `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":["events.amazonaws.com","sqs.amazonaws.com"]},"Action":"sqs:SendMessage","Resource":"*"}]}`,
	}}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.rules.PutRule(t.Context(), &eventbridge.PutRuleInput{
		Name: aws.String("lifeboat-prod-spot-interruption"), State: "DISABLED",
		Description: aws.String("EC2 takes a spot instance back, in two minutes"), EventPattern: aws.String(`{"source":["aws.ec2"],"detail-type":["EC2 Spot Interruption Warning"]}`),
	}); err != nil {
		t.Fatal(err)
	}
	drift := e.aws("plan")
	e.want(drift, ExitChanges)
	golden(t, "aws-plan-drift.golden", drift.out)

	if _, err := e.queues.UntagQueue(t.Context(), &sqs.UntagQueueInput{QueueUrl: queue, TagKeys: []string{"lifeboat.dev/cluster"}}); err != nil {
		t.Fatal(err)
	}
	inTheWay := e.aws("plan")
	e.want(inTheWay, ExitFailed)
	golden(t, "aws-plan-conflict.golden", inTheWay.out+"--- standard error\n"+inTheWay.err)
	refused := e.aws("setup", "--yes")
	e.want(refused, ExitFailed)
	if strings.Contains(refused.out, "changed") {
		t.Errorf("something was changed:\n%s", refused.out)
	}

	adopted := e.aws("setup", "--adopt", "--yes", "-o", "json")
	e.want(adopted, ExitOK)
	var report plannedSetup
	if err := json.Unmarshal([]byte(adopted.out), &report); err != nil {
		t.Fatalf("%v in %s", err, adopted.out)
	}
	if report.Applied == nil || report.Applied.QueueURL != "https://sqs/123456789012/lifeboat-prod" || len(report.Changes) != 2 || report.Region != "us-east-1" {
		t.Errorf("reported %+v", report)
	}
	e.want(e.aws("plan"), ExitOK)
}

func TestAWSPlanInJSON(t *testing.T) {
	e := newAWSAccount(t)
	r := e.aws("plan", "-o", "json")
	e.want(r, ExitChanges)
	var report plannedSetup
	if err := json.Unmarshal([]byte(r.out), &report); err != nil {
		t.Fatalf("%v in %s", err, r.out)
	}
	if len(report.Changes) != 10 || report.Cluster != "prod" || report.Account != "123456789012" || r.err != "" {
		t.Errorf("reported %+v, standard error %q", report, r.err)
	}
	e.want(e.aws("setup", "--yes"), ExitOK)
	if r := e.aws("plan", "-o", "json"); r.code != ExitOK || !strings.Contains(r.out, `"changes": []`) {
		t.Errorf("exit code %d: %s", r.code, r.out)
	}
}

func TestAWSEmitNeedsNoAccount(t *testing.T) {
	h := &harness{t: t}
	for format, want := range map[string]string{
		"cloudformation": "AWSTemplateFormatVersion: \"2010-09-09\"\n", "terraform": `"aws_cloudwatch_event_rule": {`, "json": `"eventPattern": {`,
	} {
		r := h.run(t.Context(), "aws", "emit", "--cluster", "prod", "--format", format)
		if r.code != ExitOK || !strings.Contains(r.out, want) || r.err != "" {
			t.Errorf("%s: exit code %d, standard error %q:\n%s", format, r.code, r.err, r.out)
		}
	}
	if r := h.run(t.Context(), "aws", "emit", "--cluster", "prod", "-o", "json"); !json.Valid([]byte(r.out)) {
		t.Errorf("-o json printed\n%s", r.out)
	}
}

func TestAWSIAM(t *testing.T) {
	h := &harness{t: t}
	place := []string{"--cluster", "prod", "--account", "210987654321", "--region", "eu-west-1"}
	golden(t, "aws-iam.golden", h.run(t.Context(), append([]string{"aws", "iam"}, place...)...).out)
	agent := h.run(t.Context(), "aws", "iam", "--role", "agent", "--cluster", "prod")
	if agent.code != ExitOK || !strings.Contains(agent.out, "needs no IAM permission") {
		t.Errorf("agent: exit code %d: %s", agent.code, agent.out)
	}
	var p struct {
		Policy struct {
			Statement []struct{ Action []string }
		}
	}
	r := h.run(t.Context(), append([]string{"aws", "iam", "--role", "setup", "-o", "json"}, place...)...)
	if err := json.Unmarshal([]byte(r.out), &p); err != nil || len(p.Policy.Statement) != 3 {
		t.Errorf("%v: %s", err, r.out)
	}
	// Without --account and --region, the credentials decide.
	e := newAWSAccount(t)
	if r := e.aws("iam"); r.code != ExitOK || !strings.Contains(r.out, "arn:aws:sqs:us-east-1:123456789012:lifeboat-prod") {
		t.Errorf("exit code %d:\n%s%s", r.code, r.out, r.err)
	}
}

func TestAWSUsageErrors(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"plan"}, "the cluster name is missing: add --cluster NAME"},
		{[]string{"plan", "--cluster", "a b"}, `"a b" is not a valid cluster name`},
		{[]string{"plan", "--cluster", "${x}"}, `"${x}" is not a valid cluster name`},
		{[]string{"plan", "--cluster", "prod", "--region", "eu-west-1a"}, `"eu-west-1a" is not a valid AWS region: write it like eu-west-1`},
		{[]string{"emit", "--cluster", "prod", "--account", "12"}, "write its twelve digits"},
		{[]string{"plan", "--cluster", "prod", "--sender", "ops"}, `--sender "ops" is not the ARN of a role or user`},
		{[]string{"emit", "--cluster", "prod", "--sender", "arn:aws:sts::210987654321:assumed-role/ops/me"}, "name its role"},
		{[]string{"emit", "--cluster", "prod", "--identity", "irsa"}, "add --oidc-issuer URL"},
		{[]string{"emit", "--cluster", "prod", "--identity", "pod-identity", "--oidc-issuer", "https://x"}, "remove --oidc-issuer"},
		{[]string{"emit", "--cluster", "prod", "--identity", "kube2iam"}, "write --identity pod-identity or --identity irsa"},
		{[]string{"emit", "--cluster", "prod", "--identity", "pod-identity", "--format", "json"}, "lifeboat aws iam -o json"},
		{[]string{"emit", "--cluster", "prod", "--canary"}, "add --identity pod-identity or --identity irsa"},
		{[]string{"emit", "--cluster", "prod", "--format", "cdk"}, "write --format cloudformation, terraform or json"},
		{[]string{"iam", "--cluster", "prod", "--role", "x"}, "write --role controller, agent, boot, fis or setup"},
		{[]string{"setpu"}, "did you mean setup?"},
		{[]string{"setup", "now"}, "takes no arguments, got 1"},
	} {
		r := (&harness{t: t}).run(t.Context(), append([]string{"aws"}, tc.args...)...)
		if r.code != ExitUsage || !strings.Contains(r.err, tc.want) {
			t.Errorf("%v: exit code %d: %s", tc.args, r.code, r.err)
		}
	}
}

// refusing is an AWS endpoint that answers only GetCallerIdentity and returns
// an error for all other calls.
func refusing(t *testing.T, code, message string) *harness {
	t.Helper()
	_, backend := emulatortest.Serve(t, emulator.Options{})
	target, err := url.Parse(backend)
	if err != nil {
		t.Fatal(err)
	}
	sts := httputil.NewSingleHostReverseProxy(target)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Amz-Target") == "" {
			sts.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.Header().Set("X-Amzn-Query-Error", code+";Sender")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(map[string]string{"__type": "com.amazonaws#" + code, "message": message})
	}))
	t.Cleanup(proxy.Close)
	return atEndpoint(t, proxy.URL)
}

func TestAWSErrorsHaveANextStep(t *testing.T) {
	r := refusing(t, "AccessDenied", "Access to the resource https://sqs.us-east-1.amazonaws.com/ is denied.").
		run(t.Context(), "aws", "plan", "--sandbox=default", "--cluster", "prod")
	for _, want := range []string{"queue lifeboat-prod: getting the queue's URL", "lack the permission sqs:GetQueueUrl", "aws iam --role setup"} {
		if r.code != ExitFailed || !strings.Contains(r.err, want) {
			t.Errorf("denied: exit code %d, want %q in\n%s", r.code, want, r.err)
		}
	}
	r = atEndpoint(t, "http://127.0.0.1:1").run(t.Context(), "aws", "plan", "--sandbox=default", "--cluster", "prod")
	if r.code != ExitFailed || !strings.Contains(r.err, "AWS does not answer") {
		t.Errorf("unreachable: exit code %d\n%s", r.code, r.err)
	}
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/none")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/none")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	for _, name := range []string{"AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		t.Setenv(name, "")
	}
	h := &harness{t: t}
	if r := h.run(t.Context(), "aws", "plan", "--cluster", "prod"); r.code != ExitFailed || !strings.Contains(r.err, "No AWS region is set") {
		t.Errorf("no region: exit code %d\n%s", r.code, r.err)
	}
	if r := h.run(t.Context(), "aws", "plan", "--cluster", "prod", "--region", "eu-west-1"); r.code != ExitFailed || !strings.Contains(r.err, "There are no AWS credentials") {
		t.Errorf("no credentials: exit code %d\n%s", r.code, r.err)
	}
}
