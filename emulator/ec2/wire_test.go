package ec2_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/emulator"
	emulated "github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
)

// credentials are arbitrary: the emulator checks no signatures.
func credentials(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "AKIATEST", SecretAccessKey: "secret"}, nil
}

// newClient returns a real EC2 client of a separate emulated account, whose machines are fast.
func newClient(t *testing.T) (*emulator.Server, *ec2.Client) {
	t.Helper()
	server, url := emulatortest.Serve(t, emulator.Options{Region: "eu-west-1", Timing: emulated.Timing{
		PendingFor: time.Millisecond, StoppingFor: time.Millisecond, ShutdownFor: time.Millisecond,
	}})
	return server, ec2.New(ec2.Options{
		Region: server.Region(), BaseEndpoint: &url, RetryMaxAttempts: 1, HTTPClient: emulatortest.HTTPClient(t),
		Credentials: aws.CredentialsProviderFunc(credentials),
	})
}

// must returns v, or ends the test.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func wantCode(t *testing.T, what string, err error, code string) {
	t.Helper()
	var e smithy.APIError
	if !errors.As(err, &e) || e.ErrorCode() != code {
		t.Errorf("%s: got error %v, want %s", what, err, code)
	}
}

// runSpot launches one spot instance and waits until it is running.
func runSpot(t *testing.T, c *ec2.Client, name string) types.Instance {
	t.Helper()
	out := must(c.RunInstances(t.Context(), &ec2.RunInstancesInput{
		ImageId: aws.String("ami-0abc"), InstanceType: types.InstanceTypeM5Large,
		MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
		Placement: &types.Placement{AvailabilityZone: aws.String("eu-west-1b")},
		UserData:  aws.String("I2Nsb3VkLWNvbmZpZw=="),
		InstanceMarketOptions: &types.InstanceMarketOptionsRequest{
			MarketType:  types.MarketTypeSpot,
			SpotOptions: &types.SpotMarketOptions{SpotInstanceType: types.SpotInstanceTypeOneTime},
		},
		TagSpecifications: []types.TagSpecification{
			{ResourceType: types.ResourceTypeInstance, Tags: []types.Tag{{Key: aws.String("Name"), Value: &name}}},
			{ResourceType: types.ResourceTypeSpotInstancesRequest, Tags: []types.Tag{{Key: aws.String("for"), Value: &name}}},
		},
	}))(t)
	waiter := ec2.NewInstanceRunningWaiter(c, func(o *ec2.InstanceRunningWaiterOptions) {
		o.MinDelay, o.MaxDelay = 2*time.Millisecond, 10*time.Millisecond
	})
	described := must(waiter.WaitForOutput(t.Context(), &ec2.DescribeInstancesInput{
		InstanceIds: []string{*out.Instances[0].InstanceId},
	}, time.Minute))(t)
	return described.Reservations[0].Instances[0]
}

func TestSDKLaunchesAndDescribes(t *testing.T) {
	t.Parallel()
	_, c := newClient(t)
	in := runSpot(t, c, "web")
	if !regexp.MustCompile(`^i-[0-9a-f]{17}$`).MatchString(*in.InstanceId) {
		t.Errorf("instance id %s", *in.InstanceId)
	}
	got := []any{
		in.State.Name, *in.State.Code, in.InstanceLifecycle, in.InstanceType, *in.Placement.AvailabilityZone,
		*in.PrivateDnsName, *in.PrivateIpAddress, *in.Tags[0].Key, *in.Tags[0].Value, len(in.SecurityGroups),
		time.Since(*in.LaunchTime) < time.Minute,
	}
	same(t, "instance", got, []any{
		types.InstanceStateNameRunning, int32(16), types.InstanceLifecycleTypeSpot, types.InstanceTypeM5Large, "eu-west-1b",
		"ip-10-0-64-10.eu-west-1.compute.internal", "10.0.64.10", "Name", "web", 1, true,
	})
	requests := must(c.DescribeSpotInstanceRequests(t.Context(), &ec2.DescribeSpotInstanceRequestsInput{
		Filters: []types.Filter{
			{Name: aws.String("status-code"), Values: []string{"fulfilled"}},
			{Name: aws.String("instance-id"), Values: []string{*in.InstanceId}},
		},
	}))(t).SpotInstanceRequests
	if len(requests) != 1 {
		t.Fatalf("%d spot requests", len(requests))
	}
	r := requests[0]
	same(t, "request", []any{*r.SpotInstanceRequestId, r.State, r.Type, *r.Tags[0].Value, *r.LaunchedAvailabilityZone, r.InstanceInterruptionBehavior},
		[]any{*in.SpotInstanceRequestId, types.SpotInstanceStateActive, types.SpotInstanceTypeOneTime, "web", "eu-west-1b", types.InstanceInterruptionBehaviorTerminate})

	ended := must(c.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{*in.InstanceId}}))(t)
	same(t, "transition", []any{ended.TerminatingInstances[0].PreviousState.Name, ended.TerminatingInstances[0].CurrentState.Name},
		[]any{types.InstanceStateNameRunning, types.InstanceStateNameShuttingDown})
	waiter := ec2.NewInstanceTerminatedWaiter(c, func(o *ec2.InstanceTerminatedWaiterOptions) {
		o.MinDelay, o.MaxDelay = 2*time.Millisecond, 10*time.Millisecond
	})
	out := must(waiter.WaitForOutput(t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{*in.InstanceId}}, time.Minute))(t)
	gone := out.Reservations[0].Instances[0]
	same(t, "afterwards", []any{*gone.PrivateDnsName, gone.PrivateIpAddress, *gone.StateReason.Code},
		[]any{"", (*string)(nil), "Client.UserInitiatedShutdown"})
}

func TestSDKPages(t *testing.T) {
	t.Parallel()
	server, c := newClient(t)
	for n := range 4 {
		if _, err := server.States.EC2.Launch(emulated.LaunchInput{ImageID: "ami-1", Min: 3, Max: 3, ClientToken: fmt.Sprint(n)}); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	pages := 0
	for p := ec2.NewDescribeInstancesPaginator(c, &ec2.DescribeInstancesInput{MaxResults: aws.Int32(5)}); p.HasMorePages(); pages++ {
		for _, r := range must(p.NextPage(t.Context()))(t).Reservations {
			for _, in := range r.Instances {
				seen[*in.InstanceId] = true
			}
		}
	}
	same(t, "pages and instances", []int{pages, len(seen)}, []int{3, 12})
	_, err := c.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{MaxResults: aws.Int32(4)})
	wantCode(t, "a page too small", err, "InvalidParameterValue")
	_, err = c.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{MaxResults: aws.Int32(5), InstanceIds: []string{"i-0123456789abcdef0"}})
	wantCode(t, "a page of ids", err, "InvalidParameterCombination")
}

func TestSDKSeesEC2Errors(t *testing.T) {
	t.Parallel()
	_, c := newClient(t)
	_, err := c.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{"i-0123456789abcdef0"}})
	wantCode(t, "an unknown instance", err, "InvalidInstanceID.NotFound")
	_, err = c.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{"i-xyz"}})
	wantCode(t, "a malformed id", err, "InvalidInstanceID.Malformed")
	_, err = c.RunInstances(t.Context(), &ec2.RunInstancesInput{
		ImageId: aws.String("ami-1"), MinCount: aws.Int32(1), MaxCount: aws.Int32(1), DryRun: aws.Bool(true),
	})
	wantCode(t, "a dry run", err, "DryRunOperation")
	var response interface{ HTTPStatusCode() int }
	if !errors.As(err, &response) || response.HTTPStatusCode() != http.StatusPreconditionFailed {
		t.Errorf("a dry run: %v is not of status 412", err)
	}
	_, err = c.DescribeKeyPairs(t.Context(), &ec2.DescribeKeyPairsInput{})
	wantCode(t, "an action that is not there", err, "InvalidAction")
	_, err = c.StartInstances(t.Context(), &ec2.StartInstancesInput{InstanceIds: []string{}})
	wantCode(t, "no ids", err, "MissingParameter")
	same(t, "instances", len(must(c.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{}))(t).Reservations), 0)
}

func TestSDKReadsStatus(t *testing.T) {
	t.Parallel()
	server, c := newClient(t)
	id := *runSpot(t, c, "sick").InstanceId
	since := time.Date(2026, 5, 11, 8, 14, 2, 0, time.UTC)
	if err := server.States.EC2.SetHealth(id, emulated.Health{Instance: emulated.StatusImpaired, ImpairedSince: since}); err != nil {
		t.Fatal(err)
	}
	event := must(server.States.EC2.ScheduleMaintenance(id, emulated.Maintenance{
		Code: "system-reboot", Description: "scheduled reboot", NotBefore: since,
	}))(t)
	out := must(c.DescribeInstanceStatus(t.Context(), &ec2.DescribeInstanceStatusInput{
		Filters: []types.Filter{{Name: aws.String("event.code"), Values: []string{"system-*"}}},
	}))(t)
	if len(out.InstanceStatuses) != 1 {
		t.Fatalf("%d statuses", len(out.InstanceStatuses))
	}
	st := out.InstanceStatuses[0]
	same(t, "status", []any{
		st.InstanceStatus.Status, st.InstanceStatus.Details[0].Status, *st.InstanceStatus.Details[0].ImpairedSince,
		st.SystemStatus.Status, st.SystemStatus.Details[0].Status, st.InstanceState.Name,
	}, []any{
		types.SummaryStatusImpaired, types.StatusTypeFailed, since,
		types.SummaryStatusOk, types.StatusTypePassed, types.InstanceStateNameRunning,
	})
	e := st.Events[0]
	same(t, "event", []any{*e.InstanceEventId, e.Code, *e.Description, *e.NotBefore, e.NotAfter},
		[]any{event, types.EventCodeSystemReboot, "scheduled reboot", since, (*time.Time)(nil)})
}

func TestSDKTagsAndRegion(t *testing.T) {
	t.Parallel()
	_, c := newClient(t)
	id := *runSpot(t, c, "web").InstanceId
	must(c.CreateTags(t.Context(), &ec2.CreateTagsInput{Resources: []string{id}, Tags: []types.Tag{
		{Key: aws.String("a"), Value: aws.String("1")}, {Key: aws.String("b"), Value: aws.String("")},
	}}))(t)
	must(c.DeleteTags(t.Context(), &ec2.DeleteTagsInput{Resources: []string{id}, Tags: []types.Tag{{Key: aws.String("a")}}}))(t)
	out := must(c.DescribeTags(t.Context(), &ec2.DescribeTagsInput{
		Filters: []types.Filter{{Name: aws.String("resource-id"), Values: []string{id}}},
	}))(t)
	var tags []string
	for _, tag := range out.Tags {
		tags = append(tags, fmt.Sprint(tag.ResourceType, " ", *tag.Key, "=", *tag.Value))
	}
	same(t, "tags", tags, []string{"instance Name=web", "instance b="})

	region := must(c.DescribeRegions(t.Context(), &ec2.DescribeRegionsInput{}))(t).Regions
	same(t, "region", []any{len(region), *region[0].RegionName}, []any{1, "eu-west-1"})
	zones := must(c.DescribeAvailabilityZones(t.Context(), &ec2.DescribeAvailabilityZonesInput{}))(t).AvailabilityZones
	same(t, "zones", []any{len(zones), *zones[1].ZoneName, *zones[1].ZoneId}, []any{3, "eu-west-1b", "euw1-az2"})
	subnets := must(c.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{
		Filters: []types.Filter{{Name: aws.String("availability-zone"), Values: []string{"eu-west-1b"}}},
	}))(t).Subnets
	same(t, "subnets", []any{len(subnets), *subnets[0].CidrBlock, *subnets[0].AvailableIpAddressCount}, []any{1, "10.0.64.0/18", int32(16384 - 12)})
}

func TestSDKReadsCatalogue(t *testing.T) {
	t.Parallel()
	_, c := newClient(t)
	list := must(c.DescribeInstanceTypes(t.Context(), &ec2.DescribeInstanceTypesInput{
		Filters: []types.Filter{
			{Name: aws.String("supported-virtualization-type"), Values: []string{"hvm"}},
			{Name: aws.String("processor-info.supported-architecture"), Values: []string{"x86_64", "arm64"}},
		},
	}))(t).InstanceTypes
	same(t, "types", len(list), len(emulated.Types()))
	i := slices.IndexFunc(list, func(t types.InstanceTypeInfo) bool { return t.InstanceType == types.InstanceTypeM5Xlarge })
	in := list[i]
	same(t, "m5.xlarge", []any{
		*in.VCpuInfo.DefaultVCpus, *in.MemoryInfo.SizeInMiB, in.SupportedUsageClasses, in.ProcessorInfo.SupportedArchitectures,
		*in.NetworkInfo.DefaultNetworkCardIndex, *in.NetworkInfo.NetworkCards[0].MaximumNetworkInterfaces, *in.NetworkInfo.Ipv4AddressesPerInterface,
	}, []any{
		int32(4), int64(16384), []types.UsageClassType{"on-demand", "spot"}, []types.ArchitectureType{"x86_64"},
		int32(0), int32(4), int32(15),
	})
	m5, _ := emulated.FindType("m5.large")
	same(t, "pods on an m5.large", m5.MaxPods(), 29)
}

func TestSDKCancelsARequest(t *testing.T) {
	t.Parallel()
	_, c := newClient(t)
	in := runSpot(t, c, "web")
	out := must(c.CancelSpotInstanceRequests(t.Context(), &ec2.CancelSpotInstanceRequestsInput{
		SpotInstanceRequestIds: []string{*in.SpotInstanceRequestId},
	}))(t)
	same(t, "state", out.CancelledSpotInstanceRequests[0].State, types.CancelSpotInstanceRequestStateCancelled)
	must(c.RebootInstances(t.Context(), &ec2.RebootInstancesInput{InstanceIds: []string{*in.InstanceId}}))(t)
	_, err := c.StopInstances(t.Context(), &ec2.StopInstancesInput{InstanceIds: []string{*in.InstanceId}})
	wantCode(t, "stopping a one-time spot instance", err, "UnsupportedOperation")
}
