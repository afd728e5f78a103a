package ec2_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	emulated "github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

func filters(name string, values ...string) []types.Filter {
	return []types.Filter{{Name: &name, Values: values}}
}

// ids lists the instances that a status call returns.
func statusIDs(t *testing.T, c *ec2.Client, in *ec2.DescribeInstanceStatusInput) []string {
	t.Helper()
	var ids []string
	for _, st := range must(c.DescribeInstanceStatus(t.Context(), in))(t).InstanceStatuses {
		ids = append(ids, *st.InstanceId)
	}
	return ids
}

func TestSDKFiltersStatus(t *testing.T) {
	t.Parallel()
	server, c := newClient(t)
	sick, due, off := *runSpot(t, c, "sick").InstanceId, *runSpot(t, c, "due").InstanceId, *runSpot(t, c, "off").InstanceId
	since := time.Date(2026, 5, 11, 8, 14, 2, 0, time.UTC)
	states := server.States.EC2
	if err := states.SetHealth(sick, emulated.Health{AttachedEBS: emulated.StatusImpaired, ImpairedSince: since}); err != nil {
		t.Fatal(err)
	}
	start := time.Date(2066, 5, 21, 9, 0, 43, 0, time.UTC)
	event := must(states.ScheduleMaintenance(due, emulated.Maintenance{
		Code: "instance-retirement", Description: "retirement", NotBefore: start, NotAfter: start.Add(time.Hour), NotBeforeDeadline: start.Add(48 * time.Hour),
	}))(t)
	if err := states.EndMaintenance(due, event, false); err != nil {
		t.Fatal(err)
	}
	must(states.Terminate([]string{off}))(t)
	for _, tc := range []struct {
		filter []types.Filter
		all    bool
		want   []string
	}{
		{nil, false, []string{sick, due}},
		{nil, true, []string{sick, due, off}},
		{filters("attached-ebs-status.status", "impaired"), false, []string{sick}},
		{filters("event.code", "instance-retirement", "instance-stop"), false, []string{due}},
		{filters("event.description", `\[Canceled\] *`), false, []string{due}},
		{filters("event.instance-event-id", event), false, []string{due}},
		{filters("event.not-before", "2066-05-21T09:00:43.000Z"), false, []string{due}},
		{filters("event.not-after", "2066-05-21T10:*"), false, []string{due}},
		{filters("event.not-before-deadline", "2066-05-23T*"), false, []string{due}},
		{filters("instance-state-name", "running"), true, []string{sick, due}},
		{filters("availability-zone", "eu-west-1b"), false, []string{sick, due}},
		{filters("operator.managed", "true"), true, nil},
		{append(filters("event.code", "*"), filters("instance-status.status", "impaired")...), false, nil},
	} {
		same(t, fmt.Sprint("instances by ", tc.filter), statusIDs(t, c, &ec2.DescribeInstanceStatusInput{
			Filters: tc.filter, IncludeAllInstances: aws.Bool(tc.all),
		}), tc.want)
	}
	st := must(c.DescribeInstanceStatus(t.Context(), &ec2.DescribeInstanceStatusInput{InstanceIds: []string{sick}}))(t).InstanceStatuses[0]
	same(t, "attached volumes", []any{st.AttachedEbsStatus.Status, st.AttachedEbsStatus.Details[0].Status, *st.AttachedEbsStatus.Details[0].ImpairedSince},
		[]any{types.SummaryStatusImpaired, types.StatusTypeFailed, since})
	e := must(c.DescribeInstanceStatus(t.Context(), &ec2.DescribeInstanceStatusInput{InstanceIds: []string{due}}))(t).InstanceStatuses[0].Events[0]
	same(t, "event", []any{*e.Description, *e.NotBefore, *e.NotAfter, *e.NotBeforeDeadline},
		[]any{"[Canceled] retirement", start, start.Add(time.Hour), start.Add(48 * time.Hour)})
}

func TestSDKPagesStatus(t *testing.T) {
	t.Parallel()
	server, c := newClient(t)
	made := must(server.States.EC2.Launch(emulated.LaunchInput{ImageID: "ami-1", Min: 101, Max: 101}))(t)
	var ids []string
	for _, in := range made {
		ids = append(ids, in.ID)
	}
	var sizes []int
	for p := ec2.NewDescribeInstanceStatusPaginator(c, &ec2.DescribeInstanceStatusInput{
		MaxResults: aws.Int32(50), IncludeAllInstances: aws.Bool(true),
	}); p.HasMorePages(); {
		sizes = append(sizes, len(must(p.NextPage(t.Context()))(t).InstanceStatuses))
	}
	same(t, "pages", sizes, []int{50, 50, 1})
	same(t, "a hundred by id", len(statusIDs(t, c, &ec2.DescribeInstanceStatusInput{InstanceIds: ids[:100], IncludeAllInstances: aws.Bool(true)})), 100)
	_, err := c.DescribeInstanceStatus(t.Context(), &ec2.DescribeInstanceStatusInput{InstanceIds: ids})
	wantCode(t, "one too many", err, "InvalidParameterValue")
	_, err = c.DescribeInstanceStatus(t.Context(), &ec2.DescribeInstanceStatusInput{InstanceIds: ids[:1], MaxResults: aws.Int32(50)})
	wantCode(t, "a page of ids", err, "InvalidParameterCombination")
}

func TestSDKLaunchesInReservedCapacity(t *testing.T) {
	t.Parallel()
	_, c := newClient(t)
	run := func(market types.MarketType, reservation, host string) (id string, seen types.Instance) {
		in := &ec2.RunInstancesInput{
			ImageId: aws.String("ami-0abc"), MinCount: aws.Int32(1), MaxCount: aws.Int32(1), Placement: &types.Placement{},
		}
		if market != "" {
			in.InstanceMarketOptions = &types.InstanceMarketOptionsRequest{MarketType: market}
			in.CapacityReservationSpecification = &types.CapacityReservationSpecification{
				CapacityReservationTarget: &types.CapacityReservationTarget{CapacityReservationId: &reservation},
			}
		}
		if host != "" {
			in.Placement.HostId = &host
		}
		seen = must(c.RunInstances(t.Context(), in))(t).Instances[0]
		return *seen.InstanceId, seen
	}
	block, seen := run(types.MarketTypeCapacityBlock, "cr-1", "")
	same(t, "block", []any{seen.InstanceLifecycle, *seen.CapacityReservationId}, []any{types.InstanceLifecycleTypeCapacityBlock, "cr-1"})
	loose, seen := run(types.MarketTypeInterruptibleCapacityReservation, "cr-2", "")
	same(t, "interruptible", seen.InstanceLifecycle, types.InstanceLifecycleTypeInterruptibleCapacityReservation)
	hosted, seen := run("", "", "h-0123")
	same(t, "hosted", []any{seen.InstanceLifecycle, *seen.Placement.HostId, seen.Placement.Tenancy}, []any{types.InstanceLifecycleType(""), "h-0123", types.TenancyHost})
	for _, tc := range []struct {
		filter []types.Filter
		want   []string
	}{
		{filters("capacity-reservation-id", "cr-1"), []string{block}},
		{filters("instance-lifecycle", "capacity-block", "interruptible-capacity-reservation"), []string{block, loose}},
		{filters("host-id", "h-*"), []string{hosted}},
	} {
		var got []string
		for _, r := range must(c.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{Filters: tc.filter}))(t).Reservations {
			for _, in := range r.Instances {
				got = append(got, *in.InstanceId)
			}
		}
		same(t, *tc.filter[0].Name, got, tc.want)
	}
}

func TestSDKFindsSpotRequestsByTheirStatus(t *testing.T) {
	t.Parallel()
	server, c := newClient(t)
	var ids []string
	for n := range 6 {
		ids = append(ids, *runSpot(t, c, fmt.Sprint(n)).InstanceId)
	}
	if err := server.States.EC2.Interrupt(ids[:1], emulated.InterruptOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := server.States.EC2.Interrupt(ids[1:2], emulated.InterruptOptions{Behaviour: emulated.Stop}); err != nil {
		t.Fatal(err)
	}
	out := must(c.DescribeSpotInstanceRequests(t.Context(), &ec2.DescribeSpotInstanceRequestsInput{
		Filters: append(filters("status-code", "marked-for-termination", "marked-for-stop"), filters("state", "active")...),
	}))(t).SpotInstanceRequests
	var marked []string
	for _, r := range out {
		marked = append(marked, *r.InstanceId+" "+*r.Status.Code)
	}
	same(t, "marked", marked, []string{ids[0] + " marked-for-termination", ids[1] + " marked-for-stop"})

	var paged []string
	var sizes []int
	for p := ec2.NewDescribeSpotInstanceRequestsPaginator(c, &ec2.DescribeSpotInstanceRequestsInput{MaxResults: aws.Int32(5)}); p.HasMorePages(); {
		page := must(p.NextPage(t.Context()))(t).SpotInstanceRequests
		sizes = append(sizes, len(page))
		for _, r := range page {
			paged = append(paged, *r.InstanceId)
		}
	}
	slices.Sort(paged)
	slices.Sort(ids)
	same(t, "pages", []any{sizes, paged}, []any{[]int{5, 1}, ids})
	_, err := c.DescribeSpotInstanceRequests(t.Context(), &ec2.DescribeSpotInstanceRequestsInput{Filters: filters("colour", "red")})
	wantCode(t, "an unknown filter", err, "InvalidParameterValue")
}
