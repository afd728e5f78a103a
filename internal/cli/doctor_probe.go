package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/probe"
	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/doctor"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/drill"
)

// IDs of the findings of a probe.
const (
	probeUnanswered = "probe-unanswered"
	probeNotSent    = "probe-not-sent"
	probeNotRead    = "probe-not-read"
)

// probe sends a test event through each rule and waits until lifeboatd confirms
// it. It prints the time that each took. Each event without a confirmation is a
// finding.
func (d *doctorRun) probe(ctx context.Context) ([]finding.Finding, error) {
	if d.kube == nil {
		return nil, errors.New("a probe needs the cluster, because lifeboatd answers it there: check --kubeconfig and --context")
	}
	cfg, sandbox, err := d.awsConfig(ctx)
	if err != nil {
		return nil, err
	}
	cfg.Region = cmp.Or(d.flags.region, doctor.RegionOfQueue(cmp.Or(d.flags.queueURL, sandbox.queueURL)), cfg.Region)
	if cfg.Region == "" {
		return nil, awsError{&aws.MissingRegionError{}}
	}
	place, err := drill.Locate(ctx, sts.NewFromConfig(cfg), cfg.Region)
	if err != nil {
		return nil, awsError{err}
	}
	name := cmp.Or(d.flags.cluster, d.kube.name)
	d.progress.Step("sending a probe through each rule")
	events := eventbridge.NewFromConfig(cfg)
	results := probe.New(probe.Options{Events: events, Kube: d.kube, Cluster: name}).
		Run(ctx, probedRules(ctx, events, awssetup.Desired(name, place.Account, place.Region)))
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	d.showProbes(results)
	return probeFindings(results, place, name), nil
}

// probedRules returns the rules to probe: one for each role. If the rules in the account are merged,
// a name says which rule delivers the role.
func probedRules(ctx context.Context, events awssetup.RuleReader, w awssetup.Wiring) []awssetup.Rule {
	prefix := awssetup.RuleName(w.Cluster, awssetup.RoleEC2)
	found, err := events.ListRules(ctx, &eventbridge.ListRulesInput{NamePrefix: &prefix})
	if err != nil || len(found.Rules) == 0 {
		return w.Rules // without the permission, the names are those of separate rules
	}
	merged, err := w.Merged()
	if err != nil {
		return w.Rules
	}
	for i, r := range w.Rules {
		if by, ok := merged.Delivers(r.Role); ok && by.Role != r.Role {
			w.Rules[i].Name = by.Name + " (" + r.Role + ")"
		}
	}
	return w.Rules
}

// showProbes prints the result of each probe.
func (d *doctorRun) showProbes(results []probe.Result) {
	if d.session.flags.Output != command.OutputText {
		return
	}
	table := terminal.NewTable("RULE", "PROBE", "SECONDS")
	for _, r := range results {
		style, seconds := terminal.Bad, ""
		if r.Verdict == probe.Answered {
			style, seconds = terminal.Good, strconv.FormatFloat(r.Seconds, 'f', 2, 64)
		}
		table.Row(terminal.Cell{Text: r.Rule}, terminal.Cell{Text: string(r.Verdict), Style: style}, terminal.Cell{Text: seconds})
	}
	d.progress.Idle()
	table.Write(d.out)
	d.out.Printf("\n")
}

// probeFindings turns missing confirmations into findings. If none arrived, the
// rules are not the cause, so it returns one finding.
func probeFindings(results []probe.Result, place drill.Place, cluster string) []finding.Finding {
	var all []finding.Finding
	silent := 0
	for _, r := range results {
		switch r.Verdict {
		case probe.Answered:
		case probe.Unanswered:
			silent++
			all = append(all, finding.Finding{
				Severity: finding.Broken, ID: probeUnanswered, Object: "rule " + r.Rule, Kinds: r.Kinds,
				Problem: "a probe was sent through it, but " + r.Problem + ": notices from AWS do not arrive this way either",
				Fix:     "lifeboat aws setup --cluster " + cluster + " corrects rule, target and policy; the other findings about the rule say which of them is wrong",
			})
		case probe.Refused:
			all = append(all, finding.Finding{
				Severity: finding.Unknown, ID: probeNotSent, Object: "rule " + r.Rule, Kinds: r.Kinds, Problem: "the probe could not be sent: " + r.Problem,
				Fix: fmt.Sprintf("allow events:PutEvents on arn:%s:events:%s:%s:event-bus/default", place.Partition, place.Region, place.Account),
			})
		case probe.Unheard:
			all = append(all, finding.Finding{
				Severity: finding.Unknown, ID: probeNotRead, Object: "rule " + r.Rule, Kinds: r.Kinds, Problem: "the answer could not be read: " + r.Problem,
				Fix: "allow create, get, list, patch and watch of leases.coordination.k8s.io in namespace lifeboat-system",
			})
		}
	}
	return mergeFindings(all, silent == len(results), cluster)
}

// mergeFindings merges findings that say the same about every rule.
func mergeFindings(all []finding.Finding, noneAnswered bool, cluster string) []finding.Finding {
	if len(all) < 2 {
		return all
	}
	first := all[0]
	for _, f := range all {
		if f.ID != first.ID {
			return all
		}
	}
	switch {
	case noneAnswered:
		first.Problem = "no probe was answered: lifeboatd does not run, or does not read the queue that the rules send to, or the queue's policy denies all of them; " +
			"rules that lifeboat aws did not create do not forward probes"
		first.Fix = "kubectl -n lifeboat-system logs deployment/lifeboat-controller; then lifeboat aws plan --cluster " + cluster
	case first.ID == probeUnanswered:
		return all // each rule has its own cause
	}
	first.Object, first.Kinds = "every rule", nil
	return []finding.Finding{first}
}
