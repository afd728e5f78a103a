// Package sts emulates AWS Security Token Service: who am I, and temporary
// credentials. Nothing is checked, since the emulator checks no signatures. Package iam holds the
// policies of roles.
package sts

import (
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// Credentials are temporary ones. Their secrets are never checked.
type Credentials struct {
	AccessKeyID     string
	SecretAccessKey string
	SessionToken    string
	Expiration      time.Time
}

// State has the identities of the temporary credentials.
type State struct {
	scope wire.Scope

	mu     sync.Mutex
	issued map[string]wire.Identity // by access key id
}

// New makes a state in which every caller is the account's one user.
func New(scope wire.Scope) *State {
	return &State{scope: scope, issued: map[string]wire.Identity{}}
}

// Identify tells who holds an access key. Keys that were not issued here are
// the account's one user.
func (s *State) Identify(accessKey string) wire.Identity {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id, ok := s.issued[accessKey]; ok {
		return id
	}
	return wire.Identity{
		UserID: "AIDAEMULATEDLIFEBOAT1",
		ARN:    fmt.Sprintf("arn:%s:iam::%s:user/lifeboat", s.scope.Partition(), s.scope.Account),
	}
}

// AssumeRole issues credentials of a role session. The role need not exist.
func (s *State) AssumeRole(roleARN, session string, until time.Time) (wire.Identity, Credentials) {
	parts := strings.SplitN(roleARN, ":", 6)
	account, role := parts[4], parts[5][strings.LastIndex(parts[5], "/")+1:]
	id := wire.Identity{
		UserID: "AROAEMULATEDLIFEBOAT1:" + session,
		ARN:    fmt.Sprintf("arn:%s:sts::%s:assumed-role/%s/%s", parts[1], account, role, session),

		RoleARN: roleARN,
	}
	return id, s.issue(id, until)
}

// AssumeRoleOfInstance issues the credentials that an instance reads from its metadata (EC2 User
// Guide, "IAM roles for Amazon EC2").
func (s *State) AssumeRoleOfInstance(roleARN, instanceID string, until time.Time) Credentials {
	id, c := s.AssumeRole(roleARN, instanceID, until)
	id.InstanceARN = s.scope.ARN("ec2", "instance/"+instanceID)
	s.mu.Lock()
	defer s.mu.Unlock()
	id.Expires = until
	s.issued[c.AccessKeyID] = id
	return c
}

// SessionToken issues temporary credentials of the same identity.
func (s *State) SessionToken(accessKey string, until time.Time) Credentials {
	return s.issue(s.Identify(accessKey), until)
}

func (s *State) issue(id wire.Identity, until time.Time) Credentials {
	c := Credentials{
		AccessKeyID:     "ASIA" + rand.Text()[:16],
		SecretAccessKey: rand.Text() + rand.Text()[:14],
		SessionToken:    rand.Text() + rand.Text(),
		Expiration:      until,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id.Expires = until
	s.issued[c.AccessKeyID] = id
	return c
}
