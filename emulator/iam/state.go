package iam

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// maxTags is how many tags a resource may carry (IAM User Guide, IAM and AWS STS
// quotas).
const maxTags = 50

var (
	nameFormat = regexp.MustCompile(`^[\w+=,.@-]{1,128}$`)
	pathFormat = regexp.MustCompile(`^/([\x21-\x7e]{1,510}/)?$`)
)

// Entity is the common part of profiles and roles.
type Entity struct {
	Name    string
	Path    string
	ID      string
	ARN     string
	Created time.Time
	Tags    map[string]string
}

// Profile is an instance profile. It holds one role at most.
type Profile struct {
	Entity

	Roles []Role
}

// Role is a role, with its trust policy.
type Role struct {
	Entity

	Trust string // a policy document, in JSON
}

// State is the account's instance profiles and roles. It is safe for concurrent use.
type State struct {
	scope wire.Scope

	mu       sync.Mutex
	profiles map[string]*profile
	roles    map[string]*Role
	policies map[string]map[string]rolePolicy // by role and name
}

// profile stores the name of its role.
type profile struct {
	Entity

	role string
}

// New is a state without profiles and roles.
func New(scope wire.Scope) *State {
	return &State{scope: scope, profiles: map[string]*profile{}, roles: map[string]*Role{}, policies: map[string]map[string]rolePolicy{}}
}

// PutRole creates a role that EC2 may assume, if it does not exist. An example is the role of Karpenter's
// nodes, which must exist before Karpenter starts.
func (s *State) PutRole(name string) error {
	s.mu.Lock()
	known := s.roles[name] != nil
	s.mu.Unlock()
	if known {
		return nil
	}
	_, err := s.CreateRole(name, "/", trustEC2, nil)
	return err
}

const trustEC2 = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}`

// CreateRole makes a role. An empty path is "/".
func (s *State) CreateRole(name, path, trust string, tags map[string]string) (Role, error) {
	e, err := s.entity(roleKind, name, path, tags)
	if err != nil {
		return Role{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.roles[name] != nil {
		return Role{}, roleExists(name)
	}
	s.roles[name] = &Role{Entity: e, Trust: trust}
	return *s.roles[name], nil
}

// Role finds a role.
func (s *State) Role(name string) (Role, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.roles[name] == nil {
		return Role{}, noRole(name)
	}
	return *s.roles[name], nil
}

// DeleteRole deletes a role, unless it is in a profile.
func (s *State) DeleteRole(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.roles[name] == nil {
		return noRole(name)
	}
	for _, p := range s.profiles {
		if p.role == name {
			return stillTogether()
		}
	}
	if len(s.policies[name]) > 0 {
		return stillHasPolicies()
	}
	delete(s.roles, name)
	delete(s.policies, name)
	return nil
}

// CreateProfile makes an instance profile without a role. An empty path is "/".
func (s *State) CreateProfile(name, path string, tags map[string]string) (Profile, error) {
	e, err := s.entity(profileKind, name, path, tags)
	if err != nil {
		return Profile{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.profiles[name] != nil {
		return Profile{}, profileExists(name)
	}
	s.profiles[name] = &profile{Entity: e}
	return s.view(s.profiles[name]), nil
}

// Profile finds an instance profile.
func (s *State) Profile(name string) (Profile, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.find(name)
	if err != nil {
		return Profile{}, err
	}
	return s.view(p), nil
}

// ProfileRole is the ARN of the role in a profile; empty if there is none.
func (s *State) ProfileRole(name string) string {
	p, err := s.Profile(name)
	if err != nil || len(p.Roles) == 0 {
		return ""
	}
	return p.Roles[0].ARN
}

// Profiles lists the instance profiles below a path, by path and name.
func (s *State) Profiles(pathPrefix string) []Profile {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Profile
	for _, p := range s.profiles {
		if strings.HasPrefix(p.Path, pathPrefix) {
			out = append(out, s.view(p))
		}
	}
	slices.SortFunc(out, func(a, b Profile) int { return cmp.Compare(a.Path+a.Name, b.Path+b.Name) })
	return out
}

// DeleteProfile deletes an instance profile that holds no role.
func (s *State) DeleteProfile(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.find(name)
	switch {
	case err != nil:
		return err
	case p.role != "":
		return stillTogether()
	}
	delete(s.profiles, name)
	return nil
}

// AddRole puts a role into a profile that has none.
func (s *State) AddRole(profileName, role string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.find(profileName)
	switch {
	case err != nil:
		return err
	case s.roles[role] == nil:
		return noRole(role)
	case p.role != "":
		return profileFull()
	}
	p.role = role
	return nil
}

// RemoveRole takes a role out of a profile.
func (s *State) RemoveRole(profileName, role string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.find(profileName)
	switch {
	case err != nil:
		return err
	case p.role != role:
		return notInProfile(role, profileName)
	}
	p.role = ""
	return nil
}

// Tag sets and removes tags of a profile.
func (s *State) Tag(profileName string, set map[string]string, remove []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.find(profileName)
	if err != nil {
		return err
	}
	tags := map[string]string{}
	maps.Copy(tags, p.Tags)
	maps.Copy(tags, set)
	for _, key := range remove {
		delete(tags, key)
	}
	if len(tags) > maxTags {
		return tooManyTags()
	}
	p.Tags = tags // a new map: earlier views keep theirs
	return nil
}

// find needs the lock.
func (s *State) find(name string) (*profile, error) {
	if p := s.profiles[name]; p != nil {
		return p, nil
	}
	return nil, noProfile(name)
}

// view is a profile with its role. It needs the lock.
func (s *State) view(p *profile) Profile {
	out := Profile{Entity: p.Entity}
	if p.role != "" {
		out.Roles = []Role{*s.roles[p.role]}
	}
	return out
}

// kind is the name format of a kind of entity (IAM User Guide, IAM identifiers).
type kind struct{ resource, member, prefix string }

var (
	roleKind    = kind{"role", "roleName", "AROA"}
	profileKind = kind{"instance-profile", "instanceProfileName", "AIPA"}
)

// entity checks names, and makes a new entity with IAM's generated fields.
func (s *State) entity(kind kind, name, path string, tags map[string]string) (Entity, error) {
	path = cmp.Or(path, "/")
	switch {
	case !nameFormat.MatchString(name):
		return Entity{}, constraint(name, kind.member, `satisfy regular expression pattern: [\w+=,.@-]+`)
	case !pathFormat.MatchString(path):
		return Entity{}, validation("The specified value for path is invalid. It must begin and end with / and contain only alphanumeric characters and/or / characters.")
	case len(tags) > maxTags:
		return Entity{}, tooManyTags()
	}
	return Entity{
		Name: name, Path: path, ID: kind.prefix + rand.Text()[:17], Tags: tags, Created: time.Now().UTC().Truncate(time.Second),
		// IAM is global: its ARNs name no region.
		ARN: fmt.Sprintf("arn:%s:iam::%s:%s%s%s", s.scope.Partition(), s.scope.Account, kind.resource, path, name),
	}, nil
}
