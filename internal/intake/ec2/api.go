package ec2

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
)

// The IAM actions of the calls.
const (
	permitSpotRequests = "ec2:DescribeSpotInstanceRequests"
	permitStatus       = "ec2:DescribeInstanceStatus"
	permitInstances    = "ec2:DescribeInstances"
)

const (
	// callTime is the timeout of one call; the SDK sets none.
	callTime = 20 * time.Second
	// pageSize is the largest page of these calls (Amazon EC2 API Reference).
	pageSize = 1000
	// maxPages bounds a response that never ends.
	maxPages = 200
	// idsAtOnce is how many instances a call may name.
	idsAtOnce = 100
	// valuesAtOnce is how many values a filter may have (Amazon EC2 API Reference,
	// Filter).
	valuesAtOnce = 200
)

// API are the operations of EC2 that the source uses. They are function values
// instead of the SDK's client: with a client in an interface the linker keeps
// several hundred methods (30 MB).
type API struct {
	SpotRequests func(context.Context, *awsec2.DescribeSpotInstanceRequestsInput, ...func(*awsec2.Options)) (*awsec2.DescribeSpotInstanceRequestsOutput, error)
	Status       func(context.Context, *awsec2.DescribeInstanceStatusInput, ...func(*awsec2.Options)) (*awsec2.DescribeInstanceStatusOutput, error)
	Instances    func(context.Context, *awsec2.DescribeInstancesInput, ...func(*awsec2.Options)) (*awsec2.DescribeInstancesOutput, error)
}

// NewAPI returns the real API. AWS_ENDPOINT_URL_EC2 or AWS_ENDPOINT_URL
// override the endpoint, as for every AWS SDK. Throttled calls are tried three
// times in total with the SDK's backoff; then the source polls less often.
func NewAPI(config aws.Config) API {
	client := awsec2.NewFromConfig(awshttp.WithTimeout(config, callTime), func(o *awsec2.Options) {
		o.Retryer = retry.NewStandard(func(r *retry.StandardOptions) {
			r.MaxAttempts, r.MaxBackoff = 3, 5*time.Second
		})
	})
	return API{SpotRequests: client.DescribeSpotInstanceRequests, Status: client.DescribeInstanceStatus, Instances: client.DescribeInstances}
}

// attributes are what the filters of InstancesWith match.
var attributes = map[string]func(*types.Instance) string{
	"capacity-reservation-id": func(in *types.Instance) string { return aws.ToString(in.CapacityReservationId) },
	"host-id": func(in *types.Instance) string {
		if in.Placement == nil {
			return ""
		}
		return aws.ToString(in.Placement.HostId)
	},
	"tag:aws:autoscaling:groupName": func(in *types.Instance) string {
		for _, tag := range in.Tags {
			if aws.ToString(tag.Key) == "aws:autoscaling:groupName" {
				return aws.ToString(tag.Value)
			}
		}
		return ""
	},
}

// InstancesWith returns the ids of the instances that are not stopped or
// terminated and match a filter of DescribeInstances, by value of the filter. It
// knows the filters of attributes. One call has up to 200 values. It needs the IAM
// action ec2:DescribeInstances.
func (a API) InstancesWith(ctx context.Context, filter string, values []string) (map[string][]string, error) {
	attribute := attributes[filter]
	if attribute == nil {
		return nil, fmt.Errorf("finding instances: unknown filter %s", filter)
	}
	ids := map[string][]string{}
	for chunk := range slices.Chunk(values, valuesAtOnce) {
		for page, err := range a.pagesWith(ctx, where(filter, chunk...)) {
			if err != nil {
				return nil, poll.Needs(permitInstances, fmt.Errorf("finding the instances with %s %s: %w", filter, chunk[0], err))
			}
			for _, reservation := range page.Reservations {
				for i := range reservation.Instances {
					in := &reservation.Instances[i]
					ids[attribute(in)] = append(ids[attribute(in)], aws.ToString(in.InstanceId))
				}
			}
		}
	}
	return ids, nil
}

// pagesWith reads the instances that are not stopped or terminated and match a
// filter.
func (a API) pagesWith(ctx context.Context, filter types.Filter) iter.Seq2[*awsec2.DescribeInstancesOutput, error] {
	return func(yield func(*awsec2.DescribeInstancesOutput, error) bool) {
		in := &awsec2.DescribeInstancesInput{
			MaxResults: aws.Int32(pageSize),
			Filters:    []types.Filter{filter, where("instance-state-name", "pending", "running", "shutting-down", "stopping")},
		}
		for range maxPages {
			out, err := a.Instances(ctx, in)
			if !yield(out, err) || err != nil {
				return
			}
			if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
				return
			}
		}
		yield(nil, fmt.Errorf("more than %d pages", maxPages))
	}
}

// spotRequests returns the spot requests that EC2 is about to act on. Rows that
// were read before an error are returned with it.
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

// status returns the status of the running instances that match the filter. It
// takes one filter, because several filters are combined with AND. Rows that
// were read before an error are returned with it.
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

// statusOf returns the status of those of the instances that run. An unknown id
// fails the whole call.
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
