package autoscaling_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/emulator/events"
	"github.com/lifeboat-dev/lifeboat/emulator/sqs"
)

// account is an emulated account with a real Auto Scaling client.
type account struct {
	*emulator.Server
	sdk *sdk.Client
}

func newAccount(t *testing.T) *account {
	t.Helper()
	server, url := emulatortest.Serve(t, emulator.Options{Account: "210987654321", Region: "eu-west-1", Timing: ec2.Timing{
		PendingFor: time.Millisecond, StoppingFor: time.Millisecond, ShutdownFor: time.Millisecond,
	}})
	return &account{server, sdk.New(sdk.Options{
		Region: server.Region(), BaseEndpoint: &url, RetryMaxAttempts: 1, HTTPClient: emulatortest.HTTPClient(t),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIATEST", SecretAccessKey: "secret"}, nil
		}),
	})}
}

// must returns v, or ends the test.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		check(t, err)
		return v
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// wantError checks the code and the text of an error of the SDK.
func wantError(t *testing.T, err error, code, message string) {
	t.Helper()
	var e smithy.APIError
	if !errors.As(err, &e) || e.ErrorCode() != code || e.ErrorMessage() != message {
		t.Errorf("error %v, want %s: %s", err, code, message)
	}
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// member runs an instance and attaches it to a group.
func (a *account) member(t *testing.T, group string, state autoscaling.LifecycleState) string {
	t.Helper()
	made := must(a.States.EC2.Launch(ec2.LaunchInput{ImageID: "ami-0abc", Zone: "eu-west-1b", Min: 1, Max: 1}))(t)
	eventually(t, "running", func() bool {
		in, _ := a.States.EC2.Instance(made[0].ID)
		return in.State == ec2.Running
	})
	check(t, a.States.AutoScaling.Attach(group, made[0].ID, state))
	return made[0].ID
}

// state is the lifecycle state of an instance as the SDK sees it; empty: in no group.
func (a *account) state(t *testing.T, id string) string {
	t.Helper()
	out := must(a.sdk.DescribeAutoScalingInstances(t.Context(), &sdk.DescribeAutoScalingInstancesInput{InstanceIds: []string{id}}))(t)
	if len(out.AutoScalingInstances) == 0 {
		return ""
	}
	return *out.AutoScalingInstances[0].LifecycleState
}

// emitted is the events of Auto Scaling so far with a detail type.
func (a *account) emitted(detailType string) []events.Event {
	var out []events.Event
	for _, e := range a.States.Events.Archive() {
		if e.Source == "aws.autoscaling" && e.DetailType == detailType {
			out = append(out, e)
		}
	}
	return out
}

func fields(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	var out map[string]any
	check(t, json.Unmarshal(raw, &out))
	return out
}

func TestSDKDescribesGroups(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	prepared := 4
	check(t, a.States.AutoScaling.CreateGroup(autoscaling.Group{
		Name: "workers-a", Min: 1, Max: 5, Desired: 2, LaunchTemplate: "workers",
		Tags:     map[string]string{"kubernetes.io/cluster/a": "owned", "team": "x"},
		WarmPool: &autoscaling.WarmPool{MinSize: 1, MaxPrepared: &prepared, ReuseOnScaleIn: true},
	}))
	check(t, a.States.AutoScaling.CreateGroup(autoscaling.Group{Name: "other", Tags: map[string]string{"team": "y"}}))
	id := a.member(t, "workers-a", autoscaling.InService)
	warm := a.member(t, "workers-a", autoscaling.WarmedStopped)

	filter := func(name string, values ...string) []types.Filter {
		return []types.Filter{{Name: &name, Values: values}}
	}
	out := must(a.sdk.DescribeAutoScalingGroups(t.Context(), &sdk.DescribeAutoScalingGroupsInput{
		Filters: filter("tag:kubernetes.io/cluster/a", "owned", "shared"),
	}))(t)
	if len(out.AutoScalingGroups) != 1 {
		t.Fatalf("%d groups", len(out.AutoScalingGroups))
	}
	g := out.AutoScalingGroups[0]
	same(t, "group", []any{
		*g.AutoScalingGroupName, *g.MinSize, *g.MaxSize, *g.DesiredCapacity, *g.LaunchTemplate.LaunchTemplateName, g.AvailabilityZones,
		len(g.Tags), *g.Tags[0].Key, *g.Tags[0].Value, time.Since(*g.CreatedTime) < time.Minute,
		*g.WarmPoolSize, *g.WarmPoolConfiguration.MaxGroupPreparedCapacity, g.WarmPoolConfiguration.PoolState, *g.WarmPoolConfiguration.InstanceReusePolicy.ReuseOnScaleIn,
		len(g.Instances), *g.Instances[0].InstanceId, g.Instances[0].LifecycleState, *g.Instances[0].HealthStatus,
	}, []any{
		"workers-a", int32(1), int32(5), int32(2), "workers", []string{"eu-west-1b"},
		2, "kubernetes.io/cluster/a", "owned", true,
		int32(1), int32(4), types.WarmPoolStateStopped, true,
		1, id, types.LifecycleStateInService, "Healthy",
	})
	without := must(a.sdk.DescribeAutoScalingGroups(t.Context(), &sdk.DescribeAutoScalingGroupsInput{
		AutoScalingGroupNames: []string{"workers-a", "none"}, IncludeInstances: aws.Bool(false),
	}))(t).AutoScalingGroups
	same(t, "without instances", []int{len(without), len(without[0].Instances)}, []int{1, 0})
	for _, f := range [][]types.Filter{filter("tag-key", "team"), filter("tag-value", "x", "y"), nil} {
		out := must(a.sdk.DescribeAutoScalingGroups(t.Context(), &sdk.DescribeAutoScalingGroupsInput{Filters: f}))(t)
		same(t, "groups", len(out.AutoScalingGroups), 2)
	}
	_, err := a.sdk.DescribeAutoScalingGroups(t.Context(), &sdk.DescribeAutoScalingGroupsInput{Filters: filter("name", "x")})
	wantError(t, err, "ValidationError", "Filter type name is not correct. Allowed Filter types are: tag-key, tag-value, tag:<tagKey>")

	pool := must(a.sdk.DescribeWarmPool(t.Context(), &sdk.DescribeWarmPoolInput{AutoScalingGroupName: aws.String("workers-a")}))(t)
	same(t, "pool", []any{len(pool.Instances), *pool.Instances[0].InstanceId, pool.Instances[0].LifecycleState, *pool.WarmPoolConfiguration.MinSize},
		[]any{1, warm, types.LifecycleStateWarmedStopped, int32(1)})
	_, err = a.sdk.DescribeWarmPool(t.Context(), &sdk.DescribeWarmPoolInput{AutoScalingGroupName: aws.String("none")})
	wantError(t, err, "ValidationError", "AutoScalingGroup name not found - AutoScalingGroup 'none' not found")
	same(t, "states", []string{a.state(t, id), a.state(t, warm), a.state(t, "i-0123456789abcdef0")}, []string{"InService", "Warmed:Stopped", ""})
}

func TestSDKPages(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	for n := range 120 {
		check(t, a.States.AutoScaling.CreateGroup(autoscaling.Group{Name: fmt.Sprintf("g-%03d", n)}))
	}
	made := must(a.States.EC2.Launch(ec2.LaunchInput{ImageID: "ami-0abc", Min: 60, Max: 60}))(t)
	for _, in := range made {
		check(t, a.States.AutoScaling.Attach("g-000", in.ID, autoscaling.InService))
	}
	var sizes []int
	for p := sdk.NewDescribeAutoScalingGroupsPaginator(a.sdk, &sdk.DescribeAutoScalingGroupsInput{}); p.HasMorePages(); {
		sizes = append(sizes, len(must(p.NextPage(t.Context()))(t).AutoScalingGroups))
	}
	for p := sdk.NewDescribeAutoScalingInstancesPaginator(a.sdk, &sdk.DescribeAutoScalingInstancesInput{}); p.HasMorePages(); {
		sizes = append(sizes, len(must(p.NextPage(t.Context()))(t).AutoScalingInstances))
	}
	same(t, "pages", sizes, []int{50, 50, 20, 50, 10})
	out := must(a.sdk.DescribeAutoScalingGroups(t.Context(), &sdk.DescribeAutoScalingGroupsInput{MaxRecords: aws.Int32(100)}))(t)
	same(t, "a page at most", len(out.AutoScalingGroups), 100)
	_, err := a.sdk.DescribeAutoScalingGroups(t.Context(), &sdk.DescribeAutoScalingGroupsInput{MaxRecords: aws.Int32(101)})
	wantError(t, err, "ValidationError", "1 validation error detected: Value '101' at 'maxRecords' failed to satisfy constraint: Member must have value between 1 and 100")
	_, err = a.sdk.DescribeAutoScalingGroups(t.Context(), &sdk.DescribeAutoScalingGroupsInput{NextToken: aws.String("x")})
	wantError(t, err, "InvalidNextToken", "The NextToken value is not valid.")
	_, err = a.sdk.DescribeAutoScalingInstances(t.Context(), &sdk.DescribeAutoScalingInstancesInput{InstanceIds: make([]string, 51)})
	wantError(t, err, "ValidationError", "1 validation error detected: Value '[51 ids]' at 'instanceIds' failed to satisfy constraint: Member must have length less than or equal to 50")
}

// ref names an action for the SDK.
func complete(group, hook, id, token string) *sdk.CompleteLifecycleActionInput {
	in := &sdk.CompleteLifecycleActionInput{AutoScalingGroupName: &group, LifecycleHookName: &hook, LifecycleActionResult: aws.String("CONTINUE")}
	if token != "" {
		in.LifecycleActionToken = &token
	} else {
		in.InstanceId = &id
	}
	return in
}

func TestSDKCompletesTerminationHook(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	check(t, a.States.SQS.Create("hooks", nil, nil))
	check(t, a.States.AutoScaling.CreateGroup(autoscaling.Group{Name: "workers-a"}))
	check(t, a.States.AutoScaling.PutHook(autoscaling.Hook{
		Name: "drain", Group: "workers-a", Transition: autoscaling.Leaving, Heartbeat: 5 * time.Minute, Metadata: `{"pool":"a"}`,
		NotificationTarget: "arn:aws:sqs:eu-west-1:210987654321:hooks", RoleARN: "arn:aws:iam::210987654321:role/asg",
	}))
	hooks := must(a.sdk.DescribeLifecycleHooks(t.Context(), &sdk.DescribeLifecycleHooksInput{AutoScalingGroupName: aws.String("workers-a")}))(t).LifecycleHooks
	same(t, "hook", []any{len(hooks), *hooks[0].LifecycleHookName, *hooks[0].LifecycleTransition, *hooks[0].HeartbeatTimeout, *hooks[0].GlobalTimeout, *hooks[0].DefaultResult},
		[]any{1, "drain", "autoscaling:EC2_INSTANCE_TERMINATING", int32(300), int32(30000), "ABANDON"})

	id := a.member(t, "workers-a", autoscaling.InService)
	_, err := a.sdk.CompleteLifecycleAction(t.Context(), complete("workers-a", "drain", id, ""))
	wantError(t, err, "ValidationError", "No active Lifecycle Action found with instance ID "+id)
	check(t, a.States.AutoScaling.Send(id, autoscaling.ScaleIn, "an instance was taken out of service in response to a user request."))
	same(t, "state", a.state(t, id), "Terminating:Wait")

	action := a.States.AutoScaling.Actions(id)[0]
	detail := map[string]any{
		"LifecycleActionToken": action.Token, "AutoScalingGroupName": "workers-a", "LifecycleHookName": "drain", "EC2InstanceId": id,
		"LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING", "NotificationMetadata": `{"pool":"a"}`, "Origin": "AutoScalingGroup", "Destination": "EC2",
	}
	recorded := a.emitted("EC2 Instance-terminate Lifecycle Action")
	same(t, "events", []any{len(recorded), recorded[0].Resources, fields(t, recorded[0].Detail)}, []any{1, []string{a.States.AutoScaling.GroupARN("workers-a")}, detail})
	messages := must(a.States.SQS.Receive(t.Context(), "hooks", sqs.ReceiveOptions{Max: 10}))(t)
	if len(messages) != 2 {
		t.Fatalf("%d messages", len(messages))
	}
	test, notice := fields(t, []byte(messages[0].Body)), fields(t, []byte(messages[1].Body))
	same(t, "test message", []any{test["Event"], test["AutoScalingGroupName"], test["Service"], test["AutoScalingGroupARN"]},
		[]any{"autoscaling:TEST_NOTIFICATION", "workers-a", "AWS Auto Scaling", a.States.AutoScaling.GroupARN("workers-a")})
	same(t, "service and account", []any{notice["Service"], notice["AccountId"]}, []any{"AWS Auto Scaling", "210987654321"})
	for _, name := range []string{"Service", "AccountId", "Time", "RequestId"} {
		delete(notice, name)
	}
	same(t, "message", notice, detail)

	ref := complete("workers-a", "drain", "", action.Token)
	must(a.sdk.RecordLifecycleActionHeartbeat(t.Context(), &sdk.RecordLifecycleActionHeartbeatInput{
		AutoScalingGroupName: ref.AutoScalingGroupName, LifecycleHookName: ref.LifecycleHookName, InstanceId: &id,
	}))(t)
	must(a.sdk.CompleteLifecycleAction(t.Context(), ref))(t)
	eventually(t, "gone", func() bool { return a.state(t, id) == "" })
	in, _ := a.States.EC2.Instance(id)
	same(t, "at EC2", in.State, ec2.Terminated)
	eventually(t, "the result is sent", func() bool { return len(a.emitted("EC2 Instance Terminate Successful")) == 1 })
	result := fields(t, a.emitted("EC2 Instance Terminate Successful")[0].Detail)
	same(t, "result", []any{result["EC2InstanceId"], result["Origin"], result["Destination"], result["StatusCode"]}, []any{id, "AutoScalingGroup", "EC2", "InProgress"})
	_, err = a.sdk.CompleteLifecycleAction(t.Context(), ref)
	wantError(t, err, "ValidationError", "No active Lifecycle Action found with token "+action.Token)
}

func TestSDKSeesValidationErrors(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	check(t, a.States.AutoScaling.CreateGroup(autoscaling.Group{Name: "g"}))
	for _, tc := range []struct {
		in   *sdk.CompleteLifecycleActionInput
		want string
	}{
		{complete("none", "h", "i-1", ""), "AutoScalingGroup name not found - AutoScalingGroup 'none' not found"},
		{complete("g", "h", "", "short"), "1 validation error detected: Value 'short' at 'lifecycleActionToken' failed to satisfy constraint: Member must have length equal to 36"},
		{complete("g", "h", "", ""), "Either the lifecycle action token or the instance ID is required"},
		{complete("g", "h", "i-1", ""), "No active Lifecycle Action found with instance ID i-1"},
		{&sdk.CompleteLifecycleActionInput{AutoScalingGroupName: aws.String("g"), LifecycleHookName: aws.String("h"), InstanceId: aws.String("i-1"), LifecycleActionResult: aws.String("DONE")},
			"Invalid lifecycle action result 'DONE'; use CONTINUE or ABANDON"},
	} {
		_, err := a.sdk.CompleteLifecycleAction(t.Context(), tc.in)
		wantError(t, err, "ValidationError", tc.want)
	}
}
