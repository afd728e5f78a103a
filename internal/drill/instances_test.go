package drill

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
)

// describing answers by id, or by the filter for a capacity reservation, with one
// instance per page.
func describing(all ...types.Instance) DescribeInstances {
	return func(_ context.Context, in *ec2.DescribeInstancesInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
		var found []types.Instance
		for _, i := range all {
			for _, id := range in.InstanceIds {
				if id == *i.InstanceId {
					found = append(found, i)
				}
			}
			for _, f := range in.Filters {
				if *f.Name == "capacity-reservation-id" && f.Values[0] == aws.ToString(i.CapacityReservationId) {
					found = append(found, i)
				}
			}
		}
		out := &ec2.DescribeInstancesOutput{}
		if len(in.Filters) > 0 && len(found) > 1 && in.NextToken == nil {
			found, out.NextToken = found[:1], aws.String("more")
		} else if in.NextToken != nil {
			found = found[1:]
		}
		out.Reservations = []types.Reservation{{Instances: found}}
		return out, nil
	}
}

func described(id, block string, lifecycle types.InstanceLifecycleType) types.Instance {
	i := types.Instance{
		InstanceId: &id, InstanceLifecycle: lifecycle, Placement: &types.Placement{AvailabilityZone: aws.String("eu-west-1b")},
		State: &types.InstanceState{Name: types.InstanceStateNameRunning},
	}
	if block != "" {
		i.CapacityReservationId = &block
	}
	return i
}

func TestInBlocksReturnsAllInstancesOfTheBlock(t *testing.T) {
	describe := describing(described("i-1", "cr-1", ""), described("i-2", "cr-1", ""), described("i-3", "cr-2", ""), described("i-4", "", ""))
	got, err := InBlocks(t.Context(), describe, []Target{{InstanceID: "i-1"}})
	want := []Target{{InstanceID: "i-1", Zone: "eu-west-1b", Reservation: "cr-1"}, {InstanceID: "i-2", Zone: "eu-west-1b", Reservation: "cr-1"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	_, err = InBlocks(t.Context(), describe, []Target{{InstanceID: "i-4", Node: "n"}})
	var not *NotReservedError
	if !errors.As(err, &not) || err.Error() != "n (i-4) does not run in a Capacity Block, so no block can end; name an instance that does" {
		t.Errorf("error %v", err)
	}
}

func TestSpotReturnsOnlyRunningSpotInstances(t *testing.T) {
	describe := describing(described("i-1", "", types.InstanceLifecycleTypeSpot), described("i-2", "", ""))
	got, err := Spot(t.Context(), describe, []Target{{InstanceID: "i-1", Node: "a"}, {InstanceID: "i-2", Node: "b"}})
	if diff := cmp.Diff([]Target{{InstanceID: "i-1", Node: "a"}}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
