package iam

import (
	"net/http"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// Errors as IAM returns them (IAM API Reference). Karpenter distinguishes a missing profile from a
// missing role by the word "role" in the message.

func failure(status int, code, format string, args ...any) error {
	e := wire.Errorf(code, format, args...)
	e.Status = status
	return e
}

func noProfile(name string) error {
	return failure(http.StatusNotFound, "NoSuchEntity", "Instance Profile %s cannot be found.", name)
}

func noRole(name string) error {
	return failure(http.StatusNotFound, "NoSuchEntity", "The role with name %s cannot be found.", name)
}

func notInProfile(role, profile string) error {
	return failure(http.StatusNotFound, "NoSuchEntity", "The role with name %s cannot be found in instance profile %s.", role, profile)
}

func profileExists(name string) error {
	return failure(http.StatusConflict, "EntityAlreadyExists", "Instance Profile %s already exists.", name)
}

func roleExists(name string) error {
	return failure(http.StatusConflict, "EntityAlreadyExists", "Role with name %s already exists.", name)
}

func profileFull() error {
	return failure(http.StatusConflict, "LimitExceeded", "Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1")
}

func tooManyTags() error {
	return failure(http.StatusConflict, "LimitExceeded", "Cannot exceed quota for TagsPerResource: %d", maxTags)
}

// stillTogether is the error for the deletion of a profile with a role, or of such a role.
func stillTogether() error {
	return failure(http.StatusConflict, "DeleteConflict", "Cannot delete entity, must remove roles from instance profile first.")
}

func malformedPolicy() error {
	return wire.Errorf("MalformedPolicyDocument", "This policy contains invalid Json")
}

func unusablePolicy(err error) error {
	return wire.Errorf("MalformedPolicyDocument", "Syntax errors in policy: %v", err)
}

func stillHasPolicies() error {
	return failure(http.StatusConflict, "DeleteConflict", "Cannot delete entity, must delete policies first.")
}

func noPolicy(name string) error {
	return failure(http.StatusNotFound, "NoSuchEntity", "The role policy with name %s cannot be found.", name)
}

func policyTooLarge(role string) error {
	return failure(http.StatusConflict, "LimitExceeded", "Maximum policy size of %d bytes exceeded for role %s", maxRolePolicies, role)
}

func validation(format string, args ...any) error {
	return wire.Errorf("ValidationError", format, args...)
}

// constraint is the error of AWS's own validation of a member.
func constraint(value any, member, want string) error {
	return validation("1 validation error detected: Value '%v' at '%s' failed to satisfy constraint: Member must %s", value, member, want)
}
