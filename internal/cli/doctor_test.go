package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	sqsstate "github.com/lifeboat-dev/lifeboat/emulator/sqs"
	"github.com/lifeboat-dev/lifeboat/internal/doctor"
)

// doctor runs the command doctor for the cluster prod.
func (e *awsAccount) doctor(args ...string) result {
	e.t.Helper()
	r := e.run(e.t.Context(), append([]string{"doctor", "--sandbox=default", "--cluster", "prod"}, args...)...)
	r.out, r.err = strings.ReplaceAll(r.out, e.url, "https://sqs"), strings.ReplaceAll(r.err, e.url, "https://sqs")
	return r
}

func newBrokenAccount(t *testing.T) *awsAccount {
	t.Helper()
	e := newAWSAccount(t)
	e.cluster = fakeCluster(t, interceptor.Funcs{})
	e.want(e.aws("setup", "--yes"), ExitOK)
	return e
}

func TestDoctorFindsNothing(t *testing.T) {
	r := newBrokenAccount(t).doctor()
	if want := "Queue lifeboat-prod in account 123456789012, region us-east-1\nLifeboat runs as a process of the sandbox.\n\nAll checks passed: every kind of notice reaches the queue.\n"; r.out != want || r.code != ExitOK || r.err != "" {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
}

func TestDoctorFindsWhatIsBroken(t *testing.T) {
	e := newBrokenAccount(t)
	_, err := e.rules.PutRule(t.Context(), &eventbridge.PutRuleInput{
		Name: aws.String("lifeboat-prod-spot-interruption"), EventPattern: aws.String(`{"source":["aws.ec2"],"detail-type":["EC2 Spot Interruption Warning"]}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	url := e.url + "/123456789012/lifeboat-prod"
	if _, err := e.queues.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{
		QueueUrl: &url, Attributes: map[string]string{"MessageRetentionPeriod": "300", "SqsManagedSseEnabled": "false"},
	}); err != nil {
		t.Fatal(err)
	}
	e.server.Gate.Deny("events", "ListEventBuses")
	e.cluster = fakeCluster(t, interceptor.Funcs{}, karpenterDeployment())

	r := e.doctor()
	golden(t, "doctor-broken.golden", r.out)
	if r.code != 1 || r.err != "" {
		t.Errorf("exit code %d, standard error %q", r.code, r.err)
	}

	r = e.doctor("-o", "json")
	var report doctorReport
	if err := json.Unmarshal([]byte(r.out), &report); err != nil || r.code != 1 {
		t.Fatalf("exit code %d, %v:\n%s", r.code, err, r.out)
	}
	if report.Counts["broken"] != 1 || report.Findings[0].ID != "rule-matches-nothing" || report.Findings[0].Kinds[0] != "SpotInterruption" {
		t.Errorf("%+v", report)
	}
}

func karpenterDeployment() *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "kube-system", Name: "karpenter", Labels: map[string]string{"app.kubernetes.io/name": "karpenter", "app.kubernetes.io/version": "1.14.1"},
		},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Env: []corev1.EnvVar{{Name: "INTERRUPTION_QUEUE", Value: "prod"}},
		}}}}},
	}
}

func TestDoctorCannotReadTheAccount(t *testing.T) {
	e := newBrokenAccount(t)
	for name, tc := range map[string]struct {
		do   func()
		args []string
		want string
	}{
		"all is denied":                  {func() { e.server.Gate.Deny("sqs", "*"); e.server.Gate.Deny("events", "*") }, nil, "AWS denied these actions: sqs:GetQueueUrl"},
		"some is denied":                 {func() { e.server.Gate.Deny("events", "ListRules") }, nil, ""},
		"the queue is another account's": {func() {}, []string{"--queue-url", "https://sqs.us-east-1.amazonaws.com/999999999999/q"}, "is in account 999999999999"},
	} {
		t.Run(name, func(t *testing.T) {
			defer e.server.Gate.LiftAll()
			tc.do()
			if r := e.doctor(tc.args...); r.code != exitIncomplete || !strings.Contains(r.err, tc.want) {
				t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
			}
		})
	}
	e.setup = func(s *session) {
		s.findSandbox = func(string) (connection, error) { return connection{}, errors.New("no such sandbox") }
	}
	if r := e.doctor(); r.code != exitIncomplete || !strings.Contains(r.err, "no such sandbox") {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
}

func TestDoctorMissingQueue(t *testing.T) {
	e := newAWSAccount(t)
	e.cluster = fakeCluster(t, interceptor.Funcs{})
	if r := e.doctor(); r.code != 1 || !strings.Contains(r.out, "queue-missing") {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
}

func TestDoctorWithoutACluster(t *testing.T) {
	e := newBrokenAccount(t)
	sandboxed := e.setup
	e.cluster, e.setup = nil, func(s *session) {
		sandboxed(s)
		s.connect = func(context.Context) (cluster, error) { return cluster{}, errors.New("there is no kubeconfig") }
	}
	r := e.doctor()
	if r.code != exitIncomplete || !strings.Contains(r.out, "The cluster was not checked: there is no kubeconfig.\n") || !strings.Contains(r.out, "cluster-not-checked") {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
}

func TestDoctorOffline(t *testing.T) {
	const misspelt = `{"Rules":[{"Name":"spot","State":"ENABLED","EventPattern":"{\"source\":[\"aws.ec2\"],\"detail-type\":[\"EC2 Spot Interruption Warning\"]}"}]}`
	dir := t.TempDir()
	open, other := filepath.Join(dir, "open.json"), filepath.Join(dir, "other.json")
	for name, text := range map[string]string{
		open:  `{"Parameters":{"P":{"Type":"String"}},"Resources":{"R":{"Type":"AWS::Events::Rule","Properties":{"EventPattern":{"source":[{"Ref":"P"}]},"Targets":[{"Id":"q","Arn":"arn:aws:sqs:eu-west-1:1:q"}]}}}}`,
		other: `{"Resources":{}}`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	emitted := (&harness{t: t}).run(t.Context(), "aws", "emit", "--cluster", "prod")
	for name, tc := range map[string]struct {
		stdin string
		args  []string
		code  int
		want  string
	}{
		"a misspelt rule":     {misspelt, []string{"--offline", "-f", "-"}, 1, `"EC2 Spot Instance Interruption Warning"`},
		"its own template":    {emitted.out, []string{"--offline", "-f", "-"}, 0, "All checks passed"},
		"for its own cluster": {emitted.out, []string{"--offline", "-f", "-", "--cluster", "prod", "--region", "eu-west-1"}, 0, "2 queues and 8 rules"},
		"an open parameter":   {"", []string{"--offline", "-f", open}, 3, "NOT-UNDERSTOOD"},
		"nothing in it":       {"", []string{"--offline", "-f", other}, 3, "no queue, no EventBridge rule"},
		"no such file":        {"", []string{"--offline", "-f", filepath.Join(dir, "none")}, 3, "no such file"},
		"not a template":      {"hello", []string{"--offline", "-f", "-"}, 3, "neither a template"},
		"a directory":         {"", []string{"--offline", "-f", dir}, 3, "NOT-UNDERSTOOD"},
		"an empty directory":  {"", []string{"--offline", "-f", t.TempDir()}, 3, "no file to check"},
		"a glob":              {"", []string{"--offline", "-f", filepath.Join(dir, "op*.json")}, 3, "NOT-UNDERSTOOD"},
		"an idle glob":        {"", []string{"--offline", "-f", filepath.Join(dir, "*.none")}, 3, "no file to check"},
		"a strange severity":  {"", []string{"--offline", "-f", open, "--fail-on", "bad"}, 2, "--fail-on"},
		"unknown is accepted": {"", []string{"--offline", "-f", open, "--fail-on", "broken"}, 0, "NOT-UNDERSTOOD"},
		"no file":             {"", []string{"--offline"}, 2, "add -f FILE"},
		"a file and no flag":  {"", []string{"-f", open}, 2, "add --offline"},
		"Terraform's HCL":     {"resource \"aws_sqs_queue\" \"q\" {\n  name = \"q\"\n}\n", []string{"--offline", "-f", "-"}, 1, "1 queue and 0 rules"},
		"a Pulumi program":    {"name: wiring\nruntime: yaml\n", []string{"--offline", "-f", "-"}, 3, "it is a Pulumi program"},
		"Crossplane":          {"apiVersion: sqs.aws.upbound.io/v1beta1\nkind: Queue\n", []string{"--offline", "-f", "-"}, 3, "it is a Crossplane manifest"},
		"a parameter":         {"", []string{"--offline", "-f", open, "--parameter", "P=aws.ec2"}, 3, "do not contain its policy"},
		"a strange account":   {"", []string{"--offline", "-f", open, "--account", "1"}, 2, "write its 12 digits"},
		"a strange region":    {"", []string{"--region", "here"}, 2, "is not a valid AWS region"},
		"a strange cluster":   {"", []string{"--cluster", "a/b"}, 2, "is not a valid cluster name"},
		"online arguments":    {"", []string{"x"}, 2, "files are given with -f"},
		"arguments":           {"", []string{"--offline", open, other}, 3, "NOT-UNDERSTOOD"},
		"idle arguments":      {"", []string{"--offline", other}, 0, "No file is about wiring"},
		"a lost argument":     {"", []string{"--offline", filepath.Join(dir, "none")}, 3, "no such file"},
		"as JSON":             {misspelt, []string{"--offline", "-f", "-", "-o", "json"}, 1, `"id": "rule-matches-nothing"`},
	} {
		t.Run(name, func(t *testing.T) {
			h := &harness{t: t, stdin: tc.stdin}
			r := h.run(t.Context(), append([]string{"doctor"}, tc.args...)...)
			if strings.Contains(r.err, "cluster does not answer") || r.code != tc.code || !strings.Contains(strings.ToUpper(r.out+r.err), strings.ToUpper(tc.want)) {
				t.Errorf("exit code %d, want %d and %q\n%s%s", r.code, tc.code, tc.want, r.out, r.err)
			}
		})
	}
}

func TestToolsInTheCluster(t *testing.T) {
	nth := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "nth", Labels: map[string]string{nameLabel: nthName}},
		Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Args: []string{"--queue-url", "https://sqs/1/prod-nth"},
		}}}}},
	}
	c := cluster{WithWatch: fakeCluster(t, interceptor.Funcs{}, karpenterDeployment(), nth)}
	got, err := findTools(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	got.Workloads = nil // tested where programs are recognized
	want := doctor.Cluster{
		Karpenter: &doctor.Tool{Object: "deployment kube-system/karpenter", Namespace: "kube-system", Name: "karpenter", Version: "1.14.1", Queue: "prod"},
		NTH:       &doctor.Tool{Object: "daemonset kube-system/nth", Namespace: "kube-system", Name: "nth", Queue: "https://sqs/1/prod-nth"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// In a sandbox lifeboatd is a process. A missing Deployment does not mean that
// another program reads the queue.
func TestDoctorExpectsNoDeploymentInASandbox(t *testing.T) {
	e := newBrokenAccount(t)
	running := e.setup
	e.lifeboatIs(nil)
	url := e.url + "/123456789012/lifeboat-prod"
	if _, err := e.server.States.SQS.Send("lifeboat-prod", sqsstate.Outgoing{Body: "{}"}, "sender"); err != nil {
		t.Fatal(err)
	}
	if out, err := e.queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, VisibilityTimeout: 600}); err != nil || len(out.Messages) != 1 {
		t.Fatalf("%v, %v", out, err)
	}
	if r := e.doctor(); !strings.Contains(r.out, "queue-read-by-another") {
		t.Errorf("where there is no sandbox's queue, exit code %d\n%s%s", r.code, r.out, r.err)
	}
	e.setup = running
	if r := e.doctor(); strings.Contains(r.out, "queue-read-by-another") {
		t.Errorf("in a sandbox, exit code %d\n%s%s", r.code, r.out, r.err)
	}
}
