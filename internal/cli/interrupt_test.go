package cli

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/fis"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
	"github.com/lifeboat-dev/lifeboat/internal/drill"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// emulated is an AWS emulator with a queue.
type emulated struct {
	*emulator.Server
	config   aws.Config
	endpoint string
	queue    string
}

func newEmulated(t *testing.T) *emulated {
	t.Helper()
	server, url := emulatortest.Serve(t, emulator.Options{Timing: ec2.Timing{PendingFor: time.Millisecond}})
	e := &emulated{Server: server, endpoint: url, config: aws.Config{
		Region: server.Region(), BaseEndpoint: aws.String(url), Credentials: awshttp.StaticCredentials("AKIATEST", "secret"),
	}}
	out, err := sqs.NewFromConfig(e.config).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("lifeboat-prod")})
	if err != nil {
		t.Fatal(err)
	}
	e.queue = *out.QueueUrl
	return e
}

// launch launches an instance and waits until it runs.
func (e *emulated) launch(t *testing.T, spot *ec2.SpotOptions) string {
	t.Helper()
	launched, err := e.States.EC2.Launch(ec2.LaunchInput{ImageID: "ami-0123456789abcdef0", Type: "m5.large", Min: 1, Max: 1, Spot: spot})
	if err != nil {
		t.Fatal(err)
	}
	id := launched[0].ID
	for range 500 {
		if i, _ := e.States.EC2.Instance(id); i.State == ec2.Running {
			return id
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("instance %s does not run", id)
	return ""
}

// use makes the program use the emulator as the sandbox.
func (e *emulated) use(s *session) {
	s.findSandbox = func(string) (connection, error) {
		return connection{
			name: "default", endpoint: e.endpoint, account: e.Account(), region: e.Region(),
			accessKeyID: "AKIATEST", secretAccessKey: "secret", queueURL: e.queue,
		}, nil
	}
}

// warnings returns the ids of the instances for which EC2 sent a notice.
func (e *emulated) warnings() []string {
	var ids []string
	for _, event := range e.States.Events.Archive() {
		var body struct {
			DetailType string            `json:"detail-type"`
			Detail     map[string]string `json:"detail"`
		}
		text, err := json.Marshal(event)
		if err == nil && json.Unmarshal(text, &body) == nil && body.DetailType == "EC2 Spot Instance Interruption Warning" {
			ids = append(ids, body.Detail["instance-id"])
		}
	}
	return ids
}

func (e *emulated) messages(t *testing.T) []string {
	t.Helper()
	out, err := sqs.NewFromConfig(e.config).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(e.queue), MaxNumberOfMessages: 10})
	if err != nil {
		t.Fatal(err)
	}
	var bodies []string
	for _, m := range out.Messages {
		bodies = append(bodies, *m.Body)
	}
	return bodies
}

func TestInterruptViaFIS(t *testing.T) {
	e := newEmulated(t)
	id := e.launch(t, &ec2.SpotOptions{})
	h := &harness{t: t, setup: e.use, cluster: fakeCluster(t, interceptor.Funcs{}, node(nodeName, "aws:///us-east-1a/"+id))}
	r := h.run(t.Context(), "interrupt", nodeName, "--sandbox=default", "-o", "json")
	if r.code != ExitOK {
		t.Fatalf("exit code %d: %s", r.code, r.err)
	}
	var done interrupted
	if err := json.Unmarshal([]byte(r.out), &done); err != nil {
		t.Fatal(err)
	}
	want := []drill.Target{{InstanceID: id, Node: nodeName, Zone: "us-east-1a"}}
	if diff := cmp.Diff(want, done.Targets); diff != "" || len(done.Experiments) != 1 || !done.Sandbox {
		t.Errorf("got %s", r.out)
	}
	if diff := cmp.Diff([]string{id}, e.warnings()); diff != "" {
		t.Errorf("the command is done, and EC2 has warned of (-want +got):\n%s", diff)
	}
	left, err := fis.NewFromConfig(e.config).ListExperimentTemplates(t.Context(), &fis.ListExperimentTemplatesInput{})
	if err != nil || len(left.ExperimentTemplates) != 0 {
		t.Errorf("templates left behind: %v, %v", left, err)
	}
}

func TestInterruptRejectsTargetsFISCannotInterrupt(t *testing.T) {
	e := newEmulated(t)
	id, missing := e.launch(t, nil), "i-0fedcba9876543210"
	h := &harness{t: t, setup: e.use, cluster: fakeCluster(t, interceptor.Funcs{}, node(nodeName, "aws:///us-east-1a/"+id))}
	for arg, want := range map[string]string{
		nodeName: nodeName + " (" + id + ") is not a spot instance but on-demand",
		missing:  missing,
	} {
		r := h.run(t.Context(), "interrupt", arg, "--sandbox=default")
		if r.code != ExitFailed || !strings.Contains(r.err, want) || !strings.Contains(r.err, "--via queue") {
			t.Errorf("%s: exit code %d: %s", arg, r.code, r.err)
		}
	}
	if got := e.warnings(); got != nil {
		t.Errorf("EC2 warned of %v", got)
	}
}

func TestInterruptViaQueue(t *testing.T) {
	e := newEmulated(t)
	h := &harness{t: t, setup: e.use, cluster: fakeCluster(t, interceptor.Funcs{}, twoNodes()...)}
	for kind, want := range map[string]string{
		"spot":      `"detail-type":"EC2 Spot Instance Interruption Warning"`,
		"rebalance": `"detail-type":"EC2 Instance Rebalance Recommendation"`,
	} {
		t.Run(kind, func(t *testing.T) {
			r := h.run(t.Context(), "interrupt", nodeName, otherNode, nodeName, "--sandbox=default", "--kind", kind, "--via", "queue")
			if r.code != ExitOK || !strings.Contains(r.out, "nothing is reclaimed") {
				t.Fatalf("exit code %d: %s%s", r.code, r.out, r.err)
			}
			got := e.messages(t)
			if len(got) != 2 {
				t.Fatalf("%d messages, want one for each of the two nodes", len(got))
			}
			for i, parts := range [][]string{
				{want, `"account":"123456789012"`, `"time":"2026-05-11T08:14:02Z"`, "arn:aws:ec2:us-east-1a:instance/" + instanceA},
				{want, "arn:aws:ec2:us-east-1b:instance/" + instanceB},
			} {
				for _, part := range parts {
					if !strings.Contains(got[i], part) {
						t.Errorf("message %d has no %s: %s", i, part, got[i])
					}
				}
			}
		})
	}
}

// Lifeboat ignores drills that the cluster does not permit: the command writes the permit first.
func TestDrillPermissionInCluster(t *testing.T) {
	e := newEmulated(t)
	old := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: intake.DrillNamespace, Name: intake.DrillLease,
		Annotations: map[string]string{intake.DrillAnnotation("over"): `{"instances":["i-1"],"expires":"2020-01-01T00:00:00Z"}`},
	}}
	for name, objects := range map[string][]client.Object{"no Lease yet": nil, "with permits of earlier drills": {old}} {
		t.Run(name, func(t *testing.T) {
			h := &harness{t: t, setup: e.use, cluster: fakeCluster(t, interceptor.Funcs{}, append(objects, twoNodes()...)...)}
			r := h.run(t.Context(), "interrupt", nodeName, "--sandbox=default", "--via", "queue", "--end-instance", "-o", "json")
			var done interrupted
			if err := json.Unmarshal([]byte(r.out), &done); err != nil || r.code != ExitOK {
				t.Fatalf("exit code %d: %s%s", r.code, r.out, r.err)
			}
			lease := &coordinationv1.Lease{}
			if err := h.cluster.Get(t.Context(), client.ObjectKey{Namespace: intake.DrillNamespace, Name: intake.DrillLease}, lease); err != nil {
				t.Fatal(err)
			}
			permits := intake.DrillPermits(lease)
			if p := permits[done.Drill]; len(permits) != 1 || !p.EndInstance || len(p.Instances) != 1 || p.Instances[0] != instanceA {
				t.Errorf("permits %+v", permits)
			}
		})
	}
}

// Outside a sandbox nothing happens without a confirmation.
func TestInterruptAsksFirst(t *testing.T) {
	e := newEmulated(t)
	for _, c := range []struct {
		name        string
		interactive bool
		stdin       string
		args        []string
		code        int
		says        string
		sent        int
	}{
		{"no one to ask", false, "", nil, ExitUsage, "add --yes to confirm", 0},
		{"no", true, "n\n", nil, ExitFailed, "not confirmed, so nothing was changed", 0},
		{"an empty answer is no", true, "\n", nil, ExitFailed, "Continue? [y/N]", 0},
		{"yes", true, "yes\n", nil, ExitOK, "for these nodes and drains them (nothing is reclaimed): " + nodeName, 1},
		{"what it ends", true, "no\n", []string{"--end-instance"}, ExitFailed, "it ENDS the instances", 0},
		{"--yes", false, "", []string{"--yes"}, ExitOK, "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &harness{t: t, interactive: c.interactive, stdin: c.stdin, cluster: fakeCluster(t, interceptor.Funcs{}, twoNodes()...)}
			h.setup = func(s *session) {
				s.connectCloud = func(context.Context, string) (cloud, error) {
					return cloud{place: drill.Place{Account: "123456789012", Region: "us-east-1"}, queues: sqs.NewFromConfig(e.config)}, nil
				}
			}
			r := h.run(t.Context(), append([]string{"interrupt", nodeName, "--via", "queue"}, c.args...)...)
			if r.code != c.code || !strings.Contains(r.err, c.says) {
				t.Errorf("exit code %d: %s", r.code, r.err)
			}
			if got := len(e.messages(t)); got != c.sent {
				t.Errorf("%d messages sent, want %d", got, c.sent)
			}
		})
	}
}

func TestInterruptWatch(t *testing.T) {
	e := newEmulated(t)
	before := interruption(spotNotice("old", time.Hour))
	complete(before, 50*time.Minute, 1, 0)
	for _, c := range []struct {
		name string
		last *v1beta1.Interruption
		code int
	}{
		{"all moved", finished(0), ExitOK},
		{"some lost", finished(1), ExitFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &script{all: true, states: []*v1beta1.Interruption{before, before, inProgress(), c.last}}
			h := &harness{t: t, setup: e.use, cluster: fakeCluster(t, s.funcs())}
			r := h.run(t.Context(), "interrupt", instanceA, "--sandbox=default", "--via", "queue", "--watch")
			if r.code != c.code {
				t.Errorf("exit code %d: %s", r.code, r.err)
			}
			for _, want := range []string{"NoticeReceived", "asked shop/web-1 to stop", "Completed       ", nodeName + " is Completed"} {
				if strings.Count(r.out, want) != 1 {
					t.Errorf("%q is not told once:\n%s", want, r.out)
				}
			}
		})
	}
}

func TestDrillWatchGivesUp(t *testing.T) {
	for _, c := range []struct {
		name   string
		states []*v1beta1.Interruption
		want   string
		after  time.Duration
	}{
		{"on a Lifeboat that hears nothing", nil, "no notice was recorded within 1m", time.Minute},
		{"on an interruption that never ends", []*v1beta1.Interruption{inProgress()}, "the interruption did not finish within 7m after the notice", 7 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSession(Env{Args: []string{"lifeboat"}, Out: t.Output(), Err: t.Output(), Getenv: func(string) string { return "" }})
				w := &drillWatch{
					session: s, targets: []drill.Target{{InstanceID: instanceA}}, kind: notice.KindSpotInterruption,
					cluster: cluster{WithWatch: fakeCluster(t, (&script{states: c.states}).funcs())},
					before:  map[string]bool{}, latest: map[string]*v1beta1.Interruption{}, events: newTimeline(), limit: 7 * time.Minute,
				}
				progress := terminal.NewProgress(s.err)
				defer progress.Stop()
				began := time.Now()
				_, err := w.run(t.Context(), progress, false)
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want %q", err, c.want)
				}
				if took := time.Since(began); took != c.after {
					t.Errorf("gave up after %v, want %v", took, c.after)
				}
			})
		})
	}
}
