package sandbox

import (
	"encoding/json"
	"fmt"
	"path"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/iam"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
)

const (
	// controllerRole is the IAM role of lifeboatd.
	controllerRole = "lifeboat-controller"
	// rolePolicy is the name of the policy of each role.
	rolePolicy = "lifeboat"
	// roleSession is the longest session of a role (IAM User Guide, "Roles terms and concepts").
	roleSession = 12 * time.Hour
)

// ControllerAWSConfig is the AWS configuration of a client with lifeboatd's role and Options.LimitRole.
func (s *Sandbox) ControllerAWSConfig() (aws.Config, error) {
	id, secret, err := s.assumeControllerRole()
	cfg := s.AWSConfig()
	cfg.Credentials = awshttp.StaticCredentials(id, secret)
	return cfg, err
}

// controllerRoleEnv are the variables of lifeboatd with the credentials of its role.
func (s *Sandbox) controllerRoleEnv() ([]string, error) {
	if !s.opts.LimitRole {
		return nil, nil
	}
	id, secret, err := s.assumeControllerRole()
	if err != nil || s.opts.SessionLife == 0 {
		return []string{"AWS_ACCESS_KEY_ID=" + id, "AWS_SECRET_ACCESS_KEY=" + secret}, err
	}
	if s.sessions == nil {
		s.sessions, err = newSessions(func(until time.Time) (id, secret, token string) {
			_, c := s.cloud.server.States.STS.AssumeRole(s.roleARN(controllerRole), "controller", until)
			return c.AccessKeyID, c.SecretAccessKey, c.SessionToken
		}, s.opts.SessionLife)
		if err != nil {
			return nil, fmt.Errorf("serving credentials: %w", err)
		}
	}
	return s.sessions.env(), nil
}

func (s *Sandbox) roleARN(role string) string {
	return "arn:aws:iam::" + s.State().Account + ":role/" + role
}

// assumeControllerRole gives lifeboatd's role the policy that `lifeboat aws iam` prints, and returns
// the credentials of a new session. The emulator then evaluates the policy on each call.
func (s *Sandbox) assumeControllerRole() (id, secret string, err error) {
	st := s.State()
	document := iam.Controller(s.Wiring(), false)
	if s.opts.WaitForDeregistration {
		document = iam.ReadTargetHealth(document, s.Wiring())
	}
	if st.KarpenterQueueURL != "" {
		document = iam.FeedKarpenter(document, s.Wiring(), path.Base(st.KarpenterQueueURL))
	}
	text, err := json.Marshal(document)
	if err != nil {
		return "", "", fmt.Errorf("writing the policy of lifeboatd's role: %w", err)
	}
	return s.assumeRole(controllerRole, string(text))
}

// assumeRole gives a role a policy, and returns the credentials of a new session.
func (s *Sandbox) assumeRole(role, policy string) (id, secret string, err error) {
	states := s.cloud.server.States
	if err := states.IAM.PutRole(role); err != nil {
		return "", "", fmt.Errorf("making the role %s: %w", role, err)
	}
	if err := s.putPolicy(role, policy); err != nil {
		return "", "", err
	}
	_, c := states.STS.AssumeRole(s.roleARN(role), "controller", time.Now().Add(roleSession))
	return c.AccessKeyID, c.SecretAccessKey, nil
}

// putPolicy replaces the policy of a role.
func (s *Sandbox) putPolicy(role, policy string) error {
	if err := s.cloud.server.States.IAM.PutRolePolicy(role, rolePolicy, policy); err != nil {
		return fmt.Errorf("setting the policy of the role %s: %w", role, err)
	}
	return nil
}
