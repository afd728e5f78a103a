package ec2_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	emulated "github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// Every filter of every list reads a field, and unknown filters are rejected.
func TestSDKFilters(t *testing.T) {
	t.Parallel()
	_, c := newClient(t)
	launchTemplate(t, c, "web", emulated.X86)
	for action, l := range map[string]struct {
		list  func(ctx context.Context, f []types.Filter) (int, error)
		names []string
	}{
		"DescribeInstanceTypes": {func(ctx context.Context, f []types.Filter) (int, error) {
			out, err := c.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"m5.large"}, Filters: f})
			if err != nil {
				return 0, err
			}
			return len(out.InstanceTypes), nil
		}, []string{
			"bare-metal", "burstable-performance-supported", "current-generation", "ebs-info.ebs-optimized-support", "hypervisor",
			"instance-storage-supported", "instance-type", "memory-info.size-in-mib", "network-info.ena-support",
			"network-info.encryption-in-transit-supported", "network-info.ipv4-addresses-per-interface", "network-info.maximum-network-interfaces",
			"processor-info.supported-architecture", "supported-root-device-type", "supported-usage-class", "supported-virtualization-type",
			"vcpu-info.default-cores", "vcpu-info.default-threads-per-core", "vcpu-info.default-vcpus",
		}},
		"DescribeSpotPriceHistory": {func(ctx context.Context, f []types.Filter) (int, error) {
			out, err := c.DescribeSpotPriceHistory(ctx, &ec2.DescribeSpotPriceHistoryInput{
				InstanceTypes: []types.InstanceType{"m5.large"}, AvailabilityZone: aws.String("eu-west-1a"), Filters: f,
			})
			if err != nil {
				return 0, err
			}
			return len(out.SpotPriceHistory), nil
		}, []string{"availability-zone", "availability-zone-id", "instance-type", "product-description", "spot-price", "timestamp"}},
		"DescribeSubnets": {func(ctx context.Context, f []types.Filter) (int, error) {
			out, err := c.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: append(f, filter("availability-zone-id", "euw1-az1"))})
			if err != nil {
				return 0, err
			}
			return len(out.Subnets), nil
		}, []string{
			"availability-zone", "availability-zone-id", "available-ip-address-count", "cidr-block", "default-for-az", "owner-id", "state",
			"subnet-id", "vpc-id", "tag-key", "tag-value", "tag:karpenter.sh/discovery",
		}},
		"DescribeSecurityGroups": {func(ctx context.Context, f []types.Filter) (int, error) {
			out, err := c.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: f})
			if err != nil {
				return 0, err
			}
			return len(out.SecurityGroups), nil
		}, []string{"description", "group-id", "group-name", "owner-id", "vpc-id", "tag-key"}},
		"DescribeVpcs": {func(ctx context.Context, f []types.Filter) (int, error) {
			out, err := c.DescribeVpcs(ctx, &ec2.DescribeVpcsInput{Filters: f})
			if err != nil {
				return 0, err
			}
			return len(out.Vpcs), nil
		}, []string{"cidr", "is-default", "owner-id", "state", "vpc-id", "tag-key"}},
		"DescribeImages": {func(ctx context.Context, f []types.Filter) (int, error) {
			out, err := c.DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: []string{emulated.ImageID(emulated.ARM)}, Filters: f})
			if err != nil {
				return 0, err
			}
			return len(out.Images), nil
		}, []string{
			"architecture", "creation-date", "description", "image-id", "image-type", "is-public", "name", "owner-alias", "owner-id",
			"root-device-type", "state", "virtualization-type",
		}},
		"DescribeLaunchTemplates": {func(ctx context.Context, f []types.Filter) (int, error) {
			out, err := c.DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{Filters: f})
			if err != nil {
				return 0, err
			}
			return len(out.LaunchTemplates), nil
		}, []string{"create-time", "launch-template-id", "launch-template-name", "tag-key"}},
	} {
		for _, name := range l.names {
			all, err := l.list(t.Context(), []types.Filter{filter(name, "*")})
			if all != 1 || err != nil {
				t.Errorf("%s by %s: %d, %v", action, name, all, err)
			}
			if n, err := l.list(t.Context(), []types.Filter{filter(name, "nothing")}); n != 0 || err != nil {
				t.Errorf("%s by another %s: %d, %v", action, name, n, err)
			}
		}
		_, err := l.list(t.Context(), []types.Filter{filter("no-such-filter", "x")})
		wantCode(t, action+" by an unknown filter", err, "InvalidParameterValue")
	}
}
