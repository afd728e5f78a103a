package fis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/events"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// world is an account with FIS and EC2 that records events, in virtual time.
type world struct {
	*State
	ec2    *ec2.State
	start  time.Time
	events []string
}

func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		scope := wire.Scope{Account: "210987654321", Region: "eu-west-1"}
		w := &world{start: time.Now()}
		var noting sync.Mutex // FIS and EC2 each emit from their own goroutine
		note := func(e events.Event) {
			noting.Lock()
			defer noting.Unlock()
			w.events = append(w.events, fmt.Sprintf("%s %s %s", time.Since(w.start), e.DetailType, e.Detail))
		}
		w.ec2 = ec2.New(ec2.Options{Scope: scope, Emit: note})
		w.State = New(Options{Scope: scope, EC2: w.ec2, Emit: note, StepFor: 250 * time.Millisecond})
		ctx, cancel := context.WithCancel(t.Context())
		go w.ec2.Run(ctx)
		go w.Run(ctx)
		test(t, w)
		cancel()
		synctest.Wait()
	})
}

func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *world) launch(t *testing.T, n int, spot *ec2.SpotOptions, tags map[string]string) []string {
	t.Helper()
	made, err := w.ec2.Launch(ec2.LaunchInput{ImageID: "ami-1", Min: n, Max: n, Spot: spot, Tags: tags})
	if err != nil {
		t.Fatal(err)
	}
	w.pass(time.Second)
	var ids []string
	for _, in := range made {
		ids = append(ids, in.ID)
	}
	return ids
}

// run creates an experiment from a template and starts it.
func (w *world) run(t *testing.T, template Template) string {
	t.Helper()
	made, err := w.CreateTemplate(template, "")
	if err != nil {
		t.Fatal(err)
	}
	e, err := w.Start(StartInput{TemplateID: made.ID})
	if err != nil {
		t.Fatal(err)
	}
	return e.ID
}

func (w *world) experiment(t *testing.T, id string) Experiment {
	t.Helper()
	e, err := w.Experiment(id)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func arns(ids ...string) []string {
	var out []string
	for _, id := range ids {
		out = append(out, "arn:aws:ec2:eu-west-1:210987654321:instance/"+id)
	}
	return out
}

// interruption is a template that interrupts a target, with a change.
func interruption(target Target, change func(*Template)) Template {
	if target.ResourceType == "" {
		target.ResourceType = "aws:ec2:spot-instance"
	}
	if target.SelectionMode == "" {
		target.SelectionMode = "ALL"
	}
	t := Template{
		Description: "drill", RoleARN: "arn:aws:iam::210987654321:role/fis",
		StopConditions: []StopCondition{{Source: "none"}},
		Targets:        map[string]Target{"nodes": target},
		Actions: map[string]Action{"itn": {
			ActionID: sendSpotInterruptions, Targets: map[string]string{"SpotInstances": "nodes"},
			Parameters: map[string]string{"durationBeforeInterruption": "PT3M"},
		}},
	}
	if change != nil {
		change(&t)
	}
	return t
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func wantCode(t *testing.T, what string, err error, code string) {
	t.Helper()
	var e *wire.Error
	if code == "" && err != nil || code != "" && (!errors.As(err, &e) || e.Code != code) {
		t.Errorf("%s: got error %v, want %q", what, err, code)
	}
}

func TestExperimentInterruptsSpotInstance(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		id := w.launch(t, 1, &ec2.SpotOptions{}, nil)[0]
		w.pass(9 * time.Second)
		w.events = nil
		run := w.run(t, interruption(Target{ResourceARNs: arns(id)}, nil))
		same(t, "at first", w.experiment(t, run).State.Status, "pending")
		w.pass(time.Minute)
		same(t, "after a minute", w.experiment(t, run).State.Status, "running")
		w.pass(10 * time.Minute)

		e := w.experiment(t, run)
		change := func(was, wasWhy, is, isWhy string) string {
			return fmt.Sprintf(`FIS Experiment State Change {"experiment-id":"%s","experiment-template-id":"%s",`+
				`"new-state":{"status":"%s","reason":"%s"},"old-state":{"status":"%s","reason":"%s"}}`, e.ID, e.TemplateID, is, isWhy, was, wasWhy)
		}
		slices.Sort(w.events) // two of them have the same time
		want := []string{
			"10.25s " + change("pending", "Experiment is pending.", "initiating", "Experiment is initiating."),
			"10.5s " + change("initiating", "Experiment is initiating.", "running", "Experiment is running."),
			"10.5s EC2 Instance Rebalance Recommendation " + `{"instance-id":"` + id + `"}`,
			"1m10.5s EC2 Spot Instance Interruption Warning " + `{"instance-id":"` + id + `","instance-action":"terminate"}`,
			"3m10.5s EC2 Instance State-change Notification " + `{"instance-id":"` + id + `","state":"shutting-down"}`,
			"3m10.5s " + change("running", "Experiment is running.", "completed", "Experiment completed."),
			"3m12.5s EC2 Instance State-change Notification " + `{"instance-id":"` + id + `","state":"terminated"}`,
		}
		slices.Sort(want)
		same(t, "events", w.events, want)
		same(t, "experiment", []string{e.State.Status, e.Actions["itn"].State.Status}, []string{"completed", "completed"})
		same(t, "request", w.ec2.SpotRequests()[0].Status.Code, "instance-terminated-by-experiment")
	})
}

func TestExperimentFailsOnInvalidTargets(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		good := w.launch(t, 1, &ec2.SpotOptions{}, nil)[0]
		onDemand := w.launch(t, 1, nil, nil)[0]
		gone := w.launch(t, 1, &ec2.SpotOptions{}, nil)[0]
		if _, err := w.ec2.Terminate([]string{gone}); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		for name, c := range map[string]struct {
			target Target
			reason string
		}{
			"on demand": {Target{ResourceARNs: arns(good, onDemand)}, "1 of the 2 resources named do not exist, or are not of type aws:ec2:spot-instance"},
			"unknown":   {Target{ResourceARNs: arns("i-0123456789abcdef0")}, "1 of the 1 resources named do not exist, or are not of type aws:ec2:spot-instance"},
			"gone":      {Target{ResourceARNs: arns(good, gone)}, "Action itn failed: interrupting " + gone + ": it is terminated, not running"},
			"no match":  {Target{ResourceTags: map[string]string{"no": "such"}}, "Target resolution returned empty set."},
		} {
			run := w.run(t, interruption(c.target, nil))
			w.pass(time.Minute)
			same(t, name, w.experiment(t, run).State, Status{failed, c.reason})
		}
		in, _ := w.ec2.Instance(good)
		same(t, "the good one", []any{in.State, in.RebalanceAt.IsZero()}, []any{ec2.Running, true})
	})
}

func TestTargetsByTagAndSelection(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.launch(t, 7, &ec2.SpotOptions{}, map[string]string{"pool": "a"})
		w.launch(t, 2, &ec2.SpotOptions{}, map[string]string{"pool": "b"})
		w.launch(t, 2, nil, map[string]string{"pool": "b"})
		warned := func() int {
			n := 0
			for _, in := range w.ec2.Instances() {
				if !in.RebalanceAt.IsZero() {
					n++
				}
			}
			return n
		}
		tagged := func(pool, mode string) Target {
			return Target{ResourceTags: map[string]string{"pool": pool}, SelectionMode: mode}
		}
		run := w.run(t, interruption(tagged("a", "ALL"), nil))
		w.pass(time.Second)
		same(t, "above the quota", w.experiment(t, run).State.Status, failed)
		same(t, "warned above the quota", warned(), 0)
		w.run(t, interruption(tagged("a", "PERCENT(50)"), nil))
		w.pass(time.Second)
		same(t, "half of seven, rounded down", warned(), 3)
		w.run(t, interruption(tagged("b", "COUNT(5)"), nil))
		w.pass(time.Second)
		same(t, "and the two spot instances of b", warned(), 5)
		run = w.run(t, interruption(Target{Filters: []TargetFilter{{"State.Name", []string{"stopped"}}}}, func(t *Template) {
			t.Options.EmptyTargets = "skip"
		}))
		w.pass(time.Second)
		e := w.experiment(t, run)
		same(t, "nothing matched, and may be skipped", []string{e.State.Status, e.Actions["itn"].State.Status}, []string{completed, skipped})
	})
}

func TestInvalidTemplatesAreRejected(t *testing.T) {
	byARN := Target{ResourceARNs: arns("i-0123456789abcdef0")}
	duration := func(d string) func(*Template) {
		return func(t *Template) { t.Actions["itn"].Parameters["durationBeforeInterruption"] = d }
	}
	action := func(change func(*Action)) func(*Template) {
		return func(t *Template) { a := t.Actions["itn"]; change(&a); t.Actions["itn"] = a }
	}
	for name, c := range map[string]struct {
		template Template
		want     string // message; empty: accepted
	}{
		"two minutes":     {interruption(byARN, duration("PT2M")), ""},
		"in seconds":      {interruption(byARN, duration("PT120S")), ""},
		"too soon":        {interruption(byARN, duration("PT1M")), "The parameter durationBeforeInterruption must be between PT2M and PT15M; it is PT1M."},
		"too late":        {interruption(byARN, duration("PT16M")), "The parameter durationBeforeInterruption must be between PT2M and PT15M; it is PT16M."},
		"no duration":     {interruption(byARN, duration("2m")), `"2m" is not an ISO 8601 duration such as PT2M.`},
		"half a duration": {interruption(byARN, duration("PT")), `"PT" is not an ISO 8601 duration such as PT2M.`},
		"without it":      {interruption(byARN, action(func(a *Action) { a.Parameters = nil })), "Action itn is missing the required parameter durationBeforeInterruption."},
		"more parameters": {interruption(byARN, action(func(a *Action) { a.Parameters["x"] = "" })), `Unexpected parameter "x" found in action "itn".`},
		"wrong key":       {interruption(byARN, action(func(a *Action) { a.Targets = map[string]string{"Instances": "nodes"} })), `Unexpected target "Instances" found in action "itn".`},
		"wrong name":      {interruption(byARN, action(func(a *Action) { a.Targets = map[string]string{"SpotInstances": "x"} })), `Action "itn" refers to the target "x", which is not defined.`},
		"no target":       {interruption(byARN, action(func(a *Action) { a.Targets = nil })), `Action "itn" is missing the required target "SpotInstances".`},
		"other action":    {interruption(byARN, action(func(a *Action) { a.ActionID = "aws:ec2:reboot-instances" })), `The action "aws:ec2:reboot-instances" is not supported by this emulator; it has aws:ec2:send-spot-instance-interruptions, aws:ec2:stop-instances and aws:ec2:terminate-instances.`},
		"own successor":   {interruption(byARN, action(func(a *Action) { a.StartAfter = []string{"itn"} })), "The actions wait for each other in a circle."},
		"six":             {interruption(Target{ResourceARNs: arns("i-0", "i-1", "i-2", "i-3", "i-4", "i-5")}, nil), "Target nodes has 6 resource ARNs; at most 5 are allowed."},
		"arns and tags":   {interruption(Target{ResourceARNs: byARN.ResourceARNs, ResourceTags: map[string]string{"a": ""}}, nil), "You cannot specify both resource ARNs and resource tags for target nodes."},
		"nothing":         {interruption(Target{}, nil), "You must specify resource ARNs, resource tags or filters for target nodes."},
		"a bare id":       {interruption(Target{ResourceARNs: []string{"i-0"}}, nil), `"i-0" is not the ARN of an instance, in target nodes.`},
		"other type":      {interruption(Target{ResourceARNs: byARN.ResourceARNs, ResourceType: "aws:ec2:instance"}, nil), `Action "itn" needs a target of type aws:ec2:spot-instance; "nodes" is of type aws:ec2:instance.`},
		"selection":       {interruption(Target{ResourceARNs: byARN.ResourceARNs, SelectionMode: "PERCENT(101)"}, nil), `The selectionMode "PERCENT(101)" of target nodes is out of range.`},
		"role":            {interruption(byARN, func(t *Template) { t.RoleARN = "fis" }), `The roleArn "fis" is not the ARN of an IAM role.`},
		"no stop":         {interruption(byARN, func(t *Template) { t.StopConditions = nil }), "At least one stop condition is required; use the source none to have none."},
		"an alarm":        {interruption(byARN, func(t *Template) { t.StopConditions[0].Source = "aws:cloudwatch:alarm" }), `The stop condition "aws:cloudwatch:alarm" is not supported by this emulator; use none.`},
	} {
		err := c.template.check()
		got := ""
		if e := (*wire.Error)(nil); errors.As(err, &e) {
			got = e.Message
		}
		if got != c.want {
			t.Errorf("%s:\n got %v\nwant %s", name, err, c.want)
		}
	}
}

func TestStopCancelsUnannouncedInterruption(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		id := w.launch(t, 1, &ec2.SpotOptions{}, nil)[0]
		run := w.run(t, interruption(Target{ResourceARNs: arns(id)}, nil))
		w.pass(30 * time.Second)
		e, err := w.Stop(run)
		wantCode(t, "stopping", err, "")
		same(t, "at once", e.State.Status, stopping)
		w.pass(10 * time.Minute)
		e = w.experiment(t, run)
		same(t, "later", []string{e.State.Status, e.Actions["itn"].State.Status}, []string{stopped, stopped})
		in, _ := w.ec2.Instance(id)
		same(t, "instance", in.State, ec2.Running)
		_, err = w.Stop(run)
		wantCode(t, "stopping again", err, "ValidationException")
		_, err = w.Stop("EXPnone")
		wantCode(t, "stopping none", err, "ResourceNotFoundException")
	})
}

func TestStopBeforeStart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		id := w.launch(t, 1, &ec2.SpotOptions{}, nil)[0]
		for _, when := range []time.Duration{100 * time.Millisecond, 300 * time.Millisecond} {
			run := w.run(t, interruption(Target{ResourceARNs: arns(id)}, nil))
			w.pass(when)
			_, err := w.Stop(run)
			wantCode(t, "stopping", err, "")
			w.pass(time.Minute)
			e := w.experiment(t, run)
			same(t, "outcome", []string{e.State.Status, e.Actions["itn"].State.Status}, []string{stopped, cancelled})
		}
		in, _ := w.ec2.Instance(id)
		same(t, "recommended", in.RebalanceAt.IsZero(), true)
	})
}

func TestActionsFollowEachOther(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ids := w.launch(t, 2, nil, nil)
		template := Template{
			Description: "stop, then terminate", RoleARN: "arn:aws:iam::210987654321:role/fis",
			StopConditions: []StopCondition{{Source: "none"}},
			Targets: map[string]Target{
				"one": {ResourceType: "aws:ec2:instance", ResourceARNs: arns(ids[0]), SelectionMode: "ALL"},
				"two": {ResourceType: "aws:ec2:instance", ResourceARNs: arns(ids[1]), SelectionMode: "ALL"},
			},
			Actions: map[string]Action{
				"z-stop": {ActionID: stopInstances, Targets: map[string]string{"Instances": "one"},
					Parameters: map[string]string{"startInstancesAfterDuration": "PT2M"}},
				"a-end": {ActionID: terminateInstances, Targets: map[string]string{"Instances": "two"}, StartAfter: []string{"z-stop"}},
			},
		}
		run := w.run(t, template)
		w.pass(time.Minute)
		states := func() []ec2.InstanceState {
			var out []ec2.InstanceState
			for _, in := range w.ec2.Instances() {
				out = append(out, in.State)
			}
			return out
		}
		same(t, "after a minute", states(), []ec2.InstanceState{ec2.Stopped, ec2.Running})
		w.pass(2 * time.Minute)
		same(t, "after three", states(), []ec2.InstanceState{ec2.Running, ec2.Terminated})
		same(t, "experiment", w.experiment(t, run).State.Status, completed)
	})
}

func TestClientTokens(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		template := interruption(Target{ResourceARNs: arns("i-0123456789abcdef0")}, nil)
		first, err := w.CreateTemplate(template, "t")
		wantCode(t, "creating", err, "")
		second, err := w.CreateTemplate(template, "t")
		wantCode(t, "creating again", err, "")
		same(t, "template", second.ID, first.ID)
		template.Description = "other"
		_, err = w.CreateTemplate(template, "t")
		wantCode(t, "creating another", err, "ConflictException")
		one, err := w.Start(StartInput{TemplateID: first.ID, Token: "s", ActionsMode: "skip-all"})
		wantCode(t, "starting", err, "")
		two, err := w.Start(StartInput{TemplateID: first.ID, Token: "s", ActionsMode: "skip-all"})
		wantCode(t, "starting again", err, "")
		same(t, "experiment", two.ID, one.ID)
		same(t, "experiments", len(w.Experiments("")), 1)
	})
}

func TestSkipAllExperimentChangesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		id := w.launch(t, 1, &ec2.SpotOptions{}, nil)[0]
		made, err := w.CreateTemplate(interruption(Target{ResourceARNs: arns(id)}, nil), "")
		wantCode(t, "creating", err, "")
		e, err := w.Start(StartInput{TemplateID: made.ID, ActionsMode: "skip-all"})
		wantCode(t, "starting", err, "")
		w.pass(10 * time.Minute)
		e = w.experiment(t, e.ID)
		in, _ := w.ec2.Instance(id)
		same(t, "outcome", []any{e.State.Status, e.Actions["itn"].State.Status, in.State}, []any{completed, skipped, ec2.Running})
	})
}
