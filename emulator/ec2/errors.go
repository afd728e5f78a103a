package ec2

import (
	"net/http"
	"strings"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// Errors as EC2 returns them (EC2 API Reference, Error codes).

func malformedInstance(id string) error {
	return wire.Errorf("InvalidInstanceID.Malformed", "Invalid id: %q", id)
}

func instancesNotFound(ids []string) error {
	if len(ids) == 1 {
		return wire.Errorf("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", ids[0])
	}
	return wire.Errorf("InvalidInstanceID.NotFound", "The instance IDs '%s' do not exist", strings.Join(ids, ", "))
}

func spotRequestNotFound(id string) error {
	return wire.Errorf("InvalidSpotInstanceRequestID.NotFound", "The spot instance request ID '%s' does not exist", id)
}

func invalidID(id string) error {
	return wire.Errorf("InvalidID", "The ID '%s' is not valid", id)
}

// resourceNotFound is the error for an unknown id, by its prefix.
func resourceNotFound(id string) error {
	prefix, _, _ := strings.Cut(id, "-")
	switch prefix {
	case "i":
		return instancesNotFound([]string{id})
	case "sir":
		return spotRequestNotFound(id)
	case "subnet":
		return subnetNotFound(id)
	case "sg":
		return groupNotFound(id)
	case "vpc":
		return wire.Errorf("InvalidVpcID.NotFound", "The vpc ID '%s' does not exist", id)
	case "lt":
		return templateIDNotFound(id)
	case "fleet":
		return wire.Errorf("InvalidFleetId.NotFound", "The fleet ID '%s' does not exist", id)
	case "vol":
		return wire.Errorf("InvalidVolume.NotFound", "The volume '%s' does not exist.", id)
	default:
		return invalidID(id)
	}
}

func groupNotFound(id string) error {
	return wire.Errorf("InvalidGroup.NotFound", "The security group '%s' does not exist", id)
}

func imageNotFound(id string) error {
	return wire.Errorf("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", id)
}

func templateIDNotFound(id string) error {
	return wire.Errorf("InvalidLaunchTemplateId.NotFound", "The specified launch template, with template ID %s, does not exist.", id)
}

func templateNameNotFound(name string) error {
	return wire.Errorf("InvalidLaunchTemplateName.NotFoundException",
		"At least one of the launch templates specified in the request does not exist: %s", name)
}

func malformedTemplateName() error {
	return wire.Errorf("InvalidLaunchTemplateName.MalformedException",
		"Launch template names must be 3 to 128 characters long, of letters, digits and ( ) . / _ -.")
}

func templateExists(name string) error {
	return wire.Errorf("InvalidLaunchTemplateName.AlreadyExistsException", "Launch template name already in use: %s", name)
}

func templateVersionNotFound(version string) error {
	return wire.Errorf("InvalidLaunchTemplateId.VersionNotFound", "Could not find launch template version %s", version)
}

func invalidFleet(message string) error {
	return &wire.Error{Code: "InvalidFleetConfig", Message: message}
}

func malformedUserData(message string) error {
	return &wire.Error{Code: "InvalidUserData.Malformed", Message: message}
}

func malformedImage(id string) error {
	return wire.Errorf("InvalidAMIID.Malformed", "Invalid id: %q (expecting \"ami-...\")", id)
}

func subnetNotFound(id string) error {
	return wire.Errorf("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", id)
}

func noAddresses(subnet string) error {
	return wire.Errorf("InsufficientFreeAddressesInSubnet", "There are not enough free addresses in subnet '%s' to satisfy the requested number of instances.", subnet)
}

func quotaExceeded(n int) error {
	return wire.Errorf("InstanceLimitExceeded", "Your quota allows for %d instances per call; you requested %d.", maxPerCall, n)
}

func tokenReused() error {
	return wire.Errorf("IdempotentParameterMismatch", "Arguments on this idempotent request are inconsistent with arguments used in previous request(s).")
}

func missingParameter(name string) error {
	return wire.Errorf("MissingParameter", "The request must contain the parameter %s", name)
}

func invalidValue(message string) error {
	return &wire.Error{Code: "InvalidParameterValue", Message: message}
}

func invalidCombination(message string) error {
	return &wire.Error{Code: "InvalidParameterCombination", Message: message}
}

func tooManyTags(id string) error {
	return wire.Errorf("TagLimitExceeded", "You may specify a maximum of %d tags for the resource '%s'.", maxTags, id)
}

func wrongState(id, participle string) error {
	return wire.Errorf("IncorrectInstanceState", "The instance '%s' is not in a state from which it can be %s.", id, participle)
}

func oneTimeSpot(id string) error {
	return wire.Errorf("UnsupportedOperation", "You can't stop the Spot Instance '%s' because it is associated with a one-time Spot Instance request. You can only stop Spot Instances associated with persistent Spot Instance requests.", id)
}

func notYoursToStart(id string) error {
	return wire.Errorf("IncorrectSpotRequestState", "You can't start the Spot Instance '%s' because the associated Spot Instance request is not in an appropriate state to support start.", id)
}

func dryRun() error {
	return &wire.Error{Status: http.StatusPreconditionFailed, Code: "DryRunOperation",
		Message: "Request would have succeeded, but DryRun flag is set."}
}

func unsupported(message string) error {
	return &wire.Error{Code: "UnsupportedOperation", Message: message}
}

func unfulfillable() error {
	return &wire.Error{Code: "UnfulfillableCapacity",
		Message: "Unable to fulfill capacity due to your request configuration. Please adjust your request and try again."}
}

func priceTooLow(bid, price float64) error {
	return wire.Errorf("SpotMaxPriceTooLow",
		"Your Spot request price of %g is lower than the minimum required Spot request fulfillment price of %g.", bid, price)
}
