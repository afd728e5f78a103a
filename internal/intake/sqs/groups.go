package sqs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

const (
	// firstGroupRetry and longestGroupRetry bound how long a message is hidden while EC2
	// cannot be asked for its instances. Early retries are fast: a Capacity Block's warning
	// leaves ten minutes. Later ones are slow, so that an outage of half an hour does not
	// use up thirty receives.
	firstGroupRetry   = 10 * time.Second
	longestGroupRetry = 2 * time.Minute
)

// group is a notice of instances that EC2 must list.
type group struct {
	// filter and value select them (EC2 API, DescribeInstances).
	filter, value string
	// notice is the notice of each of them. If it has an instance id, it is a notice of that
	// instance alone, provided that EC2 lists it.
	notice notice.Notice
}

// Filters of DescribeInstances; that of Auto Scaling groups is apicall.FilterGroup.
const (
	filterReservation = "capacity-reservation-id"
	filterHost        = "host-id"
)

// resolve returns the notices of a message, including one for each instance of the groups
// that it names. If it cannot resolve them all, or not yet, the message is also hidden.
func (s *Source) resolve(ctx context.Context, m *message) ([]notice.Notice, []disposition) {
	notices := slices.Clone(m.notices)
	var errs []error
	var waits []disposition
	for filter, values := range valuesByFilter(m.groups) {
		if s.o.Instances == nil {
			s.logThrottled(ctx, "no resolver", "ignored notice of a group of instances", "filter", filter, "values", quote(strings.Join(values, " ")),
				"advice", "enable the ec2 source")
			continue
		}
		found, err := s.o.Instances(ctx, filter, values)
		if err != nil {
			errs = append(errs, fmt.Errorf("instances with %s %s: %w", filter, quote(strings.Join(values, " ")), err))
			continue
		}
		for _, g := range m.groups {
			if g.filter == filter {
				listed := g.of(found[g.value])
				notices = append(notices, listed...)
				waits = append(waits, s.awaitInstances(ctx, m.Message, &g, len(listed))...)
			}
		}
	}
	if len(errs) == 0 {
		return notices, waits
	}
	s.logThrottled(ctx, "unresolved", "cannot find the instances of a group, retrying", "error", errors.Join(errs...).Error(),
		"advice", "allow ec2:DescribeInstances")
	return notices, []disposition{{outcome: outcomeFailed, retryIn: retryAfter(m.Message, firstGroupRetry, longestGroupRetry)}}
}

// valuesByFilter returns the distinct values of each filter, so that one request finds the instances
// of all of them.
func valuesByFilter(groups []group) map[string][]string {
	all := map[string][]string{}
	for _, g := range groups {
		if !slices.Contains(all[g.filter], g.value) {
			all[g.filter] = append(all[g.filter], g.value)
		}
	}
	return all
}

// of returns the notices of the group's instances.
func (g *group) of(ids []string) (notices []notice.Notice) {
	for _, id := range ids {
		if only := g.notice.InstanceID; only == "" || only == id {
			n := g.notice
			n.InstanceID = id
			notices = append(notices, n)
		}
	}
	return notices
}

// awaitInstances hides the message of a group whose instances EC2 does not list yet, or gives the group
// up. EC2's answers are eventually consistent: one can lack new instances (EC2 Developer Guide, "Eventual
// consistency in the Amazon EC2 API"). So a first answer is never complete, and an empty one is repeated.
// For a named instance, two answers are enough: CloudTrail's records arrive minutes after the call.
func (s *Source) awaitInstances(ctx context.Context, m *types.Message, g *group, listed int) []disposition {
	isNamed := g.notice.InstanceID != ""
	switch {
	case listed > 0 && (isNamed || receives(m) > 1):
		return nil
	case listed == 0 && (isNamed && receives(m) > 1 || g.notice.Withdrawn || s.isGivenUp(m, &g.notice)):
		s.logThrottled(ctx, "no instances "+g.notice.Kind, "dropped notice of a group in which EC2 lists no such instance",
			"filter", g.filter, "value", quote(g.value), "instance", g.notice.InstanceID, "kind", g.notice.Kind, "notice", g.notice.ID, "receives", receives(m),
			"advice", "nothing, if the group has none; else see that lifeboatd's credentials are of the group's account and region")
		return nil
	}
	return []disposition{hideUnknown(m, &g.notice)}
}

// recordOthers makes durable the parts of a message that are no notices of an instance.
func (s *Source) recordOthers(ctx context.Context, d *decoded) (parts []disposition) {
	for _, r := range d.reports {
		parts = append(parts, s.report(ctx, r))
	}
	if d.probe != nil {
		parts = append(parts, s.answer(ctx, d.probe))
	}
	return parts
}

// report makes a report durable.
func (s *Source) report(ctx context.Context, r intake.Report) disposition {
	outcome, err := s.recordWithRetry(ctx, false, func(ctx context.Context) (intake.Outcome, error) { return s.recorder.Report(ctx, r) })
	if err != nil {
		return disposition{outcome: outcomeFailed}
	}
	return disposition{outcome: string(outcome), ack: outcome.Final()}
}

// answer tries once to answer a probe. Its prober reports a lost one and sends others, so that a
// retry is not worth the receives.
func (s *Source) answer(ctx context.Context, p *intake.Probe) disposition {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	if err := s.recorder.Answer(ctx, *p); err != nil {
		s.logThrottled(ctx, "unanswered", "cannot answer probe, dropped it", "error", err.Error(), "advice", "run lifeboat doctor --probe")
	}
	return disposition{outcome: outcomeProbe, ack: true}
}
