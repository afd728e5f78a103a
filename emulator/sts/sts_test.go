package sts_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
)

// newClient returns a maker of real STS clients for credentials.
func newClient(t *testing.T) func(aws.Credentials) *sts.Client {
	_, url := emulatortest.Serve(t, emulator.Options{Account: "210987654321", Region: "eu-west-1"})
	return func(c aws.Credentials) *sts.Client {
		return sts.New(sts.Options{
			Region:           "us-east-1", // STS is global
			BaseEndpoint:     &url,
			Credentials:      aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return c, nil }),
			RetryMaxAttempts: 1,
		})
	}
}

func identity(t *testing.T, c *sts.Client) [3]string {
	t.Helper()
	out, err := c.GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	if err != nil {
		t.Fatal(err)
	}
	return [3]string{*out.Account, *out.Arn, *out.UserId}
}

func TestIdentitiesFollowCredentials(t *testing.T) {
	as := newClient(t)
	user := as(aws.Credentials{AccessKeyID: "AKIATEST", SecretAccessKey: "secret"})
	want := [3]string{"210987654321", "arn:aws:iam::210987654321:user/lifeboat", "AIDAEMULATEDLIFEBOAT1"}
	if diff := cmp.Diff(want, identity(t, user)); diff != "" {
		t.Errorf("user (-want +got):\n%s", diff)
	}

	role, err := user.AssumeRole(t.Context(), &sts.AssumeRoleInput{
		RoleArn: aws.String("arn:aws:iam::210987654321:role/path/drill"), RoleSessionName: aws.String("me"), DurationSeconds: aws.Int32(900),
	})
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(*role.Credentials.Expiration); left < 14*time.Minute || left > 15*time.Minute {
		t.Errorf("credentials expire in %v, want 15 min", left)
	}
	session := as(aws.Credentials{
		AccessKeyID: *role.Credentials.AccessKeyId, SecretAccessKey: *role.Credentials.SecretAccessKey, SessionToken: *role.Credentials.SessionToken,
	})
	want = [3]string{"210987654321", "arn:aws:sts::210987654321:assumed-role/drill/me", "AROAEMULATEDLIFEBOAT1:me"}
	if diff := cmp.Diff(want, identity(t, session)); diff != "" {
		t.Errorf("role session (-want +got):\n%s", diff)
	}

	token, err := session.GetSessionToken(t.Context(), &sts.GetSessionTokenInput{})
	if err != nil {
		t.Fatal(err)
	}
	same := as(aws.Credentials{AccessKeyID: *token.Credentials.AccessKeyId, SecretAccessKey: "x", SessionToken: *token.Credentials.SessionToken})
	if diff := cmp.Diff(want, identity(t, same)); diff != "" {
		t.Errorf("session token (-want +got):\n%s", diff)
	}
}

func TestAssumeRoleRejectsInvalidRequests(t *testing.T) {
	c := newClient(t)(aws.Credentials{AccessKeyID: "AKIATEST", SecretAccessKey: "secret"})
	good := sts.AssumeRoleInput{RoleArn: aws.String("arn:aws:iam::210987654321:role/drill"), RoleSessionName: aws.String("me")}
	for name, change := range map[string]func(*sts.AssumeRoleInput){
		"user for a role": func(in *sts.AssumeRoleInput) { in.RoleArn = aws.String("arn:aws:iam::210987654321:user/me") },
		"no ARN":          func(in *sts.AssumeRoleInput) { in.RoleArn = aws.String("drill") },
		"space in name":   func(in *sts.AssumeRoleInput) { in.RoleSessionName = aws.String("m e") },
		"too short":       func(in *sts.AssumeRoleInput) { in.DurationSeconds = aws.Int32(899) },
		"too long":        func(in *sts.AssumeRoleInput) { in.DurationSeconds = aws.Int32(43201) },
	} {
		in := good
		change(&in)
		_, err := c.AssumeRole(t.Context(), &in)
		var api smithy.APIError
		if !errors.As(err, &api) || api.ErrorCode() != "ValidationError" {
			t.Errorf("%s: error = %v, want ValidationError", name, err)
		}
	}
}
