package cloudtrail

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awstrail "github.com/aws/aws-sdk-go-v2/service/cloudtrail"
	"github.com/aws/aws-sdk-go-v2/service/cloudtrail/types"

	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
	"github.com/lifeboat-dev/lifeboat/internal/intake/apicall"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

// Permission is the IAM action of the call. It supports no resource (Service Authorization
// Reference, "AWS CloudTrail").
const Permission = "cloudtrail:LookupEvents"

const (
	// callTime is the timeout of one call; the SDK sets none.
	callTime = 20 * time.Second
	// pagePause is the time between two pages. All callers of an account and region share two
	// requests a second (AWS CloudTrail API Reference, LookupEvents).
	pagePause = time.Second
	// maxPages of 50 calls each are read. The latest are first, so the oldest are missing.
	maxPages = 30
)

// API is the operation of CloudTrail that the source uses. It is a function value instead of the
// SDK's client, so that the linker drops the other methods.
type API struct {
	Lookup func(context.Context, *awstrail.LookupEventsInput, ...func(*awstrail.Options)) (*awstrail.LookupEventsOutput, error)
}

// NewAPI returns the real API.
func NewAPI(config aws.Config) API {
	return API{Lookup: awstrail.NewFromConfig(awshttp.WithTimeout(config, callTime)).LookupEvents}
}

// Instances lists the instances that match a filter, by value of the filter: the method
// InstancesWith of ec2.API.
type Instances func(ctx context.Context, filter string, values []string) (map[string][]string, error)

// refused is a refused call in the event history.
type refused struct {
	apicall.Refusal
	notice notice.Notice
}

// Refused returns the notices of refused calls since a time, the latest first, for which isOurs is
// true. A refused call counts only if EC2 lists the instance in the group of the call. The notices
// count even with an error.
func (a API) Refused(ctx context.Context, since time.Time, isOurs func(apicall.Refusal) (bool, error), instances Instances) ([]notice.Notice, error) {
	calls, err := a.calls(ctx, since)
	var groups []string
	var ours []refused
	for _, c := range calls {
		is, oursErr := isOurs(c.Refusal)
		if oursErr != nil {
			return nil, errors.Join(err, oursErr)
		}
		if !is {
			continue
		}
		ours = append(ours, c)
		if !slices.Contains(groups, c.Group) {
			groups = append(groups, c.Group)
		}
	}
	if len(groups) == 0 {
		return nil, err
	}
	members, listErr := instances(ctx, apicall.FilterGroup, groups)
	if listErr != nil {
		return nil, errors.Join(err, listErr)
	}
	var notices []notice.Notice
	for _, c := range ours {
		if slices.Contains(members[c.Group], c.Instance) {
			notices = append(notices, c.notice)
		}
	}
	return notices, err
}

// calls reads the refused calls since a time. Those that were read before an error are returned
// with it. A record that cannot be read is an error of its own, and hides no other.
func (a API) calls(ctx context.Context, since time.Time) (all []refused, err error) {
	in := &awstrail.LookupEventsInput{
		StartTime:        &since,
		LookupAttributes: []types.LookupAttribute{{AttributeKey: types.LookupAttributeKeyEventName, AttributeValue: aws.String(apicall.Name)}},
	}
	var unreadable error
	for range maxPages {
		out, err := a.Lookup(ctx, in)
		if err != nil {
			return all, poll.Needs(Permission, fmt.Errorf("reading CloudTrail's event history: %w", err))
		}
		for i := range out.Events {
			n, refusal, known, err := apicall.Read(aws.ToString(out.Events[i].CloudTrailEvent))
			if err != nil && unreadable == nil {
				unreadable = fmt.Errorf("event %s of CloudTrail's event history: %w", aws.ToString(out.Events[i].EventId), err)
			}
			if known {
				all = append(all, refused{refusal, n})
			}
		}
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			return all, unreadable
		}
		if !sleep.For(ctx, pagePause) {
			return all, ctx.Err()
		}
	}
	return all, errors.Join(unreadable, fmt.Errorf("reading CloudTrail's event history: more than %d pages since %s", maxPages, poll.Moment(since)))
}
