package sqs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// resolve returns the notices of a message, including one for each instance of the groups
// that it names. On an error it returns those that it could resolve.
func (s *Source) resolve(ctx context.Context, d *decoded) ([]notice.Notice, error) {
	notices := slices.Clone(d.notices)
	var errs []error
	for _, g := range d.groups {
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
	return notices, errors.Join(errs...)
}
