package drill

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/fis"
	"github.com/aws/aws-sdk-go-v2/service/fis/types"
	"github.com/google/go-cmp/cmp"
)

// fakeFIS simulates experiments that advance by one state per status call.
type fakeFIS struct {
	states    []types.ExperimentState
	startErr  error
	stopErr   error
	deleteErr error
	onCreate  func()

	templates []*fis.CreateExperimentTemplateInput
	started   int
	deleted   []string
	stopped   []string
	asked     int
}

func (f *fakeFIS) CreateExperimentTemplate(ctx context.Context, in *fis.CreateExperimentTemplateInput, _ ...func(*fis.Options)) (*fis.CreateExperimentTemplateOutput, error) {
	if f.onCreate != nil {
		f.onCreate()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f.templates = append(f.templates, in)
	id := fmt.Sprintf("EXT%d", len(f.templates))
	return &fis.CreateExperimentTemplateOutput{ExperimentTemplate: &types.ExperimentTemplate{Id: &id}}, nil
}

func (f *fakeFIS) StartExperiment(_ context.Context, in *fis.StartExperimentInput, _ ...func(*fis.Options)) (*fis.StartExperimentOutput, error) {
	if f.startErr != nil {
		return nil, f.startErr
	}
	f.started++
	return &fis.StartExperimentOutput{Experiment: &types.Experiment{Id: aws.String("EXP" + strings.TrimPrefix(*in.ExperimentTemplateId, "EXT"))}}, nil
}

func (f *fakeFIS) GetExperiment(ctx context.Context, in *fis.GetExperimentInput, _ ...func(*fis.Options)) (*fis.GetExperimentOutput, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	state := f.states[min(f.asked, len(f.states)-1)]
	f.asked++
	return &fis.GetExperimentOutput{Experiment: &types.Experiment{Id: in.Id, State: &state}}, nil
}

func (f *fakeFIS) DeleteExperimentTemplate(ctx context.Context, in *fis.DeleteExperimentTemplateInput, _ ...func(*fis.Options)) (*fis.DeleteExperimentTemplateOutput, error) {
	if err := ctx.Err(); err != nil {
		return nil, err // a cancelled context would leave the template behind
	}
	f.deleted = append(f.deleted, *in.Id)
	return nil, f.deleteErr
}

func (f *fakeFIS) StopExperiment(ctx context.Context, in *fis.StopExperimentInput, _ ...func(*fis.Options)) (*fis.StopExperimentOutput, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if f.stopErr != nil {
		return nil, f.stopErr
	}
	f.stopped = append(f.stopped, *in.Id)
	return &fis.StopExperimentOutput{}, nil
}

func state(status types.ExperimentStatus, reason string) types.ExperimentState {
	return types.ExperimentState{Status: status, Reason: aws.String(reason)}
}

func experiment(warn func(string)) Experiment {
	return Experiment{
		Place: Place{Account: "210987654321", Region: "eu-west-1", Partition: "aws-cn"}, RoleARN: "arn:aws:iam::210987654321:role/fis",
		Delay: 15 * time.Second, Poll: 4 * time.Second, Progress: func(string) {}, Warn: warn,
	}
}

func instances(n int) []Target {
	var all []Target
	for i := range n {
		all = append(all, Target{InstanceID: fmt.Sprintf("i-%08x", i)})
	}
	return all
}

func TestRun(t *testing.T) {
	running, completed := state("running", ""), state("completed", "Experiment completed.")
	for _, c := range []struct {
		name    string
		fake    *fakeFIS
		targets int
		wantIDs []string
		wantErr string
		warns   string
		// wantTook is checked if it is set.
		wantTook time.Duration
		// stopped are the expected stopped experiments.
		stopped []string
		only    bool // the recommendation
	}{
		{name: "one instance", fake: &fakeFIS{states: []types.ExperimentState{running, running, completed}}, targets: 1, wantIDs: []string{"EXP1"}},
		{name: "more than one template holds", fake: &fakeFIS{states: []types.ExperimentState{completed}}, targets: 101, wantIDs: []string{"EXP1", "EXP2"}},
		{name: "FIS fails", fake: &fakeFIS{states: []types.ExperimentState{running, state("failed", "Target i-0 is not a spot instance.")}}, targets: 1,
			wantIDs: []string{"EXP1"}, wantErr: "FIS experiment EXP1 failed: Target i-0 is not a spot instance."},
		{name: "a user stops it", fake: &fakeFIS{states: []types.ExperimentState{state("stopped", "")}}, targets: 1,
			wantIDs: []string{"EXP1"}, wantErr: "FIS experiment EXP1 stopped: FIS gave no reason"},
		{name: "it does not start", fake: &fakeFIS{startErr: errors.New("the role cannot be assumed")}, targets: 1,
			wantErr: "starting the FIS experiment: the role cannot be assumed"},
		{name: "it runs on after the notice", fake: &fakeFIS{states: []types.ExperimentState{running}}, targets: 1, wantIDs: []string{"EXP1"}, wantTook: 20 * time.Second},
		{name: "it never begins", fake: &fakeFIS{states: []types.ExperimentState{state("initiating", "")}}, targets: 1, wantIDs: []string{"EXP1"},
			wantErr: "FIS experiment EXP1 is still initiating after 3m15s", warns: "EXP1 was stopped before its notice", stopped: []string{"EXP1"}},
		{name: "it never begins and cannot be stopped", fake: &fakeFIS{states: []types.ExperimentState{state("initiating", "")}, stopErr: errors.New("throttled")},
			targets: 1, wantIDs: []string{"EXP1"},
			wantErr: "FIS experiment EXP1 is still initiating after 3m15s", warns: "aws fis stop-experiment --id EXP1"},
		{name: "of two the first fails, so the other is called off", fake: &fakeFIS{states: []types.ExperimentState{state("failed", "No.")}}, targets: 101,
			wantIDs: []string{"EXP1", "EXP2"}, wantErr: "FIS experiment EXP1 failed: No.", warns: "EXP2 was stopped", stopped: []string{"EXP2"}},
		{name: "only the recommendation is waited for", fake: &fakeFIS{states: []types.ExperimentState{running}}, targets: 1, only: true,
			wantIDs: []string{"EXP1"}, wantTook: 4 * time.Second},
		{name: "the template cannot be deleted", fake: &fakeFIS{states: []types.ExperimentState{completed}, deleteErr: errors.New("throttled")}, targets: 1,
			wantIDs: []string{"EXP1"}, warns: "aws fis delete-experiment-template --id EXT1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				warned, began := "", time.Now()
				e := experiment(func(s string) { warned += s })
				e.Recommendation = c.only
				ids, err := e.Run(t.Context(), c.fake, instances(c.targets))
				if diff := cmp.Diff(c.wantIDs, ids); diff != "" {
					t.Errorf("experiments (-want +got):\n%s", diff)
				}
				if got := fmt.Sprint(err); got != c.wantErr && (err != nil || c.wantErr != "") {
					t.Errorf("error %q, want %q", got, c.wantErr)
				}
				if took := time.Since(began); c.wantTook != 0 && took != c.wantTook {
					t.Errorf("took %v, want %v", took, c.wantTook)
				}
				if len(c.fake.deleted) != len(c.fake.templates) {
					t.Errorf("%d of %d templates deleted", len(c.fake.deleted), len(c.fake.templates))
				}
				if diff := cmp.Diff(c.stopped, c.fake.stopped); diff != "" {
					t.Errorf("stopped (-want +got):\n%s", diff)
				}
				if (c.warns == "") != (warned == "") || !strings.Contains(warned, c.warns) {
					t.Errorf("warned %q, want %q", warned, c.warns)
				}
			})
		})
	}
}

func TestRunDeletesTheTemplateOnCtrlC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := &fakeFIS{states: []types.ExperimentState{state("running", "")}}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		warned := ""
		_, err := experiment(func(s string) { warned += s }).Run(ctx, fake, instances(1))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the context's", err)
		}
		if diff := cmp.Diff([]string{"EXT1"}, fake.deleted); diff != "" {
			t.Errorf("deleted (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"EXP1"}, fake.stopped); diff != "" {
			t.Errorf("stopped (-want +got):\n%s", diff)
		}
		if !strings.Contains(warned, "EXP1 was stopped before its notice") {
			t.Errorf("warned %q", warned)
		}
	})
}

// Run waits for the result of a call in progress at Ctrl-C: it contains the ids to
// clean up.
func TestRunDeletesTemplateOfCallInProgressAtCtrlC(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	fake := &fakeFIS{onCreate: cancel}
	_, err := experiment(func(string) {}).Run(ctx, fake, instances(1))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
	if diff := cmp.Diff([]string{"EXT1"}, fake.deleted); diff != "" || fake.started != 0 {
		t.Errorf("%d started; deleted (-want +got):\n%s", fake.started, diff)
	}
}

func TestTemplateKeepsFISLimits(t *testing.T) {
	in := experiment(nil).Templates(instances(12))[0].input()
	if got := len(in.Actions); got != 3 {
		t.Errorf("%d actions for 12 instances, want 3", got)
	}
	for name, action := range in.Actions {
		target := in.Targets[action.Targets["SpotInstances"]]
		if n := len(target.ResourceArns); n == 0 || n > 5 {
			t.Errorf("%s has %d targets", name, n)
		}
		if got := action.Parameters["durationBeforeInterruption"]; got != "PT2M15S" {
			t.Errorf("%s waits %q, want PT2M15S", name, got)
		}
	}
	if got := in.Targets["batch02"].ResourceArns[1]; got != "arn:aws-cn:ec2:eu-west-1:210987654321:instance/i-0000000b" {
		t.Errorf("the last target is %q", got)
	}
	if got := *in.StopConditions[0].Source; got != "none" {
		t.Errorf("stop condition %q", got)
	}
}
