package drill

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// idsPerCall is the number of instances per call. EC2 accepts a thousand, and
// recommends smaller batches (EC2 API Reference, "DescribeInstances").
const idsPerCall = 200

// describeTargets returns the targets' instances, by id.
func describeTargets(ctx context.Context, describe DescribeInstances, targets []Target) (map[string]types.Instance, error) {
	found := map[string]types.Instance{}
	for batch := range slices.Chunk(targets, idsPerCall) {
		ids := make([]string, 0, len(batch))
		for _, t := range batch {
			ids = append(ids, t.InstanceID)
		}
		out, err := describe(ctx, &ec2.DescribeInstancesInput{InstanceIds: ids})
		if err != nil {
			return nil, describeError(err)
		}
		for _, r := range out.Reservations {
			for _, i := range r.Instances {
				found[aws.ToString(i.InstanceId)] = i
			}
		}
	}
	return found, nil
}

// Spot returns the candidates that are running spot instances.
func Spot(ctx context.Context, describe DescribeInstances, candidates []Target) ([]Target, error) {
	found, err := describeTargets(ctx, describe, candidates)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(candidates), func(t Target) bool { return notInterruptible(found, t) != "" }), nil
}

// NotReservedError names an instance that has no capacity reservation.
type NotReservedError struct{ Target Target }

// Error names the instance.
func (e *NotReservedError) Error() string {
	return fmt.Sprintf("%s does not run in a Capacity Block, so no block can end; name an instance that does", e.Target)
}

// InBlocks returns every instance in the Capacity Blocks of the targets, with its
// block. The notice of a block's end names only the block, so it concerns all its
// instances. The error can be a *NotReservedError.
func InBlocks(ctx context.Context, describe DescribeInstances, targets []Target) ([]Target, error) {
	found, err := describeTargets(ctx, describe, targets)
	if err != nil {
		return nil, err
	}
	var blocks []string
	for _, t := range targets {
		i := found[t.InstanceID]
		block := aws.ToString(i.CapacityReservationId)
		if block == "" {
			return nil, &NotReservedError{Target: t}
		}
		if !slices.Contains(blocks, block) {
			blocks = append(blocks, block)
		}
	}
	var all []Target
	for _, block := range blocks {
		inside, err := inBlock(ctx, describe, block)
		if err != nil {
			return nil, err
		}
		all = append(all, inside...)
	}
	return all, nil
}

func inBlock(ctx context.Context, describe DescribeInstances, block string) ([]Target, error) {
	var all []Target
	in := &ec2.DescribeInstancesInput{Filters: []types.Filter{
		{Name: aws.String("capacity-reservation-id"), Values: []string{block}},
		{Name: aws.String("instance-state-name"), Values: []string{string(types.InstanceStateNameRunning)}},
	}}
	for {
		out, err := describe(ctx, in)
		if err != nil {
			return nil, describeError(err)
		}
		for _, r := range out.Reservations {
			for _, i := range r.Instances {
				t := Target{InstanceID: aws.ToString(i.InstanceId), Reservation: block}
				if i.Placement != nil {
					t.Zone = aws.ToString(i.Placement.AvailabilityZone)
				}
				all = append(all, t)
			}
		}
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			return all, nil
		}
	}
}
