package cli

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/fis"
	fistypes "github.com/aws/aws-sdk-go-v2/service/fis/types"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/drill"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record/recordtest"
)

func TestInterruptSendsNoticeFromFlags(t *testing.T) {
	e := newEmulated(t)
	h := &harness{t: t, setup: e.use, cluster: fakeCluster(t, interceptor.Funcs{}, twoNodes()...)}
	for args, parts := range map[string][]string{
		"--kind scheduled --in 12d": {
			`"detail-type":"AWS Health Event"`, `"eventTypeCode":"AWS_EC2_INSTANCE_STOP_SCHEDULED"`, `"startTime":"Sat, 23 May 2026 08:14:02 GMT"`, `"statusCode":"upcoming"`},
		"--kind ScheduledChange --in 1d12h --event-type-code AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED": {
			`AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED`, `"startTime":"Tue, 12 May 2026 20:14:02 GMT"`},
		"--kind scheduled --in 0s":                                     {`"statusCode":"open"`, `"startTime":"Mon, 11 May 2026 08:14:02 GMT"`},
		"--kind health":                                                {`"eventTypeCategory":"issue"`},
		"--kind state --state shutting-down":                           {`"state":"shutting-down"`},
		"--kind capacity-reservation --in 3m":                          {`"instance-termination-time":"2026-05-11T08:17:02Z"`},
		"--kind autoscaling --group workers":                           {`"AutoScalingGroupName":"workers"`, `EC2_INSTANCE_TERMINATING`},
		"--kind lifecycle-failure":                                     {`"eventName":"CompleteLifecycleAction"`},
		"--via queue --action hibernate":                               {`"instance-action":"hibernate"`},
		"--kind rebalance":                                             {`Rebalance Recommendation`},
		"--kind scheduled --dry-run -o json --in 2h --until completed": nil,
	} {
		t.Run(args, func(t *testing.T) {
			r := h.run(t.Context(), append([]string{"interrupt", nodeName, "--sandbox=default"}, strings.Fields(args)...)...)
			if r.code != ExitOK {
				t.Fatalf("exit code %d: %s", r.code, r.err)
			}
			got := e.messages(t)
			if parts == nil {
				if len(got) != 0 || !strings.Contains(r.out, `"dryRun": true`) || !strings.Contains(r.out, `"startTime": "Mon, 11 May 2026 10:14:02 GMT"`) {
					t.Errorf("sent %v; said %s", got, r.out)
				}
				return
			}
			if len(got) != 1 {
				t.Fatalf("%d messages", len(got))
			}
			for _, part := range append(parts, `"lifeboat-drill":"`, instanceA) {
				if !strings.Contains(got[0], part) {
					t.Errorf("no %s in %s", part, got[0])
				}
			}
		})
	}
}

func TestInterruptDryRunPrintsTemplate(t *testing.T) {
	e := newEmulated(t)
	id := e.launch(t, &ec2.SpotOptions{})
	h := &harness{t: t, setup: e.use, cluster: fakeCluster(t, interceptor.Funcs{}, node(nodeName, "aws:///us-east-1a/"+id))}
	r := h.run(t.Context(), "interrupt", nodeName, "--sandbox=default", "--delay", "30s", "--dry-run")
	if r.code != ExitOK || len(e.warnings()) != 0 {
		t.Fatalf("exit code %d, warned of %v: %s", r.code, e.warnings(), r.err)
	}
	// The printed template is valid input for --cli-input-json.
	var template drill.Template
	if err := json.Unmarshal([]byte(r.out), &template); err != nil {
		t.Fatalf("%v: %s", err, r.out)
	}
	want := drill.TemplateAction{
		ActionID: "aws:ec2:send-spot-instance-interruptions", Targets: map[string]string{"SpotInstances": "batch00"},
		Parameters: map[string]string{"durationBeforeInterruption": "PT2M30S"},
	}
	if diff := cmp.Diff(want, template.Actions["batch00"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	left, err := fis.NewFromConfig(e.config).ListExperimentTemplates(t.Context(), &fis.ListExperimentTemplatesInput{})
	if err != nil || len(left.ExperimentTemplates) != 0 {
		t.Errorf("templates made: %v, %v", left, err)
	}
}

// spotCluster returns a cluster with two spot nodes and one other node.
func spotCluster(t *testing.T) (*emulated, *harness, []string) {
	t.Helper()
	e := newEmulated(t)
	var nodes []client.Object
	var ids []string
	for i, name := range []string{"node-a", "node-b", "node-c"} {
		var spot *ec2.SpotOptions
		if i != 1 {
			spot = &ec2.SpotOptions{}
		}
		ids = append(ids, e.launch(t, spot))
		nodes = append(nodes, node(name, "aws:///us-east-1a/"+ids[i]))
	}
	return e, &harness{t: t, setup: e.use, interactive: true, cluster: fakeCluster(t, interceptor.Funcs{}, nodes...)}, ids
}

func TestInterruptInteractive(t *testing.T) {
	e, h, ids := spotCluster(t)
	for _, c := range []struct {
		stdin string
		code  int
		want  []string
		says  string
	}{
		{"2\n", ExitOK, []string{ids[2]}, "2  node-c"},
		{"1-2\n", ExitOK, []string{ids[0], ids[2]}, "1  node-a"},
		{"all\n", ExitOK, []string{ids[0], ids[2]}, "Which?"},
		{"3\n", ExitUsage, nil, `"3" is not a number or range from 1 to 2`},
		{"\n", ExitUsage, nil, "nothing was chosen"},
	} {
		h.stdin = c.stdin
		r := h.run(t.Context(), "interrupt", "--sandbox=default", "--interactive", "--via", "queue")
		if r.code != c.code || !strings.Contains(r.err, c.says) || strings.Contains(r.err, "node-b") {
			t.Errorf("%q: exit code %d: %s", c.stdin, r.code, r.err)
		}
		var got []string
		for _, body := range e.messages(t) {
			var message struct {
				Detail struct {
					ID string `json:"instance-id"`
				}
			}
			if err := json.Unmarshal([]byte(body), &message); err != nil {
				t.Fatal(err)
			}
			got = append(got, message.Detail.ID)
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.stdin, diff)
		}
	}
}

// If EC2 fails, the labels of the nodes decide.
func TestInterruptInteractiveSelectsByLabels(t *testing.T) {
	labelled := node("node-d", "aws:///us-east-1a/"+instanceA)
	labelled.Labels = map[string]string{"karpenter.sh/capacity-type": "spot"}
	h := &harness{t: t, interactive: true, stdin: "1\ny\n", cluster: fakeCluster(t, interceptor.Funcs{}, labelled, node("node-e", "aws:///us-east-1a/"+instanceB))}
	h.setup = func(s *session) {
		s.connectCloud = func(context.Context, string) (cloud, error) {
			return cloud{
				place: drill.Place{Account: "123456789012", Region: "us-east-1"}, queueURL: "q",
				instances: func(context.Context, *awsec2.DescribeInstancesInput, ...func(*awsec2.Options)) (*awsec2.DescribeInstancesOutput, error) {
					return nil, errors.New("not allowed")
				},
			}, nil
		}
	}
	r := h.run(t.Context(), "interrupt", "--interactive", "--via", "queue", "--dry-run", "-o", "json")
	if r.code != ExitOK || !strings.Contains(r.out, instanceA) || !strings.Contains(r.err, "using the node labels") || strings.Contains(r.err, "node-e") {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
}

// scheduled returns the record of a scheduled change that a drill announced.
func scheduled(id string, withdrawn bool) *v1beta1.Interruption {
	in := interruption(v1beta1.Notice{
		ID: id, Kind: notice.KindScheduledChange, Source: notice.SourceQueue, Drill: true, Withdrawn: withdrawn,
		EventTypeCode: "AWS_EC2_INSTANCE_STOP_SCHEDULED",
		Subject:       "arn:aws:health:us-east-1::event/EC2/AWS_EC2_INSTANCE_STOP_SCHEDULED/AWS_EC2_INSTANCE_STOP_SCHEDULED_d-7",
		Time:          metav1.NewTime(clock), ReceivedTime: metav1.NewMicroTime(clock), Deadline: notice.At(clock.Add(12*24*time.Hour), v1beta1.DeadlineSoft),
	})
	in.Status.NodeName, in.Status.LastNoticeID, in.Status.Phase = nodeName, id, v1beta1.PhaseScheduled
	if withdrawn {
		in.Status.Phase = v1beta1.PhaseCancelled
	}
	in.Status.Conditions = []metav1.Condition{{
		Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonWaiting, Message: "waits for its time, which comes at 2026-05-23T07:14:02Z",
	}}
	return in
}

func TestInterruptReportsDistantChange(t *testing.T) {
	e := newEmulated(t)
	s := &script{states: []*v1beta1.Interruption{nil, scheduled("n", false)}}
	s.states[0] = interruption(spotNotice("old", time.Hour))
	h := &harness{t: t, setup: e.use, cluster: fakeCluster(t, s.funcs())}
	r := h.run(t.Context(), "interrupt", instanceA, "--sandbox=default", "--kind", "scheduled", "--in", "12d", "--watch", "--until", "completed")
	want := nodeName + " is Scheduled: waits for its time, which comes at 2026-05-23T07:14:02Z\nnothing happens to it until then; run `lifeboat watch " + nodeName + "`"
	if r.code != ExitOK || !strings.Contains(r.out, want) {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
}

func TestInterruptClosesChange(t *testing.T) {
	e := newEmulated(t)
	s := &script{states: []*v1beta1.Interruption{scheduled("n1", false), scheduled("n1", false), scheduled("n2", true)}}
	h := &harness{t: t, setup: e.use, cluster: fakeCluster(t, s.funcs())}
	r := h.run(t.Context(), "interrupt", instanceA, "--sandbox=default", "--kind", "scheduled", "--cancel", "--wait")
	if r.code != ExitOK || !strings.Contains(r.out, nodeName+" is Cancelled") {
		t.Fatalf("exit code %d: %s%s", r.code, r.out, r.err)
	}
	got := e.messages(t)
	if len(got) != 1 {
		t.Fatalf("%d messages", len(got))
	}
	for _, part := range []string{
		`"statusCode":"closed"`, `"status":"RESOLVED"`, `AWS_EC2_INSTANCE_STOP_SCHEDULED_d-7"`, `"lifeboat-drill":"d-7"`, `"startTime":"Sat, 23 May 2026 08:14:02 GMT"`,
	} {
		if !strings.Contains(got[0], part) {
			t.Errorf("no %s in %s", part, got[0])
		}
	}
}

func TestInterruptWithNothingToClose(t *testing.T) {
	e := newEmulated(t)
	waitForEnd := scheduled("n1", false)
	recordtest.Complete(waitForEnd, clock.Add(time.Hour))
	for name, records := range map[string][]client.Object{
		"no record": nil, "closed already": {scheduled("n1", true)}, "over already": {waitForEnd},
		"not a drill": {interruption(spotNotice("x", time.Minute))},
	} {
		h := &harness{t: t, setup: e.use, cluster: fakeCluster(t, interceptor.Funcs{}, append(twoNodes(), records...)...)}
		r := h.run(t.Context(), "interrupt", nodeName, "--sandbox=default", "--kind", "scheduled", "--cancel")
		if r.code != ExitFailed || !strings.Contains(r.err, "no drill of kind ScheduledChange is open for "+nodeName) {
			t.Errorf("%s: exit code %d: %s", name, r.code, r.err)
		}
	}
	if got := e.messages(t); len(got) != 0 {
		t.Errorf("sent %v", got)
	}
}

// After the recommendation, and before the notice, Ctrl-C stops the reclaim.
func TestInterruptRebalanceIsCancelledByCtrlC(t *testing.T) {
	e := newEmulated(t)
	id := e.launch(t, &ec2.SpotOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	impatient := interceptor.Funcs{Watch: func(ctx context.Context, _ client.WithWatch, _ client.ObjectList, _ ...client.ListOption) (watch.Interface, error) {
		cancel() // Ctrl-C while it waits for Lifeboat to record the notice
		w := watch.NewFake()
		context.AfterFunc(ctx, w.Stop)
		return w, nil
	}}
	h := &harness{t: t, setup: e.use, cluster: fakeCluster(t, impatient, node(nodeName, "aws:///us-east-1a/"+id))}
	api := fis.NewFromConfig(e.config)
	state := func() fistypes.ExperimentStatus {
		list, err := api.ListExperiments(t.Context(), &fis.ListExperimentsInput{})
		if err != nil || len(list.Experiments) == 0 {
			return ""
		}
		return list.Experiments[0].State.Status
	}
	r := h.run(ctx, "interrupt", nodeName, "--sandbox=default", "--kind", "rebalance", "--via", "fis", "--watch")
	if r.code != ExitInterrupted || !strings.Contains(r.err, "was stopped before its notice") || !strings.Contains(r.out, "the interruption notice follows in about 13m") {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
	if got := state(); got != fistypes.ExperimentStatusStopping && got != fistypes.ExperimentStatusStopped {
		t.Errorf("the experiment is %s", got)
	}
	left, err := api.ListExperimentTemplates(t.Context(), &fis.ListExperimentTemplatesInput{})
	if err != nil || len(left.ExperimentTemplates) != 0 || len(e.warnings()) != 0 {
		t.Errorf("templates left %v, %v; warned of %v", left, err, e.warnings())
	}
}

func TestPick(t *testing.T) {
	for answer, want := range map[string][]int{"1": {0}, "3, 1": {0, 2}, "2-4 3\n": {1, 2, 3}, "ALL": {0, 1, 2, 3, 4}} {
		if got, err := parseChoice(answer, 5); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q picks %v, %v", answer, got, err)
		}
	}
	for _, answer := range []string{"", "0", "6", "4-2", "x", "1-", "-1"} {
		if got, err := parseChoice(answer, 5); err == nil {
			t.Errorf("%q picks %v", answer, got)
		}
	}
}

func TestParseDays(t *testing.T) {
	for text, want := range map[string]time.Duration{"12d": 288 * time.Hour, "1d12h": 36 * time.Hour, "2m": 2 * time.Minute, "0s": 0} {
		if got, err := parseDays(text); err != nil || got != want {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "-1d", "12", "1dx"} {
		if got, err := parseDays(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
