package awsemu_test

// The AWS CLI takes about a second a call; the SDK's tests say the rest.
var ec2CLICases = []cliCase{
	{name: "run a spot instance", args: []string{"ec2", "run-instances", "--image-id", "ami-0abc", "--instance-type", "m5.large", "--count", "1",
		"--placement", "AvailabilityZone=us-east-1b", "--user-data", "#cloud-config", "--instance-market-options", "MarketType=spot",
		"--tag-specifications", "ResourceType=instance,Tags=[{Key=Name,Value=web}]"},
		save: map[string]string{"ID": "Instances.0.InstanceId"},
		want: map[string]string{"Instances.0.State.Name": "pending", "Instances.0.InstanceLifecycle": "spot", "Instances.1": "",
			"Instances.0.PrivateDnsName": "ip-10-0-64-10.ec2.internal"}},
	{name: "describe it by its name", args: []string{"ec2", "describe-instances", "--filters", "Name=tag:Name,Values=w*"},
		want: map[string]string{"Reservations.0.Instances.0.InstanceId": "$ID", "Reservations.0.Instances.0.Tags.0.Value": "web",
			"Reservations.0.Instances.0.Placement.AvailabilityZone": "us-east-1b", "Reservations.1": ""}},
	{name: "describe an unknown one", args: []string{"ec2", "describe-instances", "--instance-ids", "i-0123456789abcdef0"}, wantErr: "InvalidInstanceID.NotFound"},
	{name: "describe its request", args: []string{"ec2", "describe-spot-instance-requests", "--filters", "Name=instance-id,Values=$ID"},
		want: map[string]string{"SpotInstanceRequests.0.Status.Code": "fulfilled", "SpotInstanceRequests.0.State": "active"}},
	{name: "describe its status", args: []string{"ec2", "describe-instance-status", "--include-all-instances", "--instance-ids", "$ID"},
		want: map[string]string{"InstanceStatuses.0.InstanceId": "$ID", "InstanceStatuses.0.SystemStatus.Status": "*"}},
	{name: "terminate it", args: []string{"ec2", "terminate-instances", "--instance-ids", "$ID"},
		want: map[string]string{"TerminatingInstances.0.CurrentState.Name": "shutting-down"}},
}

var fisCLICases = []cliCase{
	{name: "create a template with too short a notice", args: fisTemplate("PT30S"), wantErr: "ValidationException"},
	{name: "create a template", args: fisTemplate("PT2M"), save: map[string]string{"TEMPLATE": "experimentTemplate.id"},
		want: map[string]string{"experimentTemplate.id": "*", "experimentTemplate.targets.node.selectionMode": "ALL"}},
	{name: "start the experiment", args: []string{"fis", "start-experiment", "--experiment-template-id", "$TEMPLATE"},
		save: map[string]string{"RUN": "experiment.id"}, want: map[string]string{"experiment.state.status": "pending"}},
	{name: "see it fail for want of the instance", args: []string{"fis", "get-experiment", "--id", "$RUN"}, want: map[string]string{"experiment.state.status": "failed"}},
}

func fisTemplate(notice string) []string {
	return []string{"fis", "create-experiment-template", "--description", "drill", "--role-arn", "arn:aws:iam::123456789012:role/fis",
		"--stop-conditions", "source=none", "--client-token", "t-" + notice,
		"--targets", `{"node":{"resourceType":"aws:ec2:spot-instance","selectionMode":"ALL","resourceArns":["arn:aws:ec2:us-east-1:123456789012:instance/i-0123456789abcdef0"]}}`,
		"--actions", `{"itn":{"actionId":"aws:ec2:send-spot-instance-interruptions","parameters":{"durationBeforeInterruption":"` + notice +
			`"},"targets":{"SpotInstances":"node"}}}`}
}
