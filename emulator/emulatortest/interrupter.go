package emulatortest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/fis"
	fistypes "github.com/aws/aws-sdk-go-v2/service/fis/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// SpotInterrupter makes the calls of AWS's ec2-spot-interrupter v0.0.10 with its option --clean, in
// the same order and with the same arguments (github.com/aws/amazon-ec2-spot-interrupter, pkg/itn).
type SpotInterrupter struct {
	ec2 *ec2.Client
	fis *fis.Client
	iam *iam.Client
	sts *sts.Client

	region string
}

// The role that the program creates on its first run.
const (
	interrupterRole  = "aws-fis-itn"
	interrupterTrust = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":["fis.amazonaws.com"]},"Action":"sts:AssumeRole"}]}`
	interrupterRule  = `{"Version":"2012-10-17","Statement":[{"Sid":"AllowFISExperimentRoleSpotInstanceActions","Effect":"Allow",` +
		`"Action":["ec2:SendSpotInstanceInterruptions"],"Resource":"arn:aws:ec2:*:*:instance/*"}]}`
)

// NewSpotInterrupter uses the AWS of a configuration.
func NewSpotInterrupter(cfg aws.Config) *SpotInterrupter {
	return &SpotInterrupter{
		ec2: ec2.NewFromConfig(cfg), fis: fis.NewFromConfig(cfg), iam: iam.NewFromConfig(cfg), sts: sts.NewFromConfig(cfg), region: cfg.Region,
	}
}

// Start starts the experiment that interrupts instances: the recommendation comes at once, the
// notice after delay.
func (p *SpotInterrupter) Start(ctx context.Context, delay time.Duration, ids ...string) (*fistypes.Experiment, error) {
	if err := p.validate(ctx, ids); err != nil {
		return nil, err
	}
	who, err := p.sts.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return nil, err
	}
	role, err := p.role(ctx, aws.ToString(who.Account))
	if err != nil {
		return nil, err
	}
	template := &fis.CreateExperimentTemplateInput{
		Actions: map[string]fistypes.CreateExperimentTemplateActionInput{}, Targets: map[string]fistypes.CreateExperimentTemplateTargetInput{},
		StopConditions: []fistypes.CreateExperimentTemplateStopConditionInput{{Source: aws.String("none")}},
		RoleArn:        &role, Description: aws.String(fmt.Sprintf("trigger spot ITN for instances %v", ids)),
	}
	for batch := range slices.Chunk(ids, 5) {
		name, arns := fmt.Sprintf("itn%d", len(template.Actions)), []string{}
		for _, id := range batch {
			arns = append(arns, fmt.Sprintf("arn:aws:ec2:%s:%s:instance/%s", p.region, aws.ToString(who.Account), id))
		}
		template.Actions[name] = fistypes.CreateExperimentTemplateActionInput{
			ActionId:   aws.String("aws:ec2:send-spot-instance-interruptions"),
			Parameters: map[string]string{"durationBeforeInterruption": fmt.Sprintf("PT%dS", int((2*time.Minute + delay).Seconds()))},
			Targets:    map[string]string{"SpotInstances": name},
		}
		template.Targets[name] = fistypes.CreateExperimentTemplateTargetInput{
			ResourceType: aws.String("aws:ec2:spot-instance"), SelectionMode: aws.String("ALL"), ResourceArns: arns,
		}
	}
	made, err := p.fis.CreateExperimentTemplate(ctx, template)
	if err != nil {
		return nil, err
	}
	started, err := p.fis.StartExperiment(ctx, &fis.StartExperimentInput{ExperimentTemplateId: made.ExperimentTemplate.Id})
	if err != nil {
		return nil, err
	}
	return started.Experiment, nil
}

func (p *SpotInterrupter) validate(ctx context.Context, ids []string) error {
	pages := ec2.NewDescribeInstancesPaginator(p.ec2, &ec2.DescribeInstancesInput{InstanceIds: ids})
	for pages.HasMorePages() {
		out, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, r := range out.Reservations {
			for _, in := range r.Instances {
				if in.InstanceLifecycle != ec2types.InstanceLifecycleTypeSpot || in.State.Name != ec2types.InstanceStateNameRunning {
					return fmt.Errorf("%s is not a running Spot instance", aws.ToString(in.InstanceId))
				}
			}
		}
	}
	return nil
}

// role creates the role. If it exists, the program trusts that it is as it should be.
func (p *SpotInterrupter) role(ctx context.Context, account string) (string, error) {
	out, err := p.iam.CreateRole(ctx, &iam.CreateRoleInput{RoleName: aws.String(interrupterRole), AssumeRolePolicyDocument: aws.String(interrupterTrust)})
	var exists *iamtypes.EntityAlreadyExistsException
	if errors.As(err, &exists) {
		return "arn:aws:iam::" + account + ":role/" + interrupterRole, nil
	}
	if err != nil {
		return "", err
	}
	_, err = p.iam.PutRolePolicy(ctx, &iam.PutRolePolicyInput{
		PolicyName: aws.String(interrupterRole + "-policy"), PolicyDocument: aws.String(interrupterRule), RoleName: out.Role.RoleName,
	})
	return aws.ToString(out.Role.Arn), err
}

// Follow waits until the experiment has ended, and deletes its template.
func (p *SpotInterrupter) Follow(ctx context.Context, x *fistypes.Experiment) (err error) {
	defer func() {
		_, deleted := p.fis.DeleteExperimentTemplate(ctx, &fis.DeleteExperimentTemplateInput{Id: x.ExperimentTemplateId})
		err = errors.Join(err, deleted)
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Second):
		}
		out, err := p.fis.GetExperiment(ctx, &fis.GetExperimentInput{Id: x.Id})
		if err != nil {
			return err
		}
		switch out.Experiment.State.Status {
		case fistypes.ExperimentStatusCompleted:
			return nil
		case fistypes.ExperimentStatusFailed, fistypes.ExperimentStatusStopped:
			return fmt.Errorf("experiment: %s", aws.ToString(out.Experiment.State.Reason))
		}
	}
}
