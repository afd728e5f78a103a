package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"golang.org/x/sync/errgroup"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/pattern"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
)

// readRules reads the rules that fill the queue, those that should, and all others
// for the services that send notices: a missing rule may be misspelt and have another
// target.
func (l *accountReader) readRules(ctx context.Context) error {
	l.target.report("reading the EventBridge rules")
	if err := l.readBus(ctx, snapshot.DefaultBus, l.isRelevant); err != nil {
		return err
	}
	if err := l.readOtherBuses(ctx); err != nil {
		return err
	}
	l.target.report(fmt.Sprintf("reading the targets of %d rules", len(l.out.Rules)))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxConcurrentCalls)
	for i := range l.out.Rules {
		group.Go(func() error { return l.readTargets(ctx, &l.out.Rules[i]) })
	}
	return group.Wait()
}

// isRelevant reports whether the check needs a rule of the default bus.
func (l *accountReader) isRelevant(r snapshot.Rule, fills []string) bool {
	ours := l.isOfTopic(r.Name) || awssetup.IsMerged(l.target.Desired.Cluster, r.Name) || slices.ContainsFunc(l.target.Desired.Rules, func(w awssetup.Rule) bool { return w.Name == r.Name })
	if ours || slices.Contains(fills, r.Name) || l.brief {
		return ours || slices.Contains(fills, r.Name)
	}
	if mentionsAWS(r.Pattern) {
		return true
	}
	p, err := pattern.Compile([]byte(r.Pattern))
	return err == nil && len(kindsOf(p, sampleEvents(l.out.Account, l.out.Region))) > 0
}

// readBus reads the relevant rules of a bus.
func (l *accountReader) readBus(ctx context.Context, bus string, relevant func(r snapshot.Rule, fills []string) bool) error {
	fills, err := l.rulesTargetingQueue(ctx, bus)
	if err != nil {
		return err
	}
	if bus != snapshot.DefaultBus && len(fills) == 0 {
		return nil
	}
	in := &eventbridge.ListRulesInput{EventBusName: &bus}
	count := 0
	for {
		out, err := l.clients.Rules.ListRules(ctx, in)
		if denied, err := l.recordCall("events:ListRules", "bus "+bus, err); err != nil || denied {
			return err
		}
		count += len(out.Rules)
		for _, r := range out.Rules {
			if rule := fromRule(r); relevant(rule, fills) {
				l.out.Rules = append(l.out.Rules, rule)
			}
		}
		if aws.ToString(out.NextToken) == "" {
			if bus == snapshot.DefaultBus {
				l.out.BusRules = count
			}
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

// rulesTargetingQueue returns the names of the rules of a bus whose target is the
// queue.
func (l *accountReader) rulesTargetingQueue(ctx context.Context, bus string) ([]string, error) {
	var names []string
	in := &eventbridge.ListRuleNamesByTargetInput{TargetArn: &l.out.Queue, EventBusName: &bus}
	for {
		out, err := l.clients.Rules.ListRuleNamesByTarget(ctx, in)
		if denied, err := l.recordCall("events:ListRuleNamesByTarget", "bus "+bus, err); err != nil || denied {
			return nil, err
		}
		names = append(names, out.RuleNames...)
		if aws.ToString(out.NextToken) == "" {
			return names, nil
		}
		in.NextToken = out.NextToken
	}
}

// readOtherBuses reads rules of custom buses that fill the queue. AWS services never
// send to these buses.
func (l *accountReader) readOtherBuses(ctx context.Context) error {
	in := &eventbridge.ListEventBusesInput{}
	for {
		out, err := l.clients.Rules.ListEventBuses(ctx, in)
		if denied, err := l.recordCall("events:ListEventBuses", "the account", err); err != nil || denied {
			return err
		}
		for _, bus := range out.EventBuses {
			name := aws.ToString(bus.Name)
			if name == snapshot.DefaultBus {
				continue
			}
			err := l.readBus(ctx, name, func(r snapshot.Rule, fills []string) bool { return slices.Contains(fills, r.Name) })
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

// readTargets reads the targets of a rule. A deleted rule has none.
func (l *accountReader) readTargets(ctx context.Context, r *snapshot.Rule) error {
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
		if denied, err := l.recordCall("events:ListTargetsByRule", "rule "+r.Name, err); err != nil || denied {
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

// testPatterns runs EventBridge's pattern test for each rule of the queue and each
// example. The test has no side effects (EventBridge API Reference,
// TestEventPattern).
func (l *accountReader) testPatterns(ctx context.Context) error {
	if l.clients.Engine == nil {
		return nil
	}
	examples := sampleEvents(l.out.Account, l.out.Region)
	var feeding []snapshot.Rule // found before the tests add their verdicts to l.out
	for _, r := range l.out.Rules {
		if len(l.out.ThroughTopics(r).To(l.out.Queue)) > 0 {
			feeding = append(feeding, r)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxConcurrentCalls)
	for _, r := range feeding {
		l.target.report("testing with EventBridge the pattern of " + r.Name)
		for _, c := range examples {
			group.Go(func() error { return l.testPattern(ctx, r, c) })
		}
	}
	return group.Wait()
}

// testPattern tests one rule with one example, unless AWS has not answered such a test
// before.
func (l *accountReader) testPattern(ctx context.Context, r snapshot.Rule, c sampleEvent) error {
	if l.isUnknown("events:TestEventPattern") {
		return nil
	}
	event := string(c.json)
	out, err := l.clients.Engine.TestEventPattern(ctx, &eventbridge.TestEventPatternInput{EventPattern: &r.Pattern, Event: &event})
	var invalid *ebtypes.InvalidEventPatternException
	if errors.As(err, &invalid) {
		return nil // checkPatterns reports it
	}
	denied, err := l.recordCall("events:TestEventPattern", "patterns", err)
	if err != nil || denied {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out.Verdicts = append(l.out.Verdicts, snapshot.Verdict{Rule: r.Name, Sample: c.name, Matches: out.Result})
	return nil
}

func (l *accountReader) isUnknown(action string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.out.Denied, func(d snapshot.Denial) bool { return d.Action == action })
}
