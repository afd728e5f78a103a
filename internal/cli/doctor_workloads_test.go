package cli

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/probe"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/drill"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/intake/sqs"
)

func TestDoctorChecksWorkloads(t *testing.T) {
	e := newBrokenAccount(t)
	spot := node(nodeName, "aws:///us-east-1a/"+instanceA)
	spot.Labels = map[string]string{"karpenter.sh/capacity-type": "spot"}
	e.cluster = fakeCluster(t, interceptor.Funcs{}, spot, pod("shop", "web-1", "web", "ReplicaSet", 600))
	r := e.doctor()
	e.want(r, ExitOK) // a warning
	for _, want := range []string{
		"Checked 1 pod of 1 workload on 1 node, 1 of them spot.", "replicaset shop/web  grace-exceeds-notice", "Nothing is broken: 1 warning.",
	} {
		if !strings.Contains(r.out, want) {
			t.Errorf("no %q in\n%s", want, r.out)
		}
	}
}

// If no label marks spot nodes, EC2 decides.
func TestDoctorAsksEC2WhichNodesAreSpot(t *testing.T) {
	e := newBrokenAccount(t)
	launched, err := e.server.States.EC2.Launch(ec2.LaunchInput{ImageID: "ami-0123456789abcdef0", Type: "m5.large", Min: 1, Max: 1, Spot: &ec2.SpotOptions{}})
	if err != nil {
		t.Fatal(err)
	}
	id := launched[0].ID
	for i, _ := e.server.States.EC2.Instance(id); i.State != ec2.Running; i, _ = e.server.States.EC2.Instance(id) {
		time.Sleep(10 * time.Millisecond)
	}
	e.cluster = fakeCluster(t, interceptor.Funcs{}, node(nodeName, "aws:///us-east-1a/"+id), pod("shop", "web-1", "web", "ReplicaSet", 600))
	if r := e.doctor(); !strings.Contains(r.out, "1 of them spot.") || !strings.Contains(r.out, "grace-exceeds-notice") {
		t.Errorf("%s%s", r.out, r.err)
	}
	// EC2 does not know one of the instances: the others are judged.
	e.cluster = fakeCluster(t, interceptor.Funcs{}, node(nodeName, "aws:///us-east-1a/"+id), node(otherNode, "aws:///us-east-1a/"+instanceB), pod("shop", "web-1", "web", "ReplicaSet", 600))
	if r := e.doctor(); r.code != ExitOK || !strings.Contains(r.out, "1 of them spot.") {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
	e.server.Gate.Fail("ec2", "DescribeInstances")
	if r := e.doctor(); r.code != exitIncomplete || !strings.Contains(r.out, "workloads on spot nodes  part-not-checked") {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
}

// answering receives messages as lifeboatd does.
func (e *awsAccount) answering() {
	e.t.Helper()
	cfg := aws.Config{Region: "us-east-1", BaseEndpoint: &e.url, Credentials: awshttp.StaticCredentials("AKIAEXAMPLE", "x")}
	recorder := intake.NewRecorder(e.harness.cluster, noNodes{}, intake.Options{Account: "123456789012", Region: "us-east-1", Live: e.harness.cluster, Clock: time.Now})
	queue, err := e.queues.GetQueueUrl(e.t.Context(), &awssqs.GetQueueUrlInput{QueueName: aws.String("lifeboat-prod")})
	if err != nil {
		e.t.Fatal(err)
	}
	source, err := sqs.New(*queue.QueueUrl, sqs.NewClient(cfg), recorder, sqs.Options{Receivers: 1})
	if err != nil {
		e.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = source.Run(ctx) }) // it always returns nil
	e.t.Cleanup(func() { cancel(); running.Wait() })
}

type noNodes struct{}

func (noNodes) NodeByInstance(context.Context, string) (*corev1.Node, error) { return nil, nil }

func TestDoctorProbe(t *testing.T) {
	e := newBrokenAccount(t)
	e.answering()
	r := e.doctor("--probe")
	e.want(r, ExitOK)
	if n := strings.Count(r.out, "answered"); n < 8 || !strings.Contains(r.out, "lifeboat-prod-spot-interruption") || !strings.Contains(r.out, "All checks passed") {
		t.Errorf("%d answers\n%s", n, r.out)
	}
	// A denied PutEvents says nothing about the rules.
	if r := e.doctor("--offline", "--probe", "-f", "-"); r.code != ExitUsage {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
}

func TestProbeFindings(t *testing.T) {
	place := drill.Place{Account: "123456789012", Region: "us-east-1", Partition: "aws"}
	answered := probe.Result{Rule: "a", Verdict: probe.Answered}
	silent := probe.Result{Rule: "b", Verdict: probe.Unanswered, Problem: "no report arrived within 30s", Kinds: []string{"SpotInterruption"}}
	refused := probe.Result{Rule: "c", Verdict: probe.Refused, Problem: "denied"}
	unheard := probe.Result{Rule: "d", Verdict: probe.Unheard, Problem: "forbidden"}
	for name, c := range map[string]struct {
		results []probe.Result
		want    []string // severity, id, object
		says    string
	}{
		"all came":      {[]probe.Result{answered, answered}, nil, ""},
		"one is silent": {[]probe.Result{answered, silent}, []string{"broken probe-unanswered rule b"}, "but no report arrived within 30s"},
		"two of three are silent": {[]probe.Result{answered, silent, silent},
			[]string{"broken probe-unanswered rule b", "broken probe-unanswered rule b"}, "lifeboat aws setup --cluster prod corrects"},
		"all are silent": {[]probe.Result{silent, silent}, []string{"broken probe-unanswered every rule"}, "lifeboatd does not run"},
		"none was sent":  {[]probe.Result{refused, refused}, []string{"unknown probe-not-sent every rule"}, "events:PutEvents on arn:aws:events:us-east-1:123456789012:event-bus/default"},
		"none was heard": {[]probe.Result{unheard, unheard}, []string{"unknown probe-not-read every rule"}, "leases.coordination.k8s.io"},
		"mixed":          {[]probe.Result{silent, refused}, []string{"broken probe-unanswered rule b", "unknown probe-not-sent rule c"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := probeFindings(c.results, place, "prod")
			text := func(f finding.Finding) string { return string(f.Severity) + " " + f.ID + " " + f.Object }
			if len(got) != len(c.want) {
				t.Fatalf("%d findings: %+v", len(got), got)
			}
			for i, f := range got {
				if text(f) != c.want[i] || !strings.Contains(got[0].Problem+got[0].Fix, c.says) {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}
