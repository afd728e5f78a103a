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

const (
	cleanUpTimeout = 15 * time.Second
	// callTimeout limits FIS calls that must not be cancelled.
	callTimeout = 30 * time.Second
	// startupAllowance is the time that an experiment may take in addition to its
	// delay.
	startupAllowance = 3 * time.Minute
)

// TemplatesAPI creates and deletes experiment templates. *fis.Client implements it.
type TemplatesAPI interface {
	CreateExperimentTemplate(context.Context, *fis.CreateExperimentTemplateInput, ...func(*fis.Options)) (*fis.CreateExperimentTemplateOutput, error)
	DeleteExperimentTemplate(context.Context, *fis.DeleteExperimentTemplateInput, ...func(*fis.Options)) (*fis.DeleteExperimentTemplateOutput, error)
}

// RunsAPI runs experiments. *fis.Client implements it.
type RunsAPI interface {
	StartExperiment(context.Context, *fis.StartExperimentInput, ...func(*fis.Options)) (*fis.StartExperimentOutput, error)
	GetExperiment(context.Context, *fis.GetExperimentInput, ...func(*fis.Options)) (*fis.GetExperimentOutput, error)
	StopExperiment(context.Context, *fis.StopExperimentInput, ...func(*fis.Options)) (*fis.StopExperimentOutput, error)
}

// ExperimentsAPI has all FIS calls of this package. *fis.Client implements it.
type ExperimentsAPI interface {
	TemplatesAPI
	RunsAPI
}

// Experiment describes a FIS experiment.
type Experiment struct {
	Place Place
	// RoleARN is the role that FIS assumes.
	RoleARN string
	// Delay is the time before the notice.
	Delay time.Duration
	// Recommendation makes Run wait only for the rebalance recommendation, which EC2
	// sends as soon as the experiment runs, and not for the notice.
	Recommendation bool
	// Poll is the interval of status calls.
	Poll time.Duration
	// Progress receives the current step. Warn receives failures and leftovers that
	// the user must know.
	Progress, Warn func(string)
}

// Run interrupts the targets and returns the ids of its experiments after the notices
// are sent. It always deletes its experiment templates. If it fails, or ctx is
// cancelled, it stops the experiments that have not sent their notice. The error
// contains FIS's own reason.
func (e Experiment) Run(ctx context.Context, api ExperimentsAPI, targets []Target) ([]string, error) {
	var ids, templates []string
	defer func() { e.deleteTemplates(ctx, api, templates) }()
	for _, t := range e.Templates(targets) {
		e.Progress("creating a FIS experiment template")
		made, err := e.start(ctx, api, t)
		if made.template != "" {
			templates = append(templates, made.template)
		}
		if made.experiment != "" {
			ids = append(ids, made.experiment)
		}
		if err != nil {
			e.Stop(ctx, api, ids)
			return ids, err
		}
	}
	for i, id := range ids {
		if over, err := e.follow(ctx, api, id); err != nil {
			left := ids[i:]
			if over {
				left = left[1:]
			}
			e.Stop(ctx, api, left)
			return ids, err
		}
	}
	return ids, nil
}

// createdIDs are the ids of the objects that start created.
type createdIDs struct{ template, experiment string }

// start creates a template and starts it. Even with an error, the returned ids exist.
// A cancelled ctx does not cancel the calls: a cancelled call may have succeeded, and
// its result would be unknown to the cleanup.
func (e Experiment) start(ctx context.Context, api ExperimentsAPI, t Template) (createdIDs, error) {
	if ctx.Err() != nil {
		return createdIDs{}, context.Cause(ctx)
	}
	calls, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	created, err := api.CreateExperimentTemplate(calls, t.input())
	if err != nil {
		return createdIDs{}, fmt.Errorf("creating the FIS experiment template: %w", err)
	}
	m := createdIDs{template: aws.ToString(created.ExperimentTemplate.Id)}
	if ctx.Err() != nil {
		return m, context.Cause(ctx)
	}
	started, err := api.StartExperiment(calls, &fis.StartExperimentInput{ExperimentTemplateId: aws.String(m.template), Tags: tags()})
	if err != nil {
		return m, fmt.Errorf("starting the FIS experiment: %w", err)
	}
	m.experiment = aws.ToString(started.Experiment.Id)
	return m, nil
}

// Stop stops experiments that have not sent their notice. It completes even if ctx is
// cancelled, and warns about experiments that it cannot stop.
func (e Experiment) Stop(ctx context.Context, api RunsAPI, ids []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
	defer cancel()
	for _, id := range ids {
		_, err := api.StopExperiment(ctx, &fis.StopExperimentInput{Id: aws.String(id)})
		var gone *types.ResourceNotFoundException
		switch {
		case errors.As(err, &gone):
		case err != nil:
			e.Warn(fmt.Sprintf("FIS experiment %s still runs (%v); to stop it: aws fis stop-experiment --id %s", id, err, id))
		default:
			e.Warn(fmt.Sprintf("FIS experiment %s was stopped before its notice; if EC2 still sends one, the instances terminate two minutes later", id))
		}
	}
}

// follow waits until the notices of an experiment are sent. FIS does not report that:
// it marks the action as completed only some time later. But it sends the notices two
// minutes before the interruption. They are therefore sent when the action has run
// for the delay, plus one more status call in which it could have failed. The boolean
// reports whether the experiment has ended.
func (e Experiment) follow(ctx context.Context, api RunsAPI, id string) (bool, error) {
	limit, cancel := context.WithTimeout(ctx, e.wait()+startupAllowance)
	defer cancel()
	var running time.Time
	for {
		out, err := api.GetExperiment(limit, &fis.GetExperimentInput{Id: aws.String(id)})
		if err != nil {
			return false, cancellationCause(ctx, fmt.Errorf("getting the status of FIS experiment %s: %w", id, err))
		}
		if done, err := outcome(out.Experiment); done || err != nil {
			return true, err
		}
		if running.IsZero() && isRunning(out.Experiment) {
			running = time.Now()
		}
		if !running.IsZero() && time.Since(running) >= e.wait()+e.Poll {
			return false, nil
		}
		e.Progress(e.describe(id, out.Experiment, running))
		select {
		case <-limit.Done():
			return false, cancellationCause(ctx, fmt.Errorf("FIS experiment %s is still %s after %s", id, status(out.Experiment), e.wait()+startupAllowance))
		case <-time.After(e.Poll):
		}
	}
}

// wait is the time from the start of an experiment to the awaited notice.
func (e Experiment) wait() time.Duration {
	if e.Recommendation {
		return 0
	}
	return e.Delay
}

// cancellationCause returns the cause of ctx's cancellation, or err.
func cancellationCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func (e Experiment) describe(id string, x *types.Experiment, running time.Time) string {
	text := fmt.Sprintf("FIS experiment %s is %s", id, status(x))
	if !running.IsZero() {
		text += "; the notice is due at " + running.Add(e.Delay).Format(time.TimeOnly)
	}
	return text
}

// outcome reports whether an experiment has ended, or returns its failure.
func outcome(x *types.Experiment) (bool, error) {
	switch status(x) {
	case types.ExperimentStatusCompleted:
		return true, nil
	case types.ExperimentStatusFailed, types.ExperimentStatusStopping, types.ExperimentStatusStopped, types.ExperimentStatusCancelled:
		return false, fmt.Errorf("FIS experiment %s %s: %s", aws.ToString(x.Id), status(x), reasons(x))
	}
	return false, nil
}

// isRunning reports whether every action of the experiment has started.
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

// reasons collects FIS's description of a failure: the experiment's reason, its error
// and those of its actions.
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
		return "FIS gave no reason"
	}
	return strings.Join(all, "; ")
}

// deleteTemplates completes even if ctx is cancelled: leftover templates count
// against the account's quota.
func (e Experiment) deleteTemplates(ctx context.Context, api ExperimentsAPI, ids []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
	defer cancel()
	for _, id := range ids {
		_, err := api.DeleteExperimentTemplate(ctx, &fis.DeleteExperimentTemplateInput{Id: aws.String(id)})
		var gone *types.ResourceNotFoundException
		if err != nil && !errors.As(err, &gone) {
			e.Warn(fmt.Sprintf("FIS experiment template %s was not deleted (%v); to delete it: aws fis delete-experiment-template --id %s", id, err, id))
		}
	}
}
