package drill

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// idsPerCall is how many instances EC2 is asked about at once. It takes a
// thousand, and advises to ask in smaller portions (EC2 API Reference,
// "DescribeInstances").
const idsPerCall = 200

// look asks EC2 about the targets' instances, by id.
func look(ctx context.Context, describe DescribeInstances, targets []Target) (map[string]types.Instance, error) {
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

// Spot returns those of the candidates that are running spot instances.
func Spot(ctx context.Context, describe DescribeInstances, candidates []Target) ([]Target, error) {
	found, err := look(ctx, describe, candidates)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(candidates), func(t Target) bool { return whyNot(found, t) != "" }), nil
}

// NotReservedError names an instance that runs in no capacity reservation.
type NotReservedError struct{ Target Target }

// Error says so.
func (e *NotReservedError) Error() string {
	return fmt.Sprintf("%s runs in no Capacity Block, so none can end", e.Target)
}

// InBlocks returns every instance that runs in the Capacity Blocks of the
// targets, with its block: what tells of a block's end names the block, and so
// is about all of them. The error may be a *NotReservedError.
func InBlocks(ctx context.Context, describe DescribeInstances, targets []Target) ([]Target, error) {
	found, err := look(ctx, describe, targets)
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
