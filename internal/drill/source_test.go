package drill_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
	"github.com/lifeboat-dev/lifeboat/internal/drill"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/intake/sqs"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

const (
	instance = "i-0a1b2c3d4e5f60718"
	block    = "cr-0a1b2c3d4e5f60718"
)

// recorder sends the notices that it receives to a channel.
type recorder struct{ received chan notice.Notice }

func (e recorder) Record(_ context.Context, n notice.Notice) (intake.Outcome, error) {
	e.received <- n
	return intake.Recorded, nil
}

func (recorder) Report(context.Context, intake.Report) (intake.Outcome, error) {
	return intake.Recorded, nil
}
func (recorder) Answer(context.Context, intake.Probe) error { return nil }

// listen runs Lifeboat's own source on an emulated queue.
func listen(t *testing.T) (*awssqs.Client, string, recorder) {
	t.Helper()
	_, endpoint := emulatortest.Serve(t, emulator.Options{Account: "210987654321", Region: "eu-west-1"})
	cfg := aws.Config{Region: "eu-west-1", BaseEndpoint: &endpoint, Credentials: awshttp.StaticCredentials("AKIATEST", "secret")}
	api := awssqs.NewFromConfig(cfg)
	queue, err := api.CreateQueue(t.Context(), &awssqs.CreateQueueInput{QueueName: aws.String("lifeboat-prod")})
	if err != nil {
		t.Fatal(err)
	}
	e := recorder{make(chan notice.Notice, 16)}
	source, err := sqs.New(*queue.QueueUrl, sqs.NewClient(cfg), e, sqs.Options{
		Receivers: 1,
		Instances: func(_ context.Context, _ string, values []string) (map[string][]string, error) {
			if !slices.Contains(values, block) {
				return nil, nil
			}
			return map[string][]string{block: {instance}}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = source.Run(ctx) }) // always returns nil
	t.Cleanup(func() { cancel(); running.Wait() })
	return api, *queue.QueueUrl, e
}

func (e recorder) next(t *testing.T) notice.Notice {
	t.Helper()
	select {
	case n := <-e.received:
		return n
	case <-time.After(20 * time.Second):
		t.Fatal("no notice was received")
		return notice.Notice{}
	}
}

// received is the part of a notice that a drill determines.
type received struct {
	Kind, Instance, Action, State, Code, Subject string
	Deadline                                     time.Time
	Withdrawn, Drill                             bool
}

func whatOf(n notice.Notice) received {
	h := received{
		Kind: n.Kind, Instance: n.InstanceID, Action: n.InstanceAction, State: n.InstanceState, Code: n.EventTypeCode, Subject: n.Subject,
		Withdrawn: n.Withdrawn, Drill: n.Drill,
	}
	if n.Deadline != nil {
		h.Deadline = n.Deadline.Time.UTC()
	}
	return h
}

func TestSourceReceivesEveryKind(t *testing.T) {
	api, queue, e := listen(t)
	now := time.Date(2026, 5, 11, 8, 14, 2, 0, time.UTC)
	in := now.Add(12 * 24 * time.Hour)
	event := func(code string) string {
		return "arn:aws:health:eu-west-1::event/EC2/" + code + "/" + code + "_d-1"
	}
	const reboot = "AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED"
	for name, c := range map[string]struct {
		send drill.Notice
		want received
	}{
		"spot":      {drill.Notice{Kind: notice.KindSpotInterruption}, received{Action: "terminate", Deadline: now.Add(2 * time.Minute)}},
		"hibernate": {drill.Notice{Kind: notice.KindSpotInterruption, Action: "hibernate"}, received{Action: "hibernate", Deadline: now}},
		"rebalance": {drill.Notice{Kind: notice.KindRebalanceRecommendation}, received{}},
		"stop in 12 days": {drill.Notice{Kind: notice.KindScheduledChange, Begins: in},
			received{Action: "stop", Code: drill.DefaultScheduledCode, Subject: event(drill.DefaultScheduledCode), Deadline: in}},
		"reboot": {drill.Notice{Kind: notice.KindScheduledChange, Begins: in, Code: reboot},
			received{Action: "reboot", Code: reboot, Subject: event(reboot), Deadline: in}},
		"stop closed": {drill.Notice{Kind: notice.KindScheduledChange, Begins: in, Closed: true, Subject: event(drill.DefaultScheduledCode)},
			received{Action: "stop", Code: drill.DefaultScheduledCode, Subject: event(drill.DefaultScheduledCode), Deadline: in, Withdrawn: true}},
		"issue": {drill.Notice{Kind: notice.KindHealthIssue}, received{Code: drill.DefaultIssueCode, Subject: event(drill.DefaultIssueCode)}},
		"issue closed": {drill.Notice{Kind: notice.KindHealthIssue, Closed: true},
			received{Code: drill.DefaultIssueCode, Subject: event(drill.DefaultIssueCode), Withdrawn: true}},
		"state":         {drill.Notice{Kind: notice.KindInstanceStateChange}, received{State: "stopping", Deadline: now.Add(notice.ShutdownTime)}},
		"shutting down": {drill.Notice{Kind: notice.KindInstanceStateChange, State: "shutting-down"}, received{State: "shutting-down", Deadline: now.Add(notice.ShutdownTime)}},
		"reservation": {drill.Notice{Kind: notice.KindCapacityReservationInterruption, Begins: now.Add(3 * time.Minute)},
			received{Action: "terminate", Deadline: now.Add(3 * time.Minute)}},
		"block": {drill.Notice{Kind: notice.KindCapacityBlockExpiration, Begins: now.Add(10 * time.Minute)},
			received{Action: "terminate", Subject: block, Deadline: now.Add(10 * time.Minute)}},
		"autoscaling":       {drill.Notice{Kind: notice.KindAutoScalingTermination, ID: "id-of-token"}, received{Action: "terminate", Subject: "id-of-token"}},
		"lifecycle failure": {drill.Notice{Kind: notice.KindLifecycleActionFailure}, received{Code: "ValidationException"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.send.Place = drill.Place{Account: "210987654321", Region: "eu-west-1", Partition: "aws"}
			c.send.Target = drill.Target{InstanceID: instance, Reservation: block}
			c.send.Time, c.send.Drill = now, "d-1"
			if c.send.ID == "" {
				c.send.ID = drill.NewID()
			}
			if _, err := c.send.Send(t.Context(), api, queue); err != nil {
				t.Fatal(err)
			}
			c.want.Kind, c.want.Instance, c.want.Drill = c.send.Kind, instance, true
			got := e.next(t)
			if diff := cmp.Diff(c.want, whatOf(got)); diff != "" {
				t.Errorf("received (-want +got):\n%s", diff)
			}
			if got.Account != "210987654321" || got.Region != "eu-west-1" || !got.Time.Time.Equal(now) {
				t.Errorf("account %s, region %s, time %s", got.Account, got.Region, got.Time)
			}
		})
	}
}
