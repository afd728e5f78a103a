package ec2

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/lifeboat-dev/lifeboat/internal/awshttp"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
)

// What is used of EC2, and the IAM actions for it.
const (
	permitSpotRequests = "ec2:DescribeSpotInstanceRequests"
	permitStatus       = "ec2:DescribeInstanceStatus"
	permitInstances    = "ec2:DescribeInstances"
)

const (
	// callTime is what one call may take; the SDK sets no limit.
	callTime = 20 * time.Second
	// pageSize is the most rows that these calls return at once (Amazon EC2 API
	// Reference).
	pageSize = 1000
	// maxPages keeps a reply that never ends from being read for ever.
	maxPages = 200
	// idsAtOnce is the most instances that a call may name.
	idsAtOnce = 100
)

// API is what is used of EC2. It holds functions and not the SDK's client:
// where a client of EC2 is held in an interface, the linker keeps all of its
// several hundred methods, which are 30 MB.
type API struct {
	SpotRequests func(context.Context, *awsec2.DescribeSpotInstanceRequestsInput, ...func(*awsec2.Options)) (*awsec2.DescribeSpotInstanceRequestsOutput, error)
	Status       func(context.Context, *awsec2.DescribeInstanceStatusInput, ...func(*awsec2.Options)) (*awsec2.DescribeInstanceStatusOutput, error)
	Instances    func(context.Context, *awsec2.DescribeInstancesInput, ...func(*awsec2.Options)) (*awsec2.DescribeInstancesOutput, error)
}

// NewAPI makes the real one. AWS_ENDPOINT_URL_EC2 or AWS_ENDPOINT_URL say where
// EC2 is, as for every AWS SDK. Calls that are throttled are tried three times
// in all, with the SDK's back-off; then the source asks less often.
func NewAPI(config aws.Config) API {
	client := awsec2.NewFromConfig(awshttp.WithTimeout(config, callTime), func(o *awsec2.Options) {
		o.Retryer = retry.NewStandard(func(r *retry.StandardOptions) {
			r.MaxAttempts, r.MaxBackoff = 3, 5*time.Second
		})
	})
	return API{SpotRequests: client.DescribeSpotInstanceRequests, Status: client.DescribeInstanceStatus, Instances: client.DescribeInstances}
}

// InstancesWith returns the ids of the instances that are not stopped or
// terminated and for which a filter of DescribeInstances, such as
// capacity-reservation-id or host-id, has the value. It needs the IAM action
// ec2:DescribeInstances.
func (a API) InstancesWith(ctx context.Context, filter, value string) ([]string, error) {
	var ids []string
	in := &awsec2.DescribeInstancesInput{
		MaxResults: aws.Int32(pageSize),
		Filters: []types.Filter{
			where(filter, value), where("instance-state-name", "pending", "running", "shutting-down", "stopping"),
		},
	}
	for range maxPages {
		out, err := a.Instances(ctx, in)
		if err != nil {
			return nil, poll.Needs(permitInstances, fmt.Errorf("finding the instances with %s %s: %w", filter, value, err))
		}
		for _, reservation := range out.Reservations {
			for i := range reservation.Instances {
				ids = append(ids, aws.ToString(reservation.Instances[i].InstanceId))
			}
		}
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			return ids, nil
		}
	}
	return nil, fmt.Errorf("finding the instances with %s %s: more than %d pages", filter, value, maxPages)
}

// spotRequests returns the spot requests whose status EC2 is about to act on.
// What was read before an error is returned with it.
func (a API) spotRequests(ctx context.Context) ([]types.SpotInstanceRequest, error) {
	var rows []types.SpotInstanceRequest
	in := &awsec2.DescribeSpotInstanceRequestsInput{
		MaxResults: aws.Int32(pageSize),
		Filters:    []types.Filter{where("status-code", "marked-for-termination", "marked-for-stop", marked+"*")},
	}
	for range maxPages {
		out, err := a.SpotRequests(ctx, in)
		if err != nil {
			return rows, fmt.Errorf("reading spot requests: %w", err)
		}
		rows = append(rows, out.SpotInstanceRequests...)
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			return rows, nil
		}
	}
	return rows, fmt.Errorf("reading spot requests: more than %d pages", maxPages)
}

// status returns the status of the running instances that pass the filter.
// Filters of several names would all have to match, so there is one. What was
// read before an error is returned with it.
func (a API) status(ctx context.Context, filter types.Filter) ([]types.InstanceStatus, error) {
	var rows []types.InstanceStatus
	in := &awsec2.DescribeInstanceStatusInput{MaxResults: aws.Int32(pageSize), Filters: []types.Filter{filter}}
	for range maxPages {
		out, err := a.Status(ctx, in)
		if err != nil {
			return rows, fmt.Errorf("reading instance status by %s: %w", aws.ToString(filter.Name), err)
		}
		rows = append(rows, out.InstanceStatuses...)
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			return rows, nil
		}
	}
	return rows, fmt.Errorf("reading instance status by %s: more than %d pages", aws.ToString(filter.Name), maxPages)
}

// statusOf returns the status of those of these instances that run. One that
// EC2 does not know any more fails the whole call.
func (a API) statusOf(ctx context.Context, ids []string) ([]types.InstanceStatus, error) {
	out, err := a.Status(ctx, &awsec2.DescribeInstanceStatusInput{InstanceIds: ids})
	if err != nil {
		return nil, fmt.Errorf("reading the status of %d instances: %w", len(ids), err)
	}
	return out.InstanceStatuses, nil
}

func where(name string, values ...string) types.Filter {
	return types.Filter{Name: aws.String(name), Values: values}
}
