package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	awsiam "github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/iam"
)

// drillPermissions is the output of `aws iam --role fis`.
type drillPermissions struct {
	Role   string       `json:"role"`
	Note   string       `json:"note"`
	Name   string       `json:"name"`
	Policy iam.Document `json:"policy"`
	Trust  iam.Document `json:"trust"`
	// ARN is set if the role was created or corrected.
	ARN string `json:"arn,omitempty"`
}

// drillRole prints the role of drills, and creates it if f says so.
func (s *session) drillRole(ctx context.Context, f iamFlags) error {
	w, err := s.setupAt(ctx, f.awsFlags)
	if err != nil {
		return err
	}
	p := drillPermissions{
		Role: roleFIS, Name: awssetup.DrillRole(w.Cluster), Policy: iam.Drill(w), Trust: iam.DrillTrust(w),
		Note: "What AWS Fault Injection Service needs to interrupt spot nodes of cluster " + w.Cluster + ", for lifeboat interrupt --via fis. " +
			"Instances without a tag of the cluster are out of its reach. The caller of lifeboat interrupt needs iam:PassRole for this role. " +
			"The managed policy AWSFaultInjectionSimulatorEC2Access does as well, for all instances of the account.",
	}
	if !s.isJSON() {
		if err := s.showDrillRole(p); err != nil {
			return err
		}
	}
	if f.create {
		if p.ARN, err = s.createDrillRole(ctx, f, w, p); err != nil {
			return err
		}
	}
	if s.isJSON() {
		return s.writeJSON(p)
	}
	return nil
}

func (s *session) showDrillRole(p drillPermissions) error {
	s.out.Printf("%s\n", p.Note)
	if err := s.showDocument("Policy", "", p.Policy); err != nil {
		return err
	}
	return s.showDocument("Trust", "", p.Trust)
}

func (s *session) createDrillRole(ctx context.Context, f iamFlags, w awssetup.Wiring, p drillPermissions) (string, error) {
	cfg, sandbox, err := s.awsConfig(ctx)
	if err != nil {
		return "", err
	}
	if cfg.Region == "" {
		cfg.Region = w.Region // IAM is global, but the SDK needs one
	}
	trust, err := json.Marshal(p.Trust)
	if err != nil {
		return "", fmt.Errorf("writing the trust policy: %w", err)
	}
	policy, err := json.Marshal(p.Policy)
	if err != nil {
		return "", fmt.Errorf("writing the policy: %w", err)
	}
	what := fmt.Sprintf("This creates or corrects the role %s in AWS account %s.", p.Name, w.Account)
	if err := s.askBefore(ctx, what, f.yes || sandbox.endpoint != ""); err != nil {
		return "", err
	}
	arn, created, err := awssetup.PutDrillRole(ctx, awsiam.NewFromConfig(cfg), w.Cluster, string(trust), string(policy))
	switch {
	case errors.Is(err, awssetup.ErrForeignRole):
		return "", fmt.Errorf("%w=%s: nothing was changed; delete the role, or write the printed policies to it yourself", err, w.Cluster)
	case err != nil:
		return "", awsError{fmt.Errorf("%w (run it again to continue)", err)}
	}
	if !s.isJSON() {
		done := "corrected"
		if created {
			done = "created"
		}
		s.out.Printf("\nThe role was %s. To interrupt a node:\n  %s interrupt NODE --fis-role-arn %s\n", done, s.name, arn)
		s.out.Printf("To delete the role:\n  aws iam delete-role-policy --role-name %s --policy-name %s\n  aws iam delete-role --role-name %s\n",
			p.Name, awssetup.DrillPolicy, p.Name)
	}
	return arn, nil
}
