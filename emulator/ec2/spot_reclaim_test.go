package ec2_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/fis"
	fistypes "github.com/aws/aws-sdk-go-v2/service/fis/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lifeboat-dev/lifeboat/emulator"
)

const (
	spotPattern  = `{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"]}`
	misspelt     = `{"source":["aws.ec2"],"detail-type":["EC2 Spot Interruption Warning"]}`
	statePattern = `{"source":["aws.ec2"],"detail-type":["EC2 Instance State-change Notification"],"detail":{"state":["stopping","stopped","shutting-down","terminated"]}}`
)

// pipes is an in-memory network: goroutines that wait on it let virtual time advance.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	close sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.close.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// account is an emulated account with the real clients of its services.
type account struct {
	*emulator.Server
	ec2    *ec2.Client
	events *eventbridge.Client
	fis    *fis.Client
	sqs    *sqs.Client
	queue  string // URL
}

// inAccount runs a test in virtual time against an account with a server and a queue.
func inAccount(t *testing.T, test func(t *testing.T, a *account)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := must(emulator.New(emulator.Options{Account: "210987654321", Region: "eu-west-1"}))(t)
		network := newPipes()
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- server.Serve(ctx, network) }()
		transport := &http.Transport{DialContext: network.dial}
		cfg := aws.Config{
			Region: server.Region(), BaseEndpoint: aws.String("http://127.0.0.1"),
			Credentials: aws.CredentialsProviderFunc(credentials), HTTPClient: &http.Client{Transport: transport},
		}
		a := &account{
			Server: server, ec2: ec2.NewFromConfig(cfg), events: eventbridge.NewFromConfig(cfg),
			fis: fis.NewFromConfig(cfg), sqs: sqs.NewFromConfig(cfg),
		}
		a.queue = *must(a.sqs.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("notices")}))(t).QueueUrl
		test(t, a)
		transport.CloseIdleConnections()
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// wire creates a rule with the queue as its target.
func (a *account) wire(t *testing.T, rule, pattern string) (arn string) {
	t.Helper()
	arn = *must(a.events.PutRule(t.Context(), &eventbridge.PutRuleInput{Name: &rule, EventPattern: &pattern}))(t).RuleArn
	out := must(a.events.PutTargets(t.Context(), &eventbridge.PutTargetsInput{Rule: &rule, Targets: []ebtypes.Target{
		{Id: aws.String("queue"), Arn: aws.String("arn:aws:sqs:eu-west-1:210987654321:notices")},
	}}))(t)
	same(t, "failed targets", out.FailedEntryCount, int32(0))
	return arn
}

// allow lets rules send to the queue.
func (a *account) allow(t *testing.T, ruleARNs ...string) {
	t.Helper()
	policy := must(json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": []any{map[string]any{
		"Effect": "Allow", "Principal": map[string]string{"Service": "events.amazonaws.com"}, "Action": "sqs:SendMessage",
		"Resource":  "arn:aws:sqs:eu-west-1:210987654321:notices",
		"Condition": map[string]any{"ArnEquals": map[string]any{"aws:SourceArn": ruleARNs}},
	}}}))(t)
	must(a.sqs.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{
		QueueUrl: &a.queue, Attributes: map[string]string{string(sqstypes.QueueAttributeNamePolicy): string(policy)},
	}))(t)
}

// runSpot launches a spot instance in eu-west-1b.
func (a *account) runSpot(t *testing.T) (id string) {
	t.Helper()
	id = *runSpot(t, a.ec2, "reclaimed").InstanceId
	synctest.Wait()
	return id
}

// experiment interrupts an instance through FIS and returns the experiment's id.
func (a *account) experiment(t *testing.T, instance string) string {
	t.Helper()
	made := must(a.fis.CreateExperimentTemplate(t.Context(), &fis.CreateExperimentTemplateInput{
		Description: aws.String("drill"), RoleArn: aws.String("arn:aws:iam::210987654321:role/fis"),
		StopConditions: []fistypes.CreateExperimentTemplateStopConditionInput{{Source: aws.String("none")}},
		Targets: map[string]fistypes.CreateExperimentTemplateTargetInput{"node": {
			ResourceType: aws.String("aws:ec2:spot-instance"), SelectionMode: aws.String("ALL"),
			ResourceArns: []string{"arn:aws:ec2:eu-west-1:210987654321:instance/" + instance},
		}},
		Actions: map[string]fistypes.CreateExperimentTemplateActionInput{"itn": {
			ActionId:   aws.String("aws:ec2:send-spot-instance-interruptions"),
			Parameters: map[string]string{"durationBeforeInterruption": "PT2M"},
			Targets:    map[string]string{"SpotInstances": "node"},
		}},
	}))(t)
	started := must(a.fis.StartExperiment(t.Context(), &fis.StartExperimentInput{
		ExperimentTemplateId: made.ExperimentTemplate.Id,
	}))(t)
	return *started.Experiment.Id
}

// received receives every message of the queue.
func (a *account) received(t *testing.T) []string {
	t.Helper()
	var bodies []string
	for {
		out := must(a.sqs.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: &a.queue, MaxNumberOfMessages: 10, WaitTimeSeconds: 1,
		}))(t)
		if len(out.Messages) == 0 {
			return bodies
		}
		for _, m := range out.Messages {
			bodies = append(bodies, *m.Body)
			must(a.sqs.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &a.queue, ReceiptHandle: m.ReceiptHandle}))(t)
		}
	}
}

// envelope is the expected form of an event in the queue, given its id and time.
func envelope(t *testing.T, body, detailType, resource, detail string) string {
	t.Helper()
	var got struct{ ID, Time string }
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if _, err := time.Parse("2006-01-02T15:04:05Z", got.Time); err != nil || len(got.ID) != 36 {
		t.Errorf("id %q, time %q", got.ID, got.Time)
	}
	return fmt.Sprintf(`{"version":"0","id":"%s","detail-type":"%s","source":"aws.ec2","account":"210987654321","time":"%s",`+
		`"region":"eu-west-1","resources":["%s"],"detail":%s}`, got.ID, detailType, got.Time, resource, detail)
}

func TestSpotReclaimReachesTheQueue(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		a.allow(t, a.wire(t, "spot", spotPattern), a.wire(t, "state", statePattern))
		id := a.runSpot(t)
		run := a.experiment(t, id)
		time.Sleep(time.Second)
		bodies := a.received(t)
		if len(bodies) != 1 {
			t.Fatalf("after a second the queue held %q", bodies)
		}
		same(t, "the warning", bodies[0], envelope(t, bodies[0], "EC2 Spot Instance Interruption Warning",
			"arn:aws:ec2:eu-west-1b:instance/"+id, `{"instance-id":"`+id+`","instance-action":"terminate"}`))
		request := must(a.ec2.DescribeSpotInstanceRequests(t.Context(), &ec2.DescribeSpotInstanceRequestsInput{}))(t).SpotInstanceRequests[0]
		same(t, "request", *request.Status.Code, "marked-for-termination")

		time.Sleep(3 * time.Minute)
		bodies = a.received(t)
		if len(bodies) != 2 {
			t.Fatalf("after three minutes the queue held %q", bodies)
		}
		for i, state := range []string{"shutting-down", "terminated"} {
			same(t, state, bodies[i], envelope(t, bodies[i], "EC2 Instance State-change Notification",
				"arn:aws:ec2:eu-west-1:210987654321:instance/"+id, `{"instance-id":"`+id+`","state":"`+state+`"}`))
		}
		done := must(a.fis.GetExperiment(t.Context(), &fis.GetExperimentInput{Id: &run}))(t).Experiment
		same(t, "experiment", []any{done.State.Status, done.Actions["itn"].State.Status},
			[]any{fistypes.ExperimentStatusCompleted, fistypes.ExperimentActionStatusCompleted})
	})
}

func TestMisspeltRuleDropsWarning(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		a.allow(t, a.wire(t, "spot", misspelt), a.wire(t, "state", statePattern))
		id := a.runSpot(t)
		a.experiment(t, id)
		time.Sleep(115 * time.Second)
		same(t, "messages during the notice", a.received(t), []string(nil))
		time.Sleep(time.Minute)
		bodies := a.received(t)
		if len(bodies) != 2 {
			t.Fatalf("after the end the queue held %q", bodies)
		}
		same(t, "the first to arrive", bodies[0], envelope(t, bodies[0], "EC2 Instance State-change Notification",
			"arn:aws:ec2:eu-west-1:210987654321:instance/"+id, `{"instance-id":"`+id+`","state":"shutting-down"}`))
		rule := must(a.States.Events.Rule("", "spot"))(t)
		same(t, "matched by the misspelt rule", rule.Stats.MatchedEvents, 0)
	})
}

func TestQueuePolicyOfAnotherRuleDeniesDelivery(t *testing.T) {
	inAccount(t, func(t *testing.T, a *account) {
		a.wire(t, "spot", spotPattern)
		a.allow(t, "arn:aws:events:eu-west-1:210987654321:rule/another")
		a.experiment(t, a.runSpot(t))
		time.Sleep(5 * time.Minute)
		same(t, "messages", a.received(t), []string(nil))
		stats := must(a.States.Events.Rule("", "spot"))(t).Stats
		same(t, "counts", []int{stats.MatchedEvents, stats.Invocations, stats.FailedInvocations}, []int{1, 1, 1})
		deliveries := a.States.Events.Deliveries()
		if len(deliveries) != 1 || deliveries[0].Failure == "" {
			t.Errorf("deliveries %+v", deliveries)
		}
	})
}
