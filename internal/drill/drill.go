// Package drill causes interruptions on purpose. Either AWS Fault Injection Service
// (FIS) sends real ones to spot instances, or the package writes notices into
// Lifeboat's queue, which terminate nothing.
package drill

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
)

// Target is an instance to interrupt.
type Target struct {
	// InstanceID is the EC2 instance.
	InstanceID string `json:"instanceID"`
	// Node is the instance's node, if known.
	Node string `json:"node,omitempty"`
	// Zone is its availability zone, if known.
	Zone string `json:"zone,omitempty"`
	// Reservation is its capacity reservation or Capacity Block, if [InBlocks] looked
	// it up.
	Reservation string `json:"reservation,omitempty"`
}

// String returns the target's name for users.
func (t Target) String() string {
	if t.Node == "" {
		return t.InstanceID
	}
	return t.Node + " (" + t.InstanceID + ")"
}

// Place is the AWS account and region of a drill.
type Place struct {
	Account   string `json:"account"`
	Region    string `json:"region"`
	Partition string `json:"-"`
}

// IdentityAPI identifies the credentials. *sts.Client implements it; the call needs
// no permission.
type IdentityAPI interface {
	GetCallerIdentity(context.Context, *sts.GetCallerIdentityInput, ...func(*sts.Options)) (*sts.GetCallerIdentityOutput, error)
}

// Locate returns the account and partition of the credentials.
func Locate(ctx context.Context, api IdentityAPI, region string) (Place, error) {
	out, err := api.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return Place{}, fmt.Errorf("identifying the AWS credentials: %w", err)
	}
	caller, err := arn.Parse(aws.ToString(out.Arn))
	if err != nil {
		return Place{}, fmt.Errorf("identifying the AWS credentials: %w", err)
	}
	return Place{Account: aws.ToString(out.Account), Region: region, Partition: caller.Partition}, nil
}

func (p Place) partition() string {
	if p.Partition == "" {
		return "aws"
	}
	return p.Partition
}

func (p Place) arn(service, resource string) string {
	return arn.ARN{Partition: p.partition(), Service: service, Region: p.Region, AccountID: p.Account, Resource: resource}.String()
}

func (p Place) instanceARN(id string) string { return p.arn("ec2", "instance/"+id) }

// DescribeInstances is ec2.Client's method of that name. It is a function type
// because an interface that holds the client would keep its more than seven hundred operations
// in the binary: tens of megabytes.
type DescribeInstances func(context.Context, *ec2.DescribeInstancesInput, ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error)

// NotInterruptibleError lists every target that FIS cannot interrupt, with the
// reason.
type NotInterruptibleError struct {
	Reasons []string
}

// Error returns the reasons.
func (e *NotInterruptibleError) Error() string {
	return strings.Join(e.Reasons, "; ")
}

// CheckSpot checks that every target is a running spot instance: FIS interrupts only
// those. The error is a *NotInterruptibleError with all other targets, or an error of
// EC2.
func CheckSpot(ctx context.Context, describe DescribeInstances, targets []Target) error {
	found, err := describeTargets(ctx, describe, targets)
	if err != nil {
		return err
	}
	var reasons []string
	for _, t := range targets {
		if reason := notInterruptible(found, t); reason != "" {
			reasons = append(reasons, reason)
		}
	}
	if len(reasons) > 0 {
		return &NotInterruptibleError{Reasons: reasons}
	}
	return nil
}

func notInterruptible(found map[string]types.Instance, t Target) string {
	i, ok := found[t.InstanceID]
	switch {
	case !ok:
		return fmt.Sprintf("%s does not exist", t)
	case i.InstanceLifecycle != types.InstanceLifecycleTypeSpot:
		lifecycle := string(i.InstanceLifecycle)
		if lifecycle == "" { // EC2 leaves it out for on-demand instances
			lifecycle = "on-demand"
		}
		return fmt.Sprintf("%s is not a spot instance but %s", t, lifecycle)
	case i.State == nil || i.State.Name != types.InstanceStateNameRunning:
		state := "in an unknown state"
		if i.State != nil {
			state = string(i.State.Name)
		}
		return fmt.Sprintf("%s is not running but %s", t, state)
	}
	return ""
}

func describeError(err error) error {
	var api smithy.APIError
	if errors.As(err, &api) && strings.HasPrefix(api.ErrorCode(), "InvalidInstanceID.") {
		return &NotInterruptibleError{Reasons: []string{api.ErrorMessage()}}
	}
	return fmt.Errorf("describing the instances: %w", err)
}

var regionInZone = regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-[0-9]+`)

// RegionOf returns the region of an availability zone or of a local zone such as
// us-west-2-lax-1a. It returns "" for other texts.
func RegionOf(zone string) string {
	// The own part of a local zone ends in a number too, so the shortest match is the
	// region.
	parts := strings.Split(zone, "-")
	for i := range parts {
		head := strings.Join(parts[:i+1], "-")
		if region := regionInZone.FindString(head); region != "" {
			return region
		}
	}
	return ""
}
