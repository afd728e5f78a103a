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

	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/drill"
	"github.com/lifeboat-dev/lifeboat/internal/finding"
	"github.com/lifeboat-dev/lifeboat/internal/probe"
	"github.com/lifeboat-dev/lifeboat/internal/wiring"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/diagnose"
)

// The ids of what a probe finds.
const (
	probeUnanswered = "probe-unanswered"
	probeNotSent    = "probe-not-sent"
	probeNotRead    = "probe-not-read"
)

// probe sends a private event through each rule and waits for lifeboatd to say
// that it came. It prints how long each took; what did not come is a finding.
func (d *examination) probe(ctx context.Context) ([]finding.Finding, error) {
	if d.kube == nil {
		return nil, errors.New("a probe needs the cluster: lifeboatd answers it there; check --kubeconfig and --context")
	}
	cfg, sandbox, err := d.awsConfig(ctx)
	if err != nil {
		return nil, err
	}
	cfg.Region = cmp.Or(d.flags.region, diagnose.RegionOfQueue(cmp.Or(d.flags.queueURL, sandbox.queueURL)), cfg.Region)
	if cfg.Region == "" {
		return nil, awsError{&aws.MissingRegionError{}}
	}
	place, err := drill.Locate(ctx, sts.NewFromConfig(cfg), cfg.Region)
	if err != nil {
		return nil, awsError{err}
	}
	name := cmp.Or(d.flags.cluster, d.kube.name)
	d.progress.Step("sending a probe through each rule")
	results := probe.New(probe.Options{Events: eventbridge.NewFromConfig(cfg), Kube: d.kube, Cluster: name}).
		Run(ctx, wiring.Desired(name, place.Account, place.Region).Rules)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	d.showProbes(results)
	return judgeProbes(results, place, name), nil
}

// showProbes prints how each probe fared.
func (d *examination) showProbes(results []probe.Result) {
	if d.isJSON() {
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

// judgeProbes makes findings of what did not come back. Where nothing did, that
// is one finding: it is not the rules.
func judgeProbes(results []probe.Result, place drill.Place, cluster string) []finding.Finding {
	var all []finding.Finding
	silent := 0
	for _, r := range results {
		switch r.Verdict {
		case probe.Answered:
		case probe.Unanswered:
			silent++
			all = append(all, finding.Finding{
				Severity: finding.Broken, ID: probeUnanswered, Object: "rule " + r.Rule, Kinds: r.Kinds,
				Problem: "a probe was sent through it, and " + r.Problem + ": what AWS sends this way is not heard either",
				Fix:     "lifeboat wire apply --cluster " + cluster + ", which puts rule, target and policy right; what else is found about the rule says which of them it is",
			})
		case probe.Refused:
			all = append(all, finding.Finding{
				Severity: finding.Unknown, ID: probeNotSent, Object: "rule " + r.Rule, Kinds: r.Kinds, Problem: "the probe could not be sent: " + r.Problem,
				Fix: fmt.Sprintf("allow events:PutEvents on arn:%s:events:%s:%s:event-bus/default", place.Partition, place.Region, place.Account),
			})
		case probe.Unheard:
			all = append(all, finding.Finding{
				Severity: finding.Unknown, ID: probeNotRead, Object: "rule " + r.Rule, Kinds: r.Kinds, Problem: "the answer could not be read: " + r.Problem,
				Fix: "allow get, list and watch of leases.coordination.k8s.io in namespace lifeboat-system",
			})
		}
	}
	return together(all, silent == len(results), cluster)
}

// together makes one finding of many that say the same of every rule.
func together(all []finding.Finding, nothing bool, cluster string) []finding.Finding {
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
	case nothing:
		first.Problem = "no probe came back at all: lifeboatd does not run, or does not read the queue that the rules fill, or the queue's policy lets none of them in; " +
			"rules that were not made by lifeboat wire pass no probes on"
		first.Fix = "kubectl -n lifeboat-system logs deployment/lifeboat-controller; then lifeboat wire plan --cluster " + cluster
	case first.ID == probeUnanswered:
		return all // each rule is a case of its own
	}
	first.Object, first.Kinds = "every rule", nil
	return []finding.Finding{first}
}
