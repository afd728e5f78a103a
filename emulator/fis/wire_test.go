package fis_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/fis"
	"github.com/aws/aws-sdk-go-v2/service/fis/types"
	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
)

// newClient returns a real FIS client of a separate emulated account.
func newClient(t *testing.T) (*emulator.Server, *fis.Client) {
	t.Helper()
	server, url := emulatortest.Serve(t, emulator.Options{Timing: ec2.Timing{PendingFor: time.Millisecond}})
	return server, fis.New(fis.Options{
		Region: server.Region(), BaseEndpoint: &url, RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIATEST", SecretAccessKey: "secret"}, nil
		}),
	})
}

// must returns v, or ends the test.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// template is a typical interruption of an instance.
func template(instance, duration string) *fis.CreateExperimentTemplateInput {
	return &fis.CreateExperimentTemplateInput{
		Description: aws.String("drill"), RoleArn: aws.String("arn:aws:iam::123456789012:role/fis"),
		StopConditions: []types.CreateExperimentTemplateStopConditionInput{{Source: aws.String("none")}},
		Targets: map[string]types.CreateExperimentTemplateTargetInput{"node": {
			ResourceType: aws.String("aws:ec2:spot-instance"), SelectionMode: aws.String("ALL"),
			ResourceArns: []string{"arn:aws:ec2:us-east-1:123456789012:instance/" + instance},
		}},
		Actions: map[string]types.CreateExperimentTemplateActionInput{"itn": {
			ActionId:   aws.String("aws:ec2:send-spot-instance-interruptions"),
			Parameters: map[string]string{"durationBeforeInterruption": duration},
			Targets:    map[string]string{"SpotInstances": "node"},
		}},
		Tags: map[string]string{"team": "a"},
	}
}

// running launches an instance and waits until it runs.
func running(t *testing.T, server *emulator.Server, spot *ec2.SpotOptions) string {
	t.Helper()
	up := make(chan struct{})
	cancel := server.States.EC2.Subscribe(func(c ec2.Change) {
		if c.What == ec2.Booted {
			close(up)
		}
	})
	defer cancel()
	made := must(server.States.EC2.Launch(ec2.LaunchInput{ImageID: "ami-1", Min: 1, Max: 1, Spot: spot}))(t)
	select {
	case <-up:
	case <-time.After(time.Minute):
		t.Fatal("the instance does not come up")
	}
	return made[0].ID
}

// settled waits until an experiment has left its transient states.
func settled(t *testing.T, c *fis.Client, id *string) *types.Experiment {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-tick.C {
		e := must(c.GetExperiment(t.Context(), &fis.GetExperimentInput{Id: id}))(t).Experiment
		switch e.State.Status {
		case types.ExperimentStatusPending, types.ExperimentStatusInitiating, types.ExperimentStatusStopping:
		default:
			return e
		}
	}
	t.Fatal("the experiment does not settle")
	return nil
}

func TestSDKRunsAnExperiment(t *testing.T) {
	t.Parallel()
	server, c := newClient(t)
	id := running(t, server, &ec2.SpotOptions{})
	made := must(c.CreateExperimentTemplate(t.Context(), template(id, "PT2M")))(t).ExperimentTemplate
	if !strings.HasPrefix(*made.Id, "EXT") || time.Since(*made.CreationTime) > time.Minute {
		t.Errorf("template %s made at %s", *made.Id, *made.CreationTime)
	}
	got := must(c.GetExperimentTemplate(t.Context(), &fis.GetExperimentTemplateInput{Id: made.Id}))(t).ExperimentTemplate
	same(t, "template", []any{
		*got.Targets["node"].SelectionMode, *got.Actions["itn"].ActionId, got.Actions["itn"].Targets, *got.StopConditions[0].Source,
		got.ExperimentOptions.EmptyTargetResolutionMode,
	}, []any{
		"ALL", "aws:ec2:send-spot-instance-interruptions", map[string]string{"SpotInstances": "node"}, "none",
		types.EmptyTargetResolutionModeFail,
	})
	started := must(c.StartExperiment(t.Context(), &fis.StartExperimentInput{ExperimentTemplateId: made.Id}))(t).Experiment
	same(t, "started", []any{started.State.Status, started.EndTime}, []any{types.ExperimentStatusPending, (*time.Time)(nil)})
	e := settled(t, c, started.Id)
	same(t, "experiment", []any{e.State.Status, e.Actions["itn"].State.Status}, []any{types.ExperimentStatusRunning, types.ExperimentActionStatusRunning})
	in, _ := server.States.EC2.Instance(id)
	same(t, "notice", in.Notice.Action, ec2.Terminate)

	stop := must(c.StopExperiment(t.Context(), &fis.StopExperimentInput{Id: e.Id}))(t).Experiment
	same(t, "stop", stop.State.Status, types.ExperimentStatusStopping)
	same(t, "stopped", settled(t, c, e.Id).State.Status, types.ExperimentStatusStopped)
	list := must(c.ListExperiments(t.Context(), &fis.ListExperimentsInput{ExperimentTemplateId: made.Id}))(t).Experiments
	same(t, "experiments", []any{len(list), *list[0].Id}, []any{1, *e.Id})
	must(c.DeleteExperimentTemplate(t.Context(), &fis.DeleteExperimentTemplateInput{Id: made.Id}))(t)
	_, err := c.GetExperimentTemplate(t.Context(), &fis.GetExperimentTemplateInput{Id: made.Id})
	var missing *types.ResourceNotFoundException
	if !errors.As(err, &missing) {
		t.Errorf("a deleted template: %v", err)
	}
}

func TestSDKSeesFISErrors(t *testing.T) {
	t.Parallel()
	server, c := newClient(t)
	_, err := c.CreateExperimentTemplate(t.Context(), template("i-0123456789abcdef0", "PT1M"))
	var invalid *types.ValidationException
	if !errors.As(err, &invalid) || !strings.Contains(*invalid.Message, "between PT2M and PT15M") {
		t.Errorf("one minute: %v", err)
	}
	id := running(t, server, nil)
	made := must(c.CreateExperimentTemplate(t.Context(), template(id, "PT2M")))(t).ExperimentTemplate
	started := must(c.StartExperiment(t.Context(), &fis.StartExperimentInput{ExperimentTemplateId: made.Id}))(t).Experiment
	e := settled(t, c, started.Id)
	same(t, "an instance on demand", []any{e.State.Status, *e.State.Reason},
		[]any{types.ExperimentStatusFailed, "1 of the 1 resources named do not exist, or are not of type aws:ec2:spot-instance"})
}

func TestSDKListsActionsTemplatesAndTags(t *testing.T) {
	t.Parallel()
	_, c := newClient(t)
	actions := must(c.ListActions(t.Context(), &fis.ListActionsInput{}))(t).Actions
	same(t, "actions", []any{len(actions), *actions[0].Id}, []any{3, "aws:ec2:send-spot-instance-interruptions"})
	action := must(c.GetAction(t.Context(), &fis.GetActionInput{Id: actions[0].Id}))(t).Action
	same(t, "action", []any{*action.Targets["SpotInstances"].ResourceType, *action.Parameters["durationBeforeInterruption"].Required},
		[]any{"aws:ec2:spot-instance", true})

	var arn *string
	for range 3 {
		arn = must(c.CreateExperimentTemplate(t.Context(), template("i-0123456789abcdef0", "PT2M")))(t).ExperimentTemplate.Arn
	}
	must(c.TagResource(t.Context(), &fis.TagResourceInput{ResourceArn: arn, Tags: map[string]string{"b": "2"}}))(t)
	must(c.UntagResource(t.Context(), &fis.UntagResourceInput{ResourceArn: arn, TagKeys: []string{"team"}}))(t)
	tags := must(c.ListTagsForResource(t.Context(), &fis.ListTagsForResourceInput{ResourceArn: arn}))(t).Tags
	same(t, "tags", tags, map[string]string{"b": "2"})
	listed := 0
	for p := fis.NewListExperimentTemplatesPaginator(c, &fis.ListExperimentTemplatesInput{MaxResults: aws.Int32(2)}); p.HasMorePages(); {
		listed += len(must(p.NextPage(t.Context()))(t).ExperimentTemplates)
	}
	same(t, "templates", listed, 3)
}
