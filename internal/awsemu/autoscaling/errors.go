package autoscaling

import "github.com/lifeboat-dev/lifeboat/internal/awsemu/wire"

// Errors as Auto Scaling gives them. Its API models few: what is wrong with a request is
// a ValidationError, and only the text says what.

func validation(format string, args ...any) error {
	return wire.Errorf("ValidationError", format, args...)
}

func groupNotFound(name string) error {
	return validation("AutoScalingGroup name not found - AutoScalingGroup '%s' not found", name)
}

// noActiveAction is the answer for every action that cannot be ended, whatever the
// reason.
func noActiveAction(ref Ref) error {
	if ref.Token != "" {
		return validation("No active Lifecycle Action found with token %s", ref.Token)
	}
	return validation("No active Lifecycle Action found with instance ID %s", ref.InstanceID)
}

// constraint is the answer of AWS's own validation of a member.
func constraint(value any, member, want string) error {
	return validation("1 validation error detected: Value '%v' at '%s' failed to satisfy constraint: Member must %s", value, member, want)
}

func alreadyExists(name string) error {
	return wire.Errorf("AlreadyExists", "AutoScalingGroup by this name already exists - A group with the name %s already exists", name)
}

func limitExceeded(name string) error {
	return wire.Errorf("LimitExceeded", "You've exceeded the limit of %d lifecycle hooks for the group %s", maxHooks, name)
}

func invalidToken() error {
	return wire.Errorf("InvalidNextToken", "The NextToken value is not valid.")
}
