package ec2_test

import (
	"encoding/base64"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	emulated "github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// These tests send Karpenter's requests (Karpenter AWS provider, pkg/providers).

func filter(name string, values ...string) types.Filter {
	return types.Filter{Name: &name, Values: values}
}

func TestSDKReadsTypesInPages(t *testing.T) {
	t.Parallel()
	_, c := newClient(t)
	_, err := c.DescribeInstanceTypes(t.Context(), &ec2.DescribeInstanceTypesInput{DryRun: aws.Bool(true)})
	wantCode(t, "a dry run", err, "DryRunOperation")
	infos := map[types.InstanceType]types.InstanceTypeInfo{}
	pages := ec2.NewDescribeInstanceTypesPaginator(c, &ec2.DescribeInstanceTypesInput{
		Filters: []types.Filter{
			filter("supported-virtualization-type", "hvm"), filter("processor-info.supported-architecture", "x86_64", "arm64"),
		},
		MaxResults: aws.Int32(100),
	})
	for pages.HasMorePages() {
		for _, in := range must(pages.NextPage(t.Context()))(t).InstanceTypes {
			infos[in.InstanceType] = in
		}
	}
	same(t, "types", len(infos), len(emulated.Types()))
	in := infos["m6g.xlarge"]
	same(t, "m6g.xlarge", []any{
		in.ProcessorInfo.SupportedArchitectures, *in.ProcessorInfo.Manufacturer, *in.ProcessorInfo.SustainedClockSpeedInGhz, in.Hypervisor,
		*in.BareMetal, *in.NetworkInfo.EncryptionInTransitSupported, *in.NetworkInfo.NetworkPerformance,
		*in.EbsInfo.EbsOptimizedInfo.MaximumBandwidthInMbps, in.EbsInfo.EbsOptimizedSupport, *in.VCpuInfo.DefaultCores, *in.BurstablePerformanceSupported,
	}, []any{
		[]types.ArchitectureType{"arm64"}, "AWS", 2.5, types.InstanceTypeHypervisorNitro, false, false, "Up to 10 Gigabit",
		int32(4750), types.EbsOptimizedSupportDefault, int32(4), false,
	})
	some := must(c.DescribeInstanceTypes(t.Context(), &ec2.DescribeInstanceTypesInput{
		InstanceTypes: []types.InstanceType{"t3.large", "m5.large"}, Filters: []types.Filter{filter("burstable-performance-supported", "true")},
	}))(t).InstanceTypes
	same(t, "by name and filter", []any{len(some), some[0].InstanceType}, []any{1, types.InstanceType("t3.large")})
	_, err = c.DescribeInstanceTypes(t.Context(), &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"m9.huge"}})
	wantCode(t, "an unknown type", err, "InvalidInstanceType")
}

func TestSDKReadsOfferings(t *testing.T) {
	t.Parallel()
	_, c := newClient(t)
	for location, want := range map[types.LocationType][]string{
		types.LocationTypeAvailabilityZone:   {"eu-west-1a", "eu-west-1b", "eu-west-1c"},
		types.LocationTypeAvailabilityZoneId: {"euw1-az1", "euw1-az2", "euw1-az3"},
		types.LocationTypeRegion:             {"eu-west-1"},
		"":                                   {"eu-west-1"},
	} {
		out := must(c.DescribeInstanceTypeOfferings(t.Context(), &ec2.DescribeInstanceTypeOfferingsInput{
			LocationType: location, Filters: []types.Filter{filter("instance-type", "m5.large")}, MaxResults: aws.Int32(1000),
		}))(t)
		var got []string
		for _, o := range out.InstanceTypeOfferings {
			got = append(got, *o.Location)
		}
		same(t, "places of "+string(location), got, want)
	}
	_, err := c.DescribeInstanceTypeOfferings(t.Context(), &ec2.DescribeInstanceTypeOfferingsInput{LocationType: "moon"})
	wantCode(t, "the moon", err, "InvalidParameterValue")
}

func TestSDKReadsSpotPrices(t *testing.T) {
	t.Parallel()
	server, c := newClient(t)
	if err := server.States.EC2.SetSpotPrice("m5.large", "eu-west-1b", 0.0421); err != nil {
		t.Fatal(err)
	}
	prices := map[string]string{}
	pages := ec2.NewDescribeSpotPriceHistoryPaginator(c, &ec2.DescribeSpotPriceHistoryInput{
		ProductDescriptions: []string{"Linux/UNIX", "Linux/UNIX (Amazon VPC)"}, StartTime: aws.Time(time.Now().Add(time.Second)), MaxResults: aws.Int32(100),
	})
	for pages.HasMorePages() {
		for _, p := range must(pages.NextPage(t.Context()))(t).SpotPriceHistory {
			if p.Timestamp == nil {
				t.Fatalf("no time: %+v", p)
			}
			prices[string(p.InstanceType)+" "+*p.AvailabilityZone] = *p.SpotPrice
		}
	}
	same(t, "prices", []any{len(prices), prices["m5.large eu-west-1b"]}, []any{3 * len(emulated.Types()), "0.042100"})
	one := must(c.DescribeSpotPriceHistory(t.Context(), &ec2.DescribeSpotPriceHistoryInput{
		InstanceTypes: []types.InstanceType{"m5.large"}, AvailabilityZone: aws.String("eu-west-1b"), StartTime: aws.Time(time.Now().Add(time.Second)),
		Filters: []types.Filter{filter("product-description", "Linux*")},
	}))(t).SpotPriceHistory
	same(t, "one pool", len(one), 1)
	windows := must(c.DescribeSpotPriceHistory(t.Context(), &ec2.DescribeSpotPriceHistoryInput{ProductDescriptions: []string{"Windows"}}))(t)
	same(t, "of Windows", len(windows.SpotPriceHistory), 0)
}

func TestSDKDiscoversNetwork(t *testing.T) {
	t.Parallel()
	_, c := newClient(t)
	discovery := []types.Filter{filter("tag:karpenter.sh/discovery", "sandbox")}
	subnets := must(c.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{Filters: discovery, MaxResults: aws.Int32(500)}))(t).Subnets
	same(t, "subnets", []any{len(subnets), *subnets[2].AvailabilityZone, *subnets[2].AvailabilityZoneId}, []any{3, "eu-west-1c", "euw1-az3"})
	groups := must(c.DescribeSecurityGroups(t.Context(), &ec2.DescribeSecurityGroupsInput{Filters: discovery, MaxResults: aws.Int32(500)}))(t).SecurityGroups
	same(t, "groups", []any{len(groups), *groups[0].GroupName, len(groups[0].Tags)}, []any{1, "default", 3})
	vpcs := must(c.DescribeVpcs(t.Context(), &ec2.DescribeVpcsInput{VpcIds: []string{*subnets[0].VpcId}}))(t).Vpcs
	same(t, "VPCs", []any{len(vpcs), *vpcs[0].CidrBlock, *groups[0].VpcId}, []any{1, "10.0.0.0/16", *vpcs[0].VpcId})

	must(c.CreateTags(t.Context(), &ec2.CreateTagsInput{
		Resources: []string{*subnets[0].SubnetId, *groups[0].GroupId},
		Tags:      []types.Tag{{Key: aws.String("karpenter.sh/discovery"), Value: aws.String("mine")}},
	}))(t)
	mine := []types.Filter{filter("tag:karpenter.sh/discovery", "mine"), filter("tag-key", "alpha.eksctl.io/*")}
	same(t, "retagged", len(must(c.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{Filters: mine}))(t).Subnets), 1)
	same(t, "retagged group", len(must(c.DescribeSecurityGroups(t.Context(), &ec2.DescribeSecurityGroupsInput{Filters: mine}))(t).SecurityGroups), 1)

	_, err := c.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{SubnetIds: []string{"subnet-0"}})
	wantCode(t, "an unknown subnet", err, "InvalidSubnetID.NotFound")
	_, err = c.DescribeSecurityGroups(t.Context(), &ec2.DescribeSecurityGroupsInput{GroupNames: []string{"none"}})
	wantCode(t, "an unknown group", err, "InvalidGroup.NotFound")
	_, err = c.DescribeVpcs(t.Context(), &ec2.DescribeVpcsInput{VpcIds: []string{"vpc-0"}})
	wantCode(t, "an unknown VPC", err, "InvalidVpcID.NotFound")
}

func TestSDKFindsImages(t *testing.T) {
	t.Parallel()
	_, c := newClient(t)
	for arch, want := range map[string]types.ArchitectureValues{emulated.X86: "x86_64", emulated.ARM: "arm64"} {
		images := must(c.DescribeImages(t.Context(), &ec2.DescribeImagesInput{Filters: []types.Filter{filter("image-id", emulated.ImageID(arch))}}))(t).Images
		created, err := time.Parse(time.RFC3339, *images[0].CreationDate)
		if len(images) != 1 || err != nil || created.IsZero() {
			t.Fatalf("images for %s: %+v, %v", arch, images, err)
		}
		same(t, arch, []any{images[0].Architecture, images[0].State, *images[0].RootDeviceName}, []any{want, types.ImageStateAvailable, "/dev/xvda"})
	}
	find := func(in ec2.DescribeImagesInput) int { return len(must(c.DescribeImages(t.Context(), &in))(t).Images) }
	same(t, "by owner and name", []int{
		find(ec2.DescribeImagesInput{Owners: []string{"amazon"}, Filters: []types.Filter{filter("name", "amazon-eks-node-al2023-*")}, MaxResults: aws.Int32(1000)}),
		find(ec2.DescribeImagesInput{Owners: []string{"self"}}),
	}, []int{2, 0})
	_, err := c.DescribeImages(t.Context(), &ec2.DescribeImagesInput{ImageIds: []string{"ami-0"}})
	wantCode(t, "an unknown image", err, "InvalidAMIID.NotFound")
	_, err = c.DescribeImages(t.Context(), &ec2.DescribeImagesInput{ImageIds: []string{"x"}})
	wantCode(t, "no image id", err, "InvalidAMIID.Malformed")
}

// launchTemplate creates a launch template as Karpenter does, and returns its name.
func launchTemplate(t *testing.T, c *ec2.Client, name, arch string) *types.LaunchTemplate {
	t.Helper()
	tags := []types.Tag{{Key: aws.String("eks:eks-cluster-name"), Value: aws.String("sandbox")}}
	return must(c.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: &name,
		LaunchTemplateData: &types.RequestLaunchTemplateData{
			ImageId: aws.String(emulated.ImageID(arch)), UserData: aws.String(base64.StdEncoding.EncodeToString([]byte("NodeConfig"))),
			IamInstanceProfile: &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String("sandbox_1")},
			NetworkInterfaces: []types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{
				{DeviceIndex: aws.Int32(0), Groups: []string{"sg-0a1f3f2be6c5d4e02"}},
			},
			BlockDeviceMappings: []types.LaunchTemplateBlockDeviceMappingRequest{
				{DeviceName: aws.String("/dev/xvda"), Ebs: &types.LaunchTemplateEbsBlockDeviceRequest{VolumeSize: aws.Int32(40), Encrypted: aws.Bool(true), VolumeType: "gp3"}},
			},
			MetadataOptions:   &types.LaunchTemplateInstanceMetadataOptionsRequest{HttpTokens: "required", HttpPutResponseHopLimit: aws.Int32(1)},
			Placement:         &types.LaunchTemplatePlacementRequest{Tenancy: "default"},
			TagSpecifications: []types.LaunchTemplateTagSpecificationRequest{{ResourceType: types.ResourceTypeNetworkInterface, Tags: tags}},
			CapacityReservationSpecification: &types.LaunchTemplateCapacityReservationSpecificationRequest{
				CapacityReservationPreference: types.CapacityReservationPreferenceNone,
			},
		},
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeLaunchTemplate, Tags: tags}},
	}))(t).LaunchTemplate
}

func TestSDKManagesLaunchTemplates(t *testing.T) {
	t.Parallel()
	_, c := newClient(t)
	const name = "karpenter.k8s.aws/12345"
	_, err := c.DescribeLaunchTemplates(t.Context(), &ec2.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{name}})
	wantCode(t, "before it is there", err, "InvalidLaunchTemplateName.NotFoundException")
	made := launchTemplate(t, c, name, emulated.X86)
	same(t, "made", []any{*made.LaunchTemplateName, *made.LatestVersionNumber, *made.DefaultVersionNumber, *made.Tags[0].Value}, []any{name, int64(1), int64(1), "sandbox"})
	_, err = c.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String(name), LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: aws.String("ami-1")}})
	wantCode(t, "made twice", err, "InvalidLaunchTemplateName.AlreadyExistsException")
	_, err = c.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String("dry"), LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: aws.String("ami-1")}, DryRun: aws.Bool(true),
	})
	wantCode(t, "a dry run", err, "DryRunOperation")

	for _, filters := range [][]types.Filter{{filter("tag:eks:eks-cluster-name", "sandbox")}, {filter("launch-template-name", "karpenter.*")}} {
		list := must(c.DescribeLaunchTemplates(t.Context(), &ec2.DescribeLaunchTemplatesInput{Filters: filters}))(t).LaunchTemplates
		same(t, "found", []any{len(list), *list[0].LaunchTemplateId}, []any{1, *made.LaunchTemplateId})
	}
	must(c.CreateLaunchTemplateVersion(t.Context(), &ec2.CreateLaunchTemplateVersionInput{
		LaunchTemplateId: made.LaunchTemplateId, SourceVersion: aws.String("1"), LaunchTemplateData: &types.RequestLaunchTemplateData{InstanceType: "c5.large"},
	}))(t)
	must(c.ModifyLaunchTemplate(t.Context(), &ec2.ModifyLaunchTemplateInput{LaunchTemplateId: made.LaunchTemplateId, DefaultVersion: aws.String("2")}))(t)
	versions := must(c.DescribeLaunchTemplateVersions(t.Context(), &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateName: aws.String(name)}))(t).LaunchTemplateVersions
	newest := versions[0]
	d := newest.LaunchTemplateData
	same(t, "newest", []any{
		len(versions), *newest.VersionNumber, *newest.DefaultVersion, d.InstanceType, *d.ImageId, *d.IamInstanceProfile.Name, d.NetworkInterfaces[0].Groups,
		*d.BlockDeviceMappings[0].Ebs.VolumeSize, *d.BlockDeviceMappings[0].Ebs.Encrypted, d.MetadataOptions.HttpTokens, *d.MetadataOptions.HttpPutResponseHopLimit,
		d.Placement.Tenancy, *d.TagSpecifications[0].Tags[0].Key, d.CapacityReservationSpecification.CapacityReservationPreference,
	}, []any{
		2, int64(2), true, types.InstanceTypeC5Large, emulated.ImageID(emulated.X86), "sandbox_1", []string{"sg-0a1f3f2be6c5d4e02"},
		int32(40), true, types.LaunchTemplateHttpTokensStateRequired, int32(1),
		types.TenancyDefault, "eks:eks-cluster-name", types.CapacityReservationPreferenceNone,
	})
	deleted := must(c.DeleteLaunchTemplateVersions(t.Context(), &ec2.DeleteLaunchTemplateVersionsInput{LaunchTemplateName: aws.String(name), Versions: []string{"1", "2"}}))(t)
	same(t, "deleted", []any{
		len(deleted.SuccessfullyDeletedLaunchTemplateVersions), deleted.UnsuccessfullyDeletedLaunchTemplateVersions[0].ResponseError.Code,
	}, []any{1, types.LaunchTemplateErrorCode("invalidParameterValue")})
	must(c.DeleteLaunchTemplate(t.Context(), &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String(name)}))(t)
	_, err = c.DeleteLaunchTemplate(t.Context(), &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: made.LaunchTemplateId})
	wantCode(t, "deleted twice", err, "InvalidLaunchTemplateId.NotFound")
}

func TestSDKRunsATemplate(t *testing.T) {
	t.Parallel()
	_, c := newClient(t)
	made := launchTemplate(t, c, "karpenter.k8s.aws/run", emulated.ARM)
	in := &ec2.RunInstancesInput{
		MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: "m6g.large", DryRun: aws.Bool(true),
		LaunchTemplate: &types.LaunchTemplateSpecification{LaunchTemplateName: made.LaunchTemplateName, Version: aws.String("$Latest")},
		NetworkInterfaces: []types.InstanceNetworkInterfaceSpecification{
			{DeviceIndex: aws.Int32(0), SubnetId: must(c.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{}))(t).Subnets[2].SubnetId},
		},
	}
	_, err := c.RunInstances(t.Context(), in)
	wantCode(t, "a dry run", err, "DryRunOperation")
	in.DryRun = nil
	got := must(c.RunInstances(t.Context(), in))(t).Instances[0]
	same(t, "instance", []any{
		got.Architecture, *got.ImageId, *got.Placement.AvailabilityZone, *got.Placement.AvailabilityZoneId, *got.IamInstanceProfile.Arn,
		*got.BlockDeviceMappings[0].DeviceName, slices.ContainsFunc(got.Tags, func(tag types.Tag) bool { return *tag.Key == "aws:ec2launchtemplate:id" }),
	}, []any{
		types.ArchitectureValuesArm64, emulated.ImageID(emulated.ARM), "eu-west-1c", "euw1-az3", "arn:aws:iam::123456789012:instance-profile/sandbox_1",
		"/dev/xvda", true,
	})
	in.NetworkInterfaces, in.ClientToken, in.Placement = nil, nil, &types.Placement{AvailabilityZoneId: aws.String("euw1-az2")}
	same(t, "by zone id", *must(c.RunInstances(t.Context(), in))(t).Instances[0].Placement.AvailabilityZone, "eu-west-1b")
	in.ClientToken, in.Placement.AvailabilityZoneId = nil, aws.String("euw1-az9")
	_, err = c.RunInstances(t.Context(), in)
	wantCode(t, "no zone", err, "InvalidParameterValue")
	in.LaunchTemplate.LaunchTemplateName = aws.String("none")
	_, err = c.RunInstances(t.Context(), in)
	wantCode(t, "no template", err, "InvalidLaunchTemplateName.NotFoundException")
}
