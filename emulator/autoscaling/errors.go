package autoscaling

import (
	"errors"
	"net/http"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// Errors as Auto Scaling returns them. Its API models few: a wrong request is a ValidationError,
// and only the text gives the cause.

func validation(format string, args ...any) error {
	return wire.Errorf("ValidationError", format, args...)
}

func groupNotFound(name string) error {
	return validation("AutoScalingGroup name not found - AutoScalingGroup '%s' not found", name)
}

// noActiveAction is the error for every action that cannot be completed, for any reason.
func noActiveAction(ref Ref) error {
	if ref.Token != "" {
		return validation("No active Lifecycle Action found with token %s", ref.Token)
	}
	return validation("No active Lifecycle Action found with instance ID %s", ref.InstanceID)
}

// constraint is the error of AWS's own validation of a member.
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

func instanceNotManaged(id string) error {
	return validation("Instance Id not found - No managed instance found for instance ID: %s", id)
}

func notInGroup(id, groupName string) error {
	return validation("The instance %s is not part of Auto Scaling group %s.", id, groupName)
}

// invalidTemplate wraps EC2's error about a launch template.
func invalidTemplate(err error) error {
	var e *wire.Error
	if errors.As(err, &e) {
		return validation("You must use a valid fully-formed launch template. %s", e.Message)
	}
	return err
}

func outOfBounds(verb string, g *group, n int) error {
	return validation("AutoScalingGroup %s has min-size=%d, max-size=%d, and desired-size=%d. To %s %d instance%s, please update the AutoScalingGroup sizes appropriately.",
		g.Name, g.Min, g.Max, g.Desired, verb, n, plural(n))
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// checkSizes rejects inconsistent sizes.
func checkSizes(least, most, desired int) error {
	switch {
	case least < 0:
		return constraint(least, "minSize", "have value greater than or equal to 0")
	case most < least:
		return validation("Max bound, %d, must be greater than or equal to min bound, %d", most, least)
	case desired < least || desired > most:
		return validation("Desired capacity:%d must be between the specified min size:%d and max size:%d", desired, least, most)
	default:
		return nil
	}
}

func activityInProgress(format string, args ...any) error {
	return wire.Errorf("ScalingActivityInProgress", format, args...)
}

func resourceInUse(format string, args ...any) error {
	return wire.Errorf("ResourceInUse", format, args...)
}

func refreshInProgress(what string) error {
	return wire.Errorf("InstanceRefreshInProgress", "%s while an Instance Refresh is in progress.", what)
}

func pendingDelete(name string) error {
	return validation("AutoScalingGroup '%s' is pending delete", name)
}

func belowMinimum(g *group) error {
	return validation("Currently, desiredSize equals minSize (%d). Terminating instance without replacement will violate group's min size constraint. Either set shouldDecrementDesiredCapacity flag to false or lower group's min size.", g.Min)
}

func contention(name string) error {
	e := wire.Errorf("ResourceContention", "You already have a pending update to an Amazon EC2 Auto Scaling resource: %s", name)
	e.Status = http.StatusInternalServerError
	return e
}
