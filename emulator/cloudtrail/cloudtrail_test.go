package cloudtrail_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/emulator"
	emulated "github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
)

func TestFailedCallsAreRecorded(t *testing.T) {
	t.Parallel()
	server, url := emulatortest.Serve(t, emulator.Options{Account: "210987654321", Region: "eu-west-1"})
	cfg := aws.Config{
		Region: server.Region(), BaseEndpoint: &url, RetryMaxAttempts: 1, HTTPClient: emulatortest.HTTPClient(t),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIATEST", SecretAccessKey: "secret"}, nil
		}),
	}
	if err := server.States.AutoScaling.CreateGroup(emulated.Group{Name: "workers-a"}); err != nil {
		t.Fatal(err)
	}
	complete := func() {
		if _, err := autoscaling.NewFromConfig(cfg).CompleteLifecycleAction(t.Context(), &autoscaling.CompleteLifecycleActionInput{
			AutoScalingGroupName: aws.String("workers-a"), LifecycleHookName: aws.String("drain"),
			LifecycleActionResult: aws.String("CONTINUE"), InstanceId: aws.String("i-0a1b2c3d4e5f60718"),
		}); err == nil {
			t.Error("an action that is not active was completed")
		}
	}
	machines := ec2.NewFromConfig(cfg)

	complete() // no recorder is set
	server.States.CloudTrail.StartLogging()
	complete()
	server.Gate.Deny("autoscaling", "CompleteLifecycleAction")
	complete()
	if _, err := machines.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{}); err != nil {
		t.Error(err)
	}
	_, _ = machines.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{"i-0a1b2c3d4e5f60718"}})
	server.States.CloudTrail.StopLogging()
	complete()

	type record struct {
		EventName, EventSource, ErrorCode, ErrorMessage string
		RequestParameters                               map[string]string
		UserIdentity                                    struct{ Type, ARN, AccessKeyID string }
		EventType                                       string
	}
	var got []record
	for _, e := range server.States.Events.Archive() {
		if e.DetailType != "AWS API Call via CloudTrail" {
			continue
		}
		var r record
		if err := json.Unmarshal(e.Detail, &r); err != nil {
			t.Fatal(err)
		}
		got = append(got, r)
	}
	want := []record{
		{EventName: "CompleteLifecycleAction", EventSource: "autoscaling.amazonaws.com", ErrorCode: "ValidationException",
			ErrorMessage: "No active Lifecycle Action found with instance ID i-0a1b2c3d4e5f60718"},
		{EventName: "CompleteLifecycleAction", EventSource: "autoscaling.amazonaws.com", ErrorCode: "AccessDenied",
			ErrorMessage: "User: arn:aws:iam::210987654321:user/lifeboat is not authorized to perform: autoscaling:CompleteLifecycleAction on resource: " +
				server.States.AutoScaling.GroupARN("workers-a") + " because no identity-based policy allows the autoscaling:CompleteLifecycleAction action"},
		{EventName: "TerminateInstances", EventSource: "ec2.amazonaws.com", ErrorCode: "Client.InvalidInstanceID.NotFound",
			ErrorMessage: "The instance ID 'i-0a1b2c3d4e5f60718' does not exist"},
	}
	for i := range want {
		want[i].EventType = "AwsApiCall"
		want[i].UserIdentity.Type, want[i].UserIdentity.ARN, want[i].UserIdentity.AccessKeyID = "IAMUser", "arn:aws:iam::210987654321:user/lifeboat", "AKIATEST"
		want[i].RequestParameters = map[string]string{
			"autoScalingGroupName": "workers-a", "lifecycleHookName": "drain", "lifecycleActionResult": "CONTINUE", "instanceId": "i-0a1b2c3d4e5f60718",
		}
	}
	want[2].RequestParameters = map[string]string{"instanceId.1": "i-0a1b2c3d4e5f60718"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}
