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
	cleanUpTime = 15 * time.Second
	// callTime is how long FIS may take over a call that must not be cut short.
	callTime = 30 * time.Second
	// slack is how much longer than asked for an experiment may take.
	slack = 3 * time.Minute
)

// TemplatesAPI makes and deletes experiment templates. *fis.Client implements it.
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

// ExperimentsAPI is all that is needed of FIS. *fis.Client implements it.
type ExperimentsAPI interface {
	TemplatesAPI
	RunsAPI
}

// Experiment is what FIS is asked to do.
type Experiment struct {
	Place Place
	// RoleARN is the role that FIS acts with.
	RoleARN string
	// Delay is the time before the notice.
	Delay time.Duration
	// Recommendation is set to wait only for the rebalance recommendation, which
	// EC2 sends as soon as the experiment runs, and not for the notice.
	Recommendation bool
	// Poll is how often FIS is asked how far it is.
	Poll time.Duration
	// Progress hears what is being done, and Warn what went wrong, or was left
	// undone, that the user has to know of.
	Progress, Warn func(string)
}

// Run interrupts the targets and returns the ids of its experiments once what
// is waited for is out. It deletes its experiment templates whatever happens,
// and where it fails, ctx being cancelled included, it stops the experiments
// that have not sent their notice. The error has FIS's own reason.
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

// made is what start made.
type made struct{ template, experiment string }

// start makes a template and starts it; what it returns beside an error was
// made all the same. Neither call is cut short when ctx is cancelled: one that
// is may have been carried out, and nobody would know what to clean up.
func (e Experiment) start(ctx context.Context, api ExperimentsAPI, t Template) (made, error) {
	if ctx.Err() != nil {
		return made{}, context.Cause(ctx)
	}
	calls, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	created, err := api.CreateExperimentTemplate(calls, t.input())
	if err != nil {
		return made{}, fmt.Errorf("creating the FIS experiment template: %w", err)
	}
	m := made{template: aws.ToString(created.ExperimentTemplate.Id)}
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

// Stop stops experiments that have not sent their notice. It runs to its end
// even if ctx is cancelled. Of one that cannot be stopped it warns.
func (e Experiment) Stop(ctx context.Context, api RunsAPI, ids []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	for _, id := range ids {
		_, err := api.StopExperiment(ctx, &fis.StopExperimentInput{Id: aws.String(id)})
		var gone *types.ResourceNotFoundException
		switch {
		case errors.As(err, &gone):
		case err != nil:
			e.Warn(fmt.Sprintf("FIS experiment %s goes on without us (%v); to stop it: aws fis stop-experiment --id %s", id, err, id))
		default:
			e.Warn(fmt.Sprintf("FIS experiment %s is stopped before its notice was out; should EC2 send one all the same, the instances go two minutes after it", id))
		}
	}
}

// follow waits until the notices of an experiment are out. FIS does not say so
// itself: it calls the action completed only some time after. But it sends them
// two minutes before the interruption, so they are out when the action has been
// running for the delay, and for one more question in which it could have
// failed. Beside an error it reports whether the experiment is over.
func (e Experiment) follow(ctx context.Context, api RunsAPI, id string) (bool, error) {
	limit, cancel := context.WithTimeout(ctx, e.wait()+slack)
	defer cancel()
	var running time.Time
	for {
		out, err := api.GetExperiment(limit, &fis.GetExperimentInput{Id: aws.String(id)})
		if err != nil {
			return false, whyEnded(ctx, fmt.Errorf("asking how far FIS experiment %s is: %w", id, err))
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
			return false, whyEnded(ctx, fmt.Errorf("FIS experiment %s is still %s after %s", id, status(out.Experiment), e.wait()+slack))
		case <-time.After(e.Poll):
		}
	}
}

// wait is how long after its beginning an experiment sends what is waited for.
func (e Experiment) wait() time.Duration {
	if e.Recommendation {
		return 0
	}
	return e.Delay
}

// whyEnded is the cause of the cancellation, if that is what it was.
func whyEnded(ctx context.Context, err error) error {
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
