package sqs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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

// group is a notice of instances that the message does not list.
type group struct {
	// filter and value select them (EC2 API, DescribeInstances).
	filter, value string
	// notice is the notice of each of them, without the instance id.
	notice notice.Notice
}

// Filters of DescribeInstances.
const (
	filterReservation = "capacity-reservation-id"
	filterHost        = "host-id"
)

// resolve returns the notices of a message, including one for each instance of the groups
// that it names. If it cannot resolve them all, the message is also hidden.
func (s *Source) resolve(ctx context.Context, m *message) ([]notice.Notice, []disposition) {
	notices := slices.Clone(m.notices)
	var errs []error
	for _, g := range m.groups {
		if s.o.Instances == nil {
			s.logThrottled(ctx, "no resolver", "ignored notice of a group of instances", "filter", g.filter, "value", g.value,
				"advice", "enable the ec2 source")
			continue
		}
		ids, err := s.o.Instances(ctx, g.filter, g.value)
		if err != nil {
			errs = append(errs, fmt.Errorf("instances with %s %s: %w", g.filter, g.value, err))
			continue
		}
		for _, id := range ids {
			n := g.notice
			n.InstanceID = id
			notices = append(notices, n)
		}
	}
	if len(errs) == 0 {
		return notices, nil
	}
	s.logThrottled(ctx, "unresolved", "cannot find the instances of a group, retrying", "error", errors.Join(errs...).Error(),
		"advice", "allow ec2:DescribeInstances")
	return notices, []disposition{{outcome: outcomeFailed, retryIn: retryAfter(m.Message, firstGroupRetry, longestGroupRetry)}}
}

// recordOthers makes durable the parts of a message that are no notices of an instance.
func (s *Source) recordOthers(ctx context.Context, d *decoded) (parts []disposition) {
	for _, r := range d.reports {
		parts = append(parts, s.recordOther(ctx, func(ctx context.Context) (intake.Outcome, error) { return s.recorder.Report(ctx, r) }))
	}
	if d.probe != nil {
		parts = append(parts, s.recordOther(ctx, func(ctx context.Context) (intake.Outcome, error) {
			return outcomeProbe, s.recorder.Answer(ctx, *d.probe)
		}))
	}
	return parts
}

// recordOther makes durable a part of a message that is not a notice of an instance.
func (s *Source) recordOther(ctx context.Context, write func(context.Context) (intake.Outcome, error)) disposition {
	outcome, err := s.recordWithRetry(ctx, false, write)
	switch {
	case err != nil:
		return disposition{outcome: outcomeFailed}
	case outcome == outcomeProbe:
		return disposition{outcome: outcomeProbe, ack: true}
	}
	return disposition{outcome: string(outcome), ack: outcome.Final()}
}
