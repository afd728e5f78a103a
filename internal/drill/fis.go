package drill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/fis"
	"github.com/aws/aws-sdk-go-v2/service/fis/types"
)

// What FIS allows (AWS FIS User Guide, "Quotas" and the action
// aws:ec2:send-spot-instance-interruptions).
const (
	spotAction       = "aws:ec2:send-spot-instance-interruptions"
	spotResource     = "aws:ec2:spot-instance"
	targetsPerAction = 5
	actionsPerRun    = 20
	// Lead is the time between the interruption notice and the interruption.
	// It is also the shortest that FIS waits before it interrupts.
	Lead = 2 * time.Minute
	// MaxDelay is the longest time before the notice: FIS waits 15 minutes at
	// most before it interrupts.
	MaxDelay = 13 * time.Minute
)

const (
	cleanUpTime = 15 * time.Second
	// slack is how much longer than asked for an experiment may take.
	slack = 3 * time.Minute
)

// ExperimentsAPI runs experiments. *fis.Client implements it.
type ExperimentsAPI interface {
	CreateExperimentTemplate(context.Context, *fis.CreateExperimentTemplateInput, ...func(*fis.Options)) (*fis.CreateExperimentTemplateOutput, error)
	StartExperiment(context.Context, *fis.StartExperimentInput, ...func(*fis.Options)) (*fis.StartExperimentOutput, error)
	GetExperiment(context.Context, *fis.GetExperimentInput, ...func(*fis.Options)) (*fis.GetExperimentOutput, error)
	DeleteExperimentTemplate(context.Context, *fis.DeleteExperimentTemplateInput, ...func(*fis.Options)) (*fis.DeleteExperimentTemplateOutput, error)
}

// Experiment is what FIS is asked to do.
type Experiment struct {
	Place Place
	// RoleARN is the role that FIS acts with.
	RoleARN string
	// Delay is the time before the notice.
	Delay time.Duration
	// Poll is how often FIS is asked how far it is.
	Poll time.Duration
	// Progress hears what is being done, and Warn what went wrong that the
	// user has to clean up.
	Progress, Warn func(string)
}

// Run interrupts the targets and returns the ids of its experiments once all
// their notices are out. It deletes its experiment templates whatever happens,
// ctx being cancelled included. The error has FIS's own reason.
func (e Experiment) Run(ctx context.Context, api ExperimentsAPI, targets []Target) ([]string, error) {
	var ids, templates []string
	defer func() { e.deleteTemplates(ctx, api, templates) }()
	for batch := range slices.Chunk(targets, targetsPerAction*actionsPerRun) {
		e.Progress("creating a FIS experiment template")
		created, err := api.CreateExperimentTemplate(ctx, e.template(batch))
		if err != nil {
			return ids, fmt.Errorf("creating the FIS experiment template: %w", err)
		}
		template := aws.ToString(created.ExperimentTemplate.Id)
		templates = append(templates, template)
		started, err := api.StartExperiment(ctx, &fis.StartExperimentInput{
			ExperimentTemplateId: aws.String(template),
			Tags:                 tags(),
		})
		if err != nil {
			return ids, fmt.Errorf("starting the FIS experiment: %w", err)
		}
		ids = append(ids, aws.ToString(started.Experiment.Id))
	}
	for _, id := range ids {
		if err := e.follow(ctx, api, id); err != nil {
			return ids, err
		}
	}
	return ids, nil
}

func (e Experiment) template(targets []Target) *fis.CreateExperimentTemplateInput {
	in := &fis.CreateExperimentTemplateInput{
		Description:    aws.String("Lifeboat: spot interruption on purpose"),
		RoleArn:        aws.String(e.RoleARN),
		StopConditions: []types.CreateExperimentTemplateStopConditionInput{{Source: aws.String("none")}},
		Targets:        map[string]types.CreateExperimentTemplateTargetInput{},
		Actions:        map[string]types.CreateExperimentTemplateActionInput{},
		Tags:           tags(),
	}
	n := 0
	for batch := range slices.Chunk(targets, targetsPerAction) {
		name := fmt.Sprintf("batch%02d", n)
		n++
		arns := make([]string, 0, len(batch))
		for _, t := range batch {
			arns = append(arns, e.Place.instanceARN(t.InstanceID))
		}
		in.Targets[name] = types.CreateExperimentTemplateTargetInput{
			ResourceType:  aws.String(spotResource),
			ResourceArns:  arns,
			SelectionMode: aws.String("ALL"),
		}
		in.Actions[name] = types.CreateExperimentTemplateActionInput{
			ActionId:   aws.String(spotAction),
			Parameters: map[string]string{"durationBeforeInterruption": isoDuration(Lead + e.Delay)},
			Targets:    map[string]string{"SpotInstances": name},
		}
	}
	return in
}

// follow waits until the notices of an experiment are out. FIS does not say so
// itself: it calls the action completed only some time after. But it sends them
// two minutes before the interruption, so they are out when the action has been
// running for the delay, and for one more question in which it could have
// failed.
func (e Experiment) follow(ctx context.Context, api ExperimentsAPI, id string) error {
	limit, cancel := context.WithTimeout(ctx, e.Delay+slack)
	defer cancel()
	var running time.Time
	for {
		out, err := api.GetExperiment(limit, &fis.GetExperimentInput{Id: aws.String(id)})
		if err != nil {
			return e.leftRunning(ctx, id, fmt.Errorf("asking how far FIS experiment %s is: %w", id, err))
		}
		if done, err := outcome(out.Experiment); done || err != nil {
			return err
		}
		if running.IsZero() && isRunning(out.Experiment) {
			running = time.Now()
		}
		if !running.IsZero() && time.Since(running) >= e.Delay+e.Poll {
			return nil
		}
		e.Progress(e.describe(id, out.Experiment, running))
		select {
		case <-limit.Done():
			return e.leftRunning(ctx, id, fmt.Errorf("FIS experiment %s is still %s after %s", id, status(out.Experiment), e.Delay+slack))
		case <-time.After(e.Poll):
		}
	}
}

func (e Experiment) describe(id string, x *types.Experiment, running time.Time) string {
	text := fmt.Sprintf("FIS experiment %s is %s", id, status(x))
	if !running.IsZero() {
		text += "; the notice is due at " + running.Add(e.Delay).Format(time.TimeOnly)
	}
	return text
}

// leftRunning warns that an experiment outlives the command.
func (e Experiment) leftRunning(ctx context.Context, id string, err error) error {
	e.Warn(fmt.Sprintf("FIS experiment %s goes on without us; to stop it: aws fis stop-experiment --id %s", id, id))
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// outcome reports whether an experiment is over, or why it failed.
func outcome(x *types.Experiment) (bool, error) {
	switch status(x) {
	case types.ExperimentStatusCompleted:
		return true, nil
	case types.ExperimentStatusFailed, types.ExperimentStatusStopping, types.ExperimentStatusStopped, types.ExperimentStatusCancelled:
		return false, fmt.Errorf("FIS experiment %s %s: %s", aws.ToString(x.Id), status(x), reasons(x))
	}
	return false, nil
}

// isRunning reports whether every action of the experiment has begun.
func isRunning(x *types.Experiment) bool {
	for _, a := range x.Actions {
		if a.State == nil {
			return false
		}
		switch a.State.Status {
		case types.ExperimentActionStatusRunning, types.ExperimentActionStatusCompleted:
		default:
			return false
		}
	}
	return status(x) == types.ExperimentStatusRunning
}

func status(x *types.Experiment) types.ExperimentStatus {
	if x.State == nil {
		return types.ExperimentStatusPending
	}
	return x.State.Status
}

// reasons gathers what FIS says about a failure: the experiment's reason, its
// error and those of its actions.
func reasons(x *types.Experiment) string {
	var all []string
	add := func(text *string) {
		if s := strings.TrimSpace(aws.ToString(text)); s != "" && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	if x.State != nil {
		add(x.State.Reason)
		if x.State.Error != nil {
			add(x.State.Error.Code)
		}
	}
	names := make([]string, 0, len(x.Actions))
	for name := range x.Actions {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if state := x.Actions[name].State; state != nil && state.Status == types.ExperimentActionStatusFailed {
			add(state.Reason)
		}
	}
	if len(all) == 0 {
		return "FIS gives no reason"
	}
	return strings.Join(all, "; ")
}

// deleteTemplates runs to its end even if ctx is cancelled: a template that
// stays behind counts against the account's quota.
func (e Experiment) deleteTemplates(ctx context.Context, api ExperimentsAPI, ids []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	for _, id := range ids {
		_, err := api.DeleteExperimentTemplate(ctx, &fis.DeleteExperimentTemplateInput{Id: aws.String(id)})
		var gone *types.ResourceNotFoundException
		if err != nil && !errors.As(err, &gone) {
			e.Warn(fmt.Sprintf("FIS experiment template %s is left behind (%v); to delete it: aws fis delete-experiment-template --id %s", id, err, id))
		}
	}
}

func tags() map[string]string {
	return map[string]string{"lifeboat.dev/drill": "true"}
}

// isoDuration writes whole seconds as ISO 8601, such as PT2M15S.
func isoDuration(d time.Duration) string {
	minutes, seconds := int(d.Minutes()), int(d.Round(time.Second).Seconds())%60
	if seconds == 0 {
		return fmt.Sprintf("PT%dM", minutes)
	}
	return fmt.Sprintf("PT%dM%dS", minutes, seconds)
}
