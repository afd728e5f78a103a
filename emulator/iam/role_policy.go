package iam

import (
	"context"
	"net/url"
	"strings"
	"unicode"

	"github.com/lifeboat-dev/lifeboat/emulator/policy"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// maxRolePolicies is the size of all inline policies of a role, without white space (IAM User
// Guide, IAM and AWS STS quotas).
const maxRolePolicies = 10240

// rolePolicy is an inline policy of a role.
type rolePolicy struct {
	document string
	parsed   *policy.Policy
}

func (p rolePolicy) size() int {
	return len(strings.Join(strings.FieldsFunc(p.document, unicode.IsSpace), ""))
}

// PutRolePolicy sets an inline policy of a role. From the first one on, sessions of the role may do
// only what its policies, or the policy of a resource, allow. A role that never had a policy may do
// everything, so that a test needs no policies unless it is about them.
func (s *State) PutRolePolicy(role, name, document string) error {
	if !nameFormat.MatchString(name) {
		return constraint(name, "policyName", `satisfy regular expression pattern: [\w+=,.@-]+`)
	}
	parsed, err := policy.ParseIdentity(document)
	if err != nil {
		return unusablePolicy(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.roles[role] == nil {
		return noRole(role)
	}
	added := rolePolicy{document, parsed}
	size := added.size()
	for other, p := range s.policies[role] {
		if other != name {
			size += p.size()
		}
	}
	if size > maxRolePolicies {
		return policyTooLarge(role)
	}
	if s.policies[role] == nil {
		s.policies[role] = map[string]rolePolicy{}
	}
	s.policies[role][name] = added
	return nil
}

// RolePolicy is the document of an inline policy.
func (s *State) RolePolicy(role, name string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.policies[role][name]
	switch {
	case s.roles[role] == nil:
		return "", noRole(role)
	case !ok:
		return "", noPolicy(name)
	}
	return p.document, nil
}

// DeleteRolePolicy removes an inline policy.
func (s *State) DeleteRolePolicy(role, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.policies[role][name]
	switch {
	case s.roles[role] == nil:
		return noRole(role)
	case !ok:
		return noPolicy(name)
	}
	delete(s.policies[role], name)
	return nil
}

// RolePolicies are the policies of the role with an ARN. Limited is false for an unknown role, and
// for one that never had a policy.
func (s *State) RolePolicies(roleARN string) (policies []*policy.Policy, limited bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	attached, limited := s.policies[roleARN[strings.LastIndex(roleARN, "/")+1:]]
	for _, p := range attached {
		policies = append(policies, p.parsed)
	}
	return policies, limited
}

// Allowed reports whether the role with an ARN may do something to a resource with these tags.
// A role that is unknown, or never had a policy, may do everything.
func (s *State) Allowed(roleARN, action, resource string, tags map[string]string) bool {
	policies, limited := s.RolePolicies(roleARN)
	request := policy.Request{
		ARN: roleARN, RoleARN: roleARN, Account: s.scope.Account, Action: action, Resource: resource, Keys: wire.TagKeys("aws:ResourceTag/", tags),
	}
	allowed := !limited
	for _, p := range policies {
		switch p.Decide(request) {
		case policy.Denied:
			return false
		case policy.Allowed:
			allowed = true
		case policy.Silent:
		}
	}
	return allowed
}

// SetTrust replaces the trust policy of a role.
func (s *State) SetTrust(name, trust string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.roles[name] == nil {
		return noRole(name)
	}
	s.roles[name].Trust = trust
	return nil
}

type rolePolicyInput struct {
	Role     string `query:"RoleName"`
	Name     string `query:"PolicyName"`
	Document string `query:"PolicyDocument"`
}

type rolePolicyOutput struct {
	Role     string `xml:"RoleName"`
	Name     string `xml:"PolicyName"`
	Document string `xml:"PolicyDocument"`
}

func (a *api) putRolePolicy(_ context.Context, _ *wire.Request, in *rolePolicyInput) (*wire.None, error) {
	return nil, a.state.PutRolePolicy(in.Role, in.Name, in.Document)
}

func (a *api) getRolePolicy(_ context.Context, _ *wire.Request, in *rolePolicyInput) (*rolePolicyOutput, error) {
	document, err := a.state.RolePolicy(in.Role, in.Name)
	return &rolePolicyOutput{in.Role, in.Name, url.PathEscape(document)}, err
}

func (a *api) deleteRolePolicy(_ context.Context, _ *wire.Request, in *rolePolicyInput) (*wire.None, error) {
	return nil, a.state.DeleteRolePolicy(in.Role, in.Name)
}
