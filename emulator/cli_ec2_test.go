//go:build e2e

package emulator_test

// The AWS CLI takes about a second per call; the SDK tests cover the details.
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
	{name: "describe a type", args: []string{"ec2", "describe-instance-types", "--instance-types", "c6i.xlarge", "--filters", "Name=processor-info.supported-architecture,Values=x86_64"},
		want: map[string]string{"InstanceTypes.0.VCpuInfo.DefaultVCpus": "4", "InstanceTypes.0.MemoryInfo.SizeInMiB": "8192",
			"InstanceTypes.0.NetworkInfo.Ipv4AddressesPerInterface": "15", "InstanceTypes.0.NetworkInfo.NetworkCards.0.MaximumNetworkInterfaces": "4",
			"InstanceTypes.0.ProcessorInfo.SupportedArchitectures.0": "x86_64", "InstanceTypes.1": ""}},
	{name: "read a spot price", args: []string{"ec2", "describe-spot-price-history", "--instance-types", "c6i.xlarge", "--availability-zone", "us-east-1a",
		"--product-descriptions", "Linux/UNIX", "--start-time", "2026-01-01T00:00:00Z"},
		want: map[string]string{"SpotPriceHistory.0.SpotPrice": "*", "SpotPriceHistory.0.Timestamp": "*", "SpotPriceHistory.1": ""}},
	{name: "find the subnets of the cluster", args: []string{"ec2", "describe-subnets", "--filters", "Name=tag:karpenter.sh/discovery,Values=sandbox"},
		save: map[string]string{"SUBNET": "Subnets.1.SubnetId"}, want: map[string]string{"Subnets.2.AvailabilityZoneId": "use1-az3", "Subnets.3": ""}},
	{name: "find an image", args: []string{"ec2", "describe-images", "--owners", "amazon", "--filters", "Name=architecture,Values=x86_64"},
		save: map[string]string{"IMAGE": "Images.0.ImageId"}, want: map[string]string{"Images.0.State": "available", "Images.1": ""}},
	{name: "describe no launch template", args: []string{"ec2", "describe-launch-templates", "--launch-template-names", "web"}, wantErr: "InvalidLaunchTemplateName.NotFoundException"},
	{name: "create a launch template", args: []string{"ec2", "create-launch-template", "--launch-template-name", "web",
		"--launch-template-data", `{"ImageId": "$IMAGE", "UserData": "Ym9vdA=="}`},
		save: map[string]string{"TEMPLATE": "LaunchTemplate.LaunchTemplateId"}, want: map[string]string{"LaunchTemplate.LatestVersionNumber": "1"}},
	{name: "read the launch template", args: []string{"ec2", "describe-launch-template-versions", "--launch-template-id", "$TEMPLATE", "--versions", "$Latest"},
		want: map[string]string{"LaunchTemplateVersions.0.LaunchTemplateData.UserData": "Ym9vdA==", "LaunchTemplateVersions.0.DefaultVersion": "true"}},
	{name: "create a fleet", args: []string{"ec2", "create-fleet", "--type", "instant", "--spot-options", "AllocationStrategy=price-capacity-optimized",
		"--target-capacity-specification", "TotalTargetCapacity=2,DefaultTargetCapacityType=spot",
		"--tag-specifications", "ResourceType=instance,Tags=[{Key=Name,Value=fleet}]", "--launch-template-configs", fleetConfigs},
		save: map[string]string{"FLEET": "FleetId"},
		want: map[string]string{"Instances.0.InstanceType": "c6i.xlarge", "Instances.0.Lifecycle": "spot", "Instances.0.InstanceIds.1": "*", "Errors.0": "",
			"Instances.0.LaunchTemplateAndOverrides.Overrides.AvailabilityZone": "us-east-1b"}},
	{name: "describe its instances", args: []string{"ec2", "describe-instances", "--filters", "Name=tag:aws:ec2:fleet-id,Values=$FLEET"},
		want: map[string]string{"Reservations.0.Instances.1.SubnetId": "$SUBNET", "Reservations.0.Instances.0.SecurityGroups.0.GroupName": "default"}},
}

const fleetConfigs = `{"LaunchTemplateSpecification": {"LaunchTemplateName": "web", "Version": "1"}, "Overrides": [{"InstanceType": "c6i.xlarge", "SubnetId": "$SUBNET"}]}`

var fisCLICases = []cliCase{
	{name: "create a template with too short a notice", args: fisTemplate("PT30S"), wantErr: "ValidationException"},
	{name: "create a template", args: fisTemplate("PT2M"), save: map[string]string{"TEMPLATE": "experimentTemplate.id"},
		want: map[string]string{"experimentTemplate.id": "*", "experimentTemplate.targets.node.selectionMode": "ALL"}},
	{name: "start the experiment", args: []string{"fis", "start-experiment", "--experiment-template-id", "$TEMPLATE"},
		save: map[string]string{"RUN": "experiment.id"}, want: map[string]string{"experiment.state.status": "pending"}},
	{name: "see it fail without the instance", args: []string{"fis", "get-experiment", "--id", "$RUN"}, want: map[string]string{"experiment.state.status": "failed"}},
}

func fisTemplate(notice string) []string {
	return []string{"fis", "create-experiment-template", "--description", "drill", "--role-arn", "arn:aws:iam::123456789012:role/fis",
		"--stop-conditions", "source=none", "--client-token", "t-" + notice,
		"--targets", `{"node":{"resourceType":"aws:ec2:spot-instance","selectionMode":"ALL","resourceArns":["arn:aws:ec2:us-east-1:123456789012:instance/i-0123456789abcdef0"]}}`,
		"--actions", `{"itn":{"actionId":"aws:ec2:send-spot-instance-interruptions","parameters":{"durationBeforeInterruption":"` + notice +
			`"},"targets":{"SpotInstances":"node"}}}`}
}
