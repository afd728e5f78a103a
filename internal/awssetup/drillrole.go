package awssetup

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsiam "github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
)

// RolesAPI has the IAM calls for the role of drills. *iam.Client implements it.
type RolesAPI interface {
	CreateRole(context.Context, *awsiam.CreateRoleInput, ...func(*awsiam.Options)) (*awsiam.CreateRoleOutput, error)
	GetRole(context.Context, *awsiam.GetRoleInput, ...func(*awsiam.Options)) (*awsiam.GetRoleOutput, error)
	UpdateAssumeRolePolicy(context.Context, *awsiam.UpdateAssumeRolePolicyInput, ...func(*awsiam.Options)) (*awsiam.UpdateAssumeRolePolicyOutput, error)
	PutRolePolicy(context.Context, *awsiam.PutRolePolicyInput, ...func(*awsiam.Options)) (*awsiam.PutRolePolicyOutput, error)
}

// DrillPolicy is the name of the inline policy of the role of drills.
const DrillPolicy = "interrupt-spot-instances"

// ErrForeignRole reports a role with the name of the cluster's role that this tool did not create.
var ErrForeignRole = errors.New("the role exists and does not have the cluster's tag " + TagCluster)

// maxRoleName is the length of a role's name (IAM User Guide, "IAM and AWS STS quotas").
const maxRoleName = 64

// DrillRole is the name of the role that FIS assumes to interrupt nodes of the cluster.
func DrillRole(cluster string) string {
	name := "lifeboat-drill-" + cluster
	return name[:min(len(name), maxRoleName)]
}

// PutDrillRole creates the role of drills with its trust policy and its policy, or corrects both,
// and returns its ARN. It changes no role that lacks the tag of the cluster.
func PutDrillRole(ctx context.Context, api RolesAPI, cluster, trust, policy string) (arn string, created bool, err error) {
	name := aws.String(DrillRole(cluster))
	made, err := api.CreateRole(ctx, &awsiam.CreateRoleInput{
		RoleName: name, AssumeRolePolicyDocument: &trust,
		Description: aws.String("AWS FIS interrupts spot nodes of cluster " + cluster + " with it, for lifeboat interrupt"),
		Tags:        []types.Tag{{Key: aws.String(TagCluster), Value: &cluster}},
	})
	var exists *types.EntityAlreadyExistsException
	switch {
	case errors.As(err, &exists):
		if arn, err = correctTrust(ctx, api, name, cluster, trust); err != nil {
			return "", false, err
		}
	case err != nil:
		return "", false, fmt.Errorf("creating the role %s: %w", *name, err)
	default:
		arn, created = aws.ToString(made.Role.Arn), true
	}
	_, err = api.PutRolePolicy(ctx, &awsiam.PutRolePolicyInput{RoleName: name, PolicyName: aws.String(DrillPolicy), PolicyDocument: &policy})
	if err != nil {
		return "", created, fmt.Errorf("setting the policy of the role %s: %w", *name, err)
	}
	return arn, created, nil
}

func correctTrust(ctx context.Context, api RolesAPI, name *string, cluster, trust string) (arn string, err error) {
	found, err := api.GetRole(ctx, &awsiam.GetRoleInput{RoleName: name})
	if err != nil {
		return "", fmt.Errorf("reading the role %s: %w", *name, err)
	}
	ours := false
	for _, t := range found.Role.Tags {
		ours = ours || aws.ToString(t.Key) == TagCluster && aws.ToString(t.Value) == cluster
	}
	if !ours {
		return "", fmt.Errorf("checking the role %s: %w", *name, ErrForeignRole)
	}
	if _, err := api.UpdateAssumeRolePolicy(ctx, &awsiam.UpdateAssumeRolePolicyInput{RoleName: name, PolicyDocument: &trust}); err != nil {
		return "", fmt.Errorf("setting the trust policy of the role %s: %w", *name, err)
	}
	return aws.ToString(found.Role.Arn), nil
}
