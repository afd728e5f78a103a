package diagnose

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"golang.org/x/sync/errgroup"

	"github.com/lifeboat-dev/lifeboat/internal/wiring"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/pattern"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/snapshot"
)

// rules looks at the rules that fill the queue, those that should, and all others
// for the services that send notices: the one that is missing may be misspelt and
// elsewhere.
func (l *look) rules(ctx context.Context) error {
	l.target.step("looking at EventBridge's rules")
	if err := l.onBus(ctx, snapshot.DefaultBus, l.concerns); err != nil {
		return err
	}
	if err := l.onOtherBuses(ctx); err != nil {
		return err
	}
	l.target.step(fmt.Sprintf("looking at the targets of %d rules", len(l.out.Rules)))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(calls)
	for i := range l.out.Rules {
		group.Go(func() error { return l.targets(ctx, &l.out.Rules[i]) })
	}
	return group.Wait()
}

// concerns tells whether a rule of the default bus is worth a look.
func (l *look) concerns(r snapshot.Rule, fills []string) bool {
	ours := slices.ContainsFunc(l.target.Want.Rules, func(w wiring.Rule) bool { return w.Name == r.Name })
	if ours || slices.Contains(fills, r.Name) || l.brief {
		return ours || slices.Contains(fills, r.Name)
	}
	if mentionsAWS(r.Pattern) {
		return true
	}
	p, err := pattern.Compile([]byte(r.Pattern))
	return err == nil && len(kindsOf(p, canonicals(l.out.Account, l.out.Region))) > 0
}

// onBus takes in the rules of a bus that are worth a look.
func (l *look) onBus(ctx context.Context, bus string, wanted func(r snapshot.Rule, fills []string) bool) error {
	fills, err := l.fills(ctx, bus)
	if err != nil {
		return err
	}
	if bus != snapshot.DefaultBus && len(fills) == 0 {
		return nil
	}
	in := &eventbridge.ListRulesInput{EventBusName: &bus}
	for {
		out, err := l.clients.Rules.ListRules(ctx, in)
		if denied, err := l.answered("events:ListRules", "bus "+bus, err); err != nil || denied {
			return err
		}
		for _, r := range out.Rules {
			if rule := fromRule(r); wanted(rule, fills) {
				l.out.Rules = append(l.out.Rules, rule)
			}
		}
		if aws.ToString(out.NextToken) == "" {
			return nil
		}
		in.NextToken = out.NextToken
	}
}

func fromRule(r ebtypes.Rule) snapshot.Rule {
	return snapshot.Rule{
		Name: aws.ToString(r.Name), ARN: aws.ToString(r.Arn), Bus: aws.ToString(r.EventBusName),
		Enabled: r.State != ebtypes.RuleStateDisabled, Pattern: aws.ToString(r.EventPattern),
	}
}

// fills are the names of the rules of a bus whose target is the queue.
func (l *look) fills(ctx context.Context, bus string) ([]string, error) {
	var names []string
	in := &eventbridge.ListRuleNamesByTargetInput{TargetArn: &l.out.Queue, EventBusName: &bus}
	for {
		out, err := l.clients.Rules.ListRuleNamesByTarget(ctx, in)
		if denied, err := l.answered("events:ListRuleNamesByTarget", "bus "+bus, err); err != nil || denied {
			return nil, err
		}
		names = append(names, out.RuleNames...)
		if aws.ToString(out.NextToken) == "" {
			return names, nil
		}
		in.NextToken = out.NextToken
	}
}

// onOtherBuses takes in the rules of other buses that fill the queue: no notice
// ever comes there.
func (l *look) onOtherBuses(ctx context.Context) error {
	in := &eventbridge.ListEventBusesInput{}
	for {
		out, err := l.clients.Rules.ListEventBuses(ctx, in)
		if denied, err := l.answered("events:ListEventBuses", "the account", err); err != nil || denied {
			return err
		}
		for _, bus := range out.EventBuses {
			name := aws.ToString(bus.Name)
			if name == snapshot.DefaultBus {
				continue
			}
			err := l.onBus(ctx, name, func(r snapshot.Rule, fills []string) bool { return slices.Contains(fills, r.Name) })
			if err != nil {
				return err
			}
		}
		if aws.ToString(out.NextToken) == "" {
			return nil
		}
		in.NextToken = out.NextToken
	}
}

// targets looks at the targets of a rule. One that is gone by now has none.
func (l *look) targets(ctx context.Context, r *snapshot.Rule) error {
	in := &eventbridge.ListTargetsByRuleInput{Rule: &r.Name, EventBusName: &r.Bus}
	if r.Bus == "" {
		in.EventBusName = nil
	}
	for {
		out, err := l.clients.Rules.ListTargetsByRule(ctx, in)
		var gone *ebtypes.ResourceNotFoundException
		if errors.As(err, &gone) {
			return nil
		}
		if denied, err := l.answered("events:ListTargetsByRule", "rule "+r.Name, err); err != nil || denied {
			return err
		}
		for _, t := range out.Targets {
			r.Targets = append(r.Targets, fromTarget(t))
		}
		r.TargetsKnown = true
		if aws.ToString(out.NextToken) == "" {
			return nil
		}
		in.NextToken = out.NextToken
	}
}

func fromTarget(t ebtypes.Target) snapshot.Target {
	out := snapshot.Target{
		ID: aws.ToString(t.Id), ARN: aws.ToString(t.Arn), RoleARN: aws.ToString(t.RoleArn),
		Input: aws.ToString(t.Input), InputPath: aws.ToString(t.InputPath), Transformed: t.InputTransformer != nil,
	}
	if t.SqsParameters != nil {
		out.GroupID = aws.ToString(t.SqsParameters.MessageGroupId)
	}
	if t.DeadLetterConfig != nil {
		out.DeadLetterARN = aws.ToString(t.DeadLetterConfig.Arn)
	}
	return out
}

// engine asks EventBridge about each rule of the queue and each example of an
// event. It has no side effects (EventBridge API Reference, TestEventPattern).
func (l *look) engine(ctx context.Context) error {
	if l.clients.Engine == nil {
		return nil
	}
	examples := canonicals(l.out.Account, l.out.Region)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(calls)
	for _, r := range l.out.Rules {
		if len(r.To(l.out.Queue)) == 0 {
			continue
		}
		l.target.step("asking EventBridge about the pattern of " + r.Name)
		for _, c := range examples {
			group.Go(func() error { return l.ask(ctx, r, c) })
		}
	}
	return group.Wait()
}

// ask asks about one rule and one example, unless EventBridge has refused to
// answer already.
func (l *look) ask(ctx context.Context, r snapshot.Rule, c canonical) error {
	if l.refused("events:TestEventPattern") {
		return nil
	}
	event := string(c.json)
	out, err := l.clients.Engine.TestEventPattern(ctx, &eventbridge.TestEventPatternInput{EventPattern: &r.Pattern, Event: &event})
	var invalid *ebtypes.InvalidEventPatternException
	if errors.As(err, &invalid) {
		return nil // the pattern's check says so too
	}
	denied, err := l.answered("events:TestEventPattern", "patterns", err)
	if err != nil || denied {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out.Verdicts = append(l.out.Verdicts, snapshot.Verdict{Rule: r.Name, Sample: c.name, Matches: out.Result})
	return nil
}

func (l *look) refused(action string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.out.Denied, func(d snapshot.Denial) bool { return d.Action == action })
}
