package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
	"github.com/lifeboat-dev/lifeboat/sandbox"
)

// Options are the options of a run.
type Options struct {
	// Sandbox has the options of the sandbox. Its name defaults to that of the scenario. Its BootDelay,
	// if there is one, replaces the boot times of the script.
	Sandbox sandbox.Options
	// Moment receives the timeline live, one moment at a time. It may be nil.
	Moment func(Moment)
	// Up is called when the sandbox is up, and Before when the script has ended, before the sandbox
	// is removed. They may be nil.
	Up     func(context.Context, sandbox.State) error
	Before func(context.Context)
}

// Run creates a sandbox, runs a scenario on it, and removes the sandbox, also when ctx ends. It
// returns a report if the script ran to its end. The error is a *FailedError if expectations did
// not hold.
func Run(ctx context.Context, sc *Scenario, o Options) (_ *Report, err error) {
	if o.Sandbox.BootDelay > 0 {
		sc = sc.withoutBoot()
	}
	sb, err := sandbox.New(sc.Sandbox(o.Sandbox))
	if err != nil {
		return nil, err
	}
	if err := sb.Up(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sb.Down()) }()
	if o.Up != nil {
		if err := o.Up(ctx, sb.State()); err != nil {
			return nil, err
		}
	}
	report, err := Play(ctx, sc, sb, o.Moment)
	if o.Before != nil {
		o.Before(ctx)
	}
	return report, err
}

// sandboxName makes a valid sandbox name of a scenario's name.
func sandboxName(name string) string {
	const longest = 30
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	return strings.Trim(clean[:min(len(clean), longest)], "-")
}

// Play runs a scenario on a running sandbox with the options of [Scenario.Sandbox] and without
// nodes.
func Play(ctx context.Context, sc *Scenario, sb *sandbox.Sandbox, moment func(Moment)) (_ *Report, err error) {
	if moment == nil {
		moment = func(Moment) {}
	}
	p := &player{scenario: sc, sandbox: sb, watcher: newWatcher(moment)}
	if err := p.begin(ctx); err != nil {
		return nil, err
	}
	defer p.end()
	defer func() { err = errors.Join(err, p.repair()) }()
	for _, step := range sc.Steps {
		if err := p.step(ctx, step); err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, &ParseError{File: sc.Name + ending, Line: step.Line, Err: err}
		}
	}
	if err := p.repair(); err != nil {
		return nil, err
	}
	var report *Report
	p.do(func(w *World) []Moment {
		var out []Moment
		for _, one := range w.metRequirements() {
			out = append(out, w.moment(time.Now(), MomentMet, "", "", one.step.Text))
		}
		report = w.report(sc, time.Now(), append(p.failures, w.BrokenRequirements()...))
		return out
	})
	if !report.Passed {
		return report, &FailedError{Scenario: sc.Name, Failures: report.Failures}
	}
	return report, nil
}

// player runs a scenario.
type player struct {
	*watcher
	scenario *Scenario
	sandbox  *sandbox.Sandbox
	client   client.Client
	nodes    map[string]ec2.Instance // by their names in the script
	planned  map[string][]string     // ids of EC2's scheduled events, by node
	rules    []string                // names of the existing rules
	failures []string
	stops    []func()
	faults   []func() error // end the faults
}

func (p *player) begin(ctx context.Context) error {
	p.nodes, p.planned = map[string]ec2.Instance{}, map[string][]string{}
	s, err := scheme()
	if err != nil {
		return err
	}
	p.client, err = client.New(p.sandbox.RESTConfig(), client.Options{Scheme: s})
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	made := provisioner(p.sandbox.State())
	if _, needed := p.scenario.karpenter(); needed && made == "" {
		return errors.New("the scenario needs Karpenter, and the sandbox was made without it")
	}
	p.do(func(w *World) []Moment { w.provisioner = made; return nil })
	stop, err := p.watch(ctx, p.sandbox.RESTConfig(), made != "")
	if err != nil {
		return err
	}
	p.stops = append(p.stops, stop, p.sandbox.EC2().Subscribe(p.machine), p.watchGroups())
	for _, r := range p.sandbox.Wiring().Rules {
		p.rules = append(p.rules, r.Name)
	}
	return nil
}

func (p *player) end() {
	for _, stop := range p.stops {
		stop()
	}
}

// addMoment adds a moment without a node.
func (p *player) addMoment(kind MomentKind, text string) {
	p.do(func(w *World) []Moment { return []Moment{w.moment(time.Now(), kind, "", "", text)} })
}

// step executes one line. A failed expectation is recorded and is no error: the scenario continues,
// so that its report is complete.
func (p *player) step(ctx context.Context, s Step) error {
	switch do := s.Do.(type) {
	case NodeStatement:
		return p.launchAll(do)
	case ApplyStatement:
		return p.apply(ctx, do)
	case RulesStatement:
		return p.setRules(ctx, do)
	case AgentsStatement:
		return p.agents(do)
	case LifeboatStatement:
		return p.lifeboat(ctx, do)
	case InterruptStatement:
		return p.interrupt(ctx, do)
	case ChaosStatement, CancelStatement:
		return p.disturb(ctx, do)
	case UserActionStatement:
		return p.userAction(ctx, do)
	case UntilStatement:
		return p.until(ctx, do.Until)
	case AlwaysStatement:
		p.do(func(w *World) []Moment { w.Require(s, do.Cond); return nil })
		return nil
	case CheckStatement:
		return p.check(ctx, s, do)
	case GroupStatement, ScaleStatement, RefreshStatement, BalanceStatement, DetachStatement, TerminateStatement:
		return p.groupStep(ctx, do)
	default:
		return p.provision(ctx, s)
	}
}

func (p *player) lifeboat(ctx context.Context, st LifeboatStatement) error {
	switch st.Do {
	case LifeboatOn:
		if len(st.Args) > 0 {
			p.addMoment(MomentStep, "lifeboatd is started with "+strings.Join(st.Args, " "))
			return p.sandbox.RestartLifeboat(ctx, st.Args...)
		}
		p.addMoment(MomentStep, "lifeboatd is started")
		return p.sandbox.StartLifeboat(ctx)
	case LifeboatKill:
		p.addMoment(MomentStep, "lifeboatd is killed (SIGKILL)")
		return killRunning(ctx, p.sandbox.KillLifeboat)
	default:
		p.addMoment(MomentStep, "lifeboatd is stopped")
		return p.sandbox.StopLifeboat()
	}
}

// killRunning kills a program. If the program is being restarted after an earlier kill, it waits
// for the start.
func killRunning(ctx context.Context, kill func() error) error {
	for limit := time.Now().Add(30 * time.Second); ; {
		err := kill()
		if !errors.Is(err, sandbox.ErrRestarting) || time.Now().After(limit) {
			return err
		}
		if !sleep.For(ctx, 20*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}

func (p *player) agents(st AgentsStatement) error {
	if !st.On {
		p.addMoment(MomentStep, "the agents are stopped")
		return p.sandbox.StopAgents()
	}
	p.addMoment(MomentStep, "an agent is started on every node")
	return p.sandbox.StartAgents()
}

// until waits until a moment.
func (p *player) until(ctx context.Context, w When) error {
	t, err := p.timeOf(w)
	if err != nil {
		return err
	}
	return sleepUntil(ctx, t)
}

// timeOf is the time of a moment.
func (p *player) timeOf(w When) (time.Time, error) {
	t, known := p.when(w)
	if !known {
		return t, fmt.Errorf("the time of %s is unknown", w)
	}
	return t, nil
}

func sleepUntil(ctx context.Context, t time.Time) error {
	if !sleep.For(ctx, time.Until(t)) {
		return context.Cause(ctx)
	}
	return nil
}

// check tests a condition at its time.
func (p *player) check(ctx context.Context, s Step, c CheckStatement) error {
	limit, err := p.limit(ctx, c)
	if err != nil {
		return err
	}
	ok, text, err := p.await(ctx, c.Cond, limit)
	switch {
	case err != nil:
		return err
	case ok:
		p.addMoment(MomentMet, s.Text)
		return nil
	case c.Mode == CheckWait:
		// The following lines depend on it.
		return fmt.Errorf("%q does not hold after %s: %s", s.Text, c.Within, text)
	default:
		failure := fmt.Sprintf("line %d, %q does not hold: %s", s.Line, s.Text, text)
		p.failures = append(p.failures, failure)
		p.addMoment(MomentFailed, failure)
		return nil
	}
}

// limit is the time by which a condition must become true. It first waits for the condition's moment.
func (p *player) limit(ctx context.Context, c CheckStatement) (time.Time, error) {
	switch c.Mode {
	case CheckWait:
		return time.Now().Add(c.Within), nil
	case CheckBy:
		return p.timeOf(c.When)
	case CheckAt:
		return time.Now(), p.until(ctx, c.When)
	default:
		return time.Now(), nil
	}
}

// await waits until a condition holds, or limit; it checks at least once.
func (p *player) await(ctx context.Context, c Condition, limit time.Time) (bool, string, error) {
	timer := time.NewTimer(time.Until(limit))
	defer timer.Stop()
	for {
		ok, text, changed := p.holds(c)
		if ok || !time.Now().Before(limit) {
			return ok, text, nil
		}
		select {
		case <-ctx.Done():
			return false, "", context.Cause(ctx)
		case <-timer.C:
		case <-changed:
		}
	}
}
