package sts

import (
	"context"
	"regexp"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

var (
	roleFormat    = regexp.MustCompile(`^arn:[a-z-]+:iam::[0-9]{12}:role/[\w+=,.@/-]+$`)
	sessionFormat = regexp.MustCompile(`^[\w+=,.@-]{2,64}$`)
)

// api turns requests into calls on the state.
type api struct {
	state *State
	scope wire.Scope
}

type callerIdentity struct {
	Arn     string
	UserID  string `xml:"UserId"`
	Account string
}

func (a *api) getCallerIdentity(_ context.Context, r *wire.Request, _ *wire.None) (*callerIdentity, error) {
	id := a.state.Identify(r.AccessKey)
	return &callerIdentity{Arn: id.ARN, UserID: id.UserID, Account: a.scope.Account}, nil
}

// credentials is Credentials as it goes on the wire.
type credentials struct {
	AccessKeyID     string `xml:"AccessKeyId"`
	SecretAccessKey string
	SessionToken    string
	Expiration      wire.Time
}

type sessionTokenInput struct {
	DurationSeconds *int
}

type sessionTokenOutput struct {
	Credentials credentials
}

func (a *api) getSessionToken(_ context.Context, r *wire.Request, in *sessionTokenInput) (*sessionTokenOutput, error) {
	until, err := expiry(in.DurationSeconds, 12*time.Hour, 36*time.Hour)
	if err != nil {
		return nil, err
	}
	return &sessionTokenOutput{Credentials: a.onWire(a.state.SessionToken(r.AccessKey, until))}, nil
}

type assumeRoleInput struct {
	RoleArn         string
	RoleSessionName string
	DurationSeconds *int
}

type assumedRoleUser struct {
	AssumedRoleID string `xml:"AssumedRoleId"`
	Arn           string
}

type assumeRoleOutput struct {
	AssumedRoleUser assumedRoleUser
	Credentials     credentials
}

func (a *api) assumeRole(_ context.Context, _ *wire.Request, in *assumeRoleInput) (*assumeRoleOutput, error) {
	if !roleFormat.MatchString(in.RoleArn) {
		return nil, wire.Errorf("ValidationError", "%s is invalid", in.RoleArn)
	}
	if !sessionFormat.MatchString(in.RoleSessionName) {
		return nil, wire.Errorf("ValidationError", "1 validation error detected: Value '%s' at 'roleSessionName' "+
			`failed to satisfy constraint: Member must satisfy regular expression pattern: [\w+=,.@-]*`, in.RoleSessionName)
	}
	until, err := expiry(in.DurationSeconds, time.Hour, 12*time.Hour)
	if err != nil {
		return nil, err
	}
	id, c := a.state.AssumeRole(in.RoleArn, in.RoleSessionName, until)
	return &assumeRoleOutput{
		AssumedRoleUser: assumedRoleUser{AssumedRoleID: id.UserID, Arn: id.ARN},
		Credentials:     a.onWire(c),
	}, nil
}

func (a *api) onWire(c Credentials) credentials {
	return credentials{
		AccessKeyID:     c.AccessKeyID,
		SecretAccessKey: c.SecretAccessKey,
		SessionToken:    c.SessionToken,
		Expiration:      wire.Time{Time: a.scope.Clock.At(c.Expiration)},
	}
}

// expiry checks a lifetime in seconds; AWS's shortest is 15 minutes.
func expiry(seconds *int, usual, longest time.Duration) (time.Time, error) {
	d := usual
	if seconds != nil {
		d = time.Duration(*seconds) * time.Second
	}
	if d < 15*time.Minute || d > longest {
		return time.Time{}, wire.Errorf("ValidationError",
			"1 validation error detected: Value '%d' at 'durationSeconds' failed to satisfy constraint: "+
				"Member must have value between 900 and %d", int(d.Seconds()), int(longest.Seconds()))
	}
	return time.Now().Add(d).Truncate(time.Second), nil
}
