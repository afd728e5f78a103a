package ec2

import (
	"encoding/base64"
	"strings"
)

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func checkImage(id string) error {
	if id == "" {
		return missingParameter("ImageId")
	}
	if rest, ok := strings.CutPrefix(id, "ami-"); !ok || rest == "" {
		return malformedImage(id)
	}
	return nil
}

// maxPerCall bounds one RunInstances call; the real bound is the account's quota.
const maxPerCall = 1000

func checkCount(least, most int) error {
	if least < 1 || most < least {
		return invalidValue("minCount and maxCount must be positive, and maxCount no less than minCount")
	}
	if most > maxPerCall {
		return quotaExceeded(most)
	}
	return nil
}

func checkType(name string) error {
	if _, ok := FindType(name); !ok {
		return invalidValue("Invalid value '" + name + "' for InstanceType. DescribeInstanceTypes lists those that this emulator knows.")
	}
	return nil
}

// Markets other than on demand and spot (EC2 API Reference, InstanceMarketOptions).
const (
	CapacityBlock            = "capacity-block"
	InterruptibleReservation = "interruptible-capacity-reservation"
)

func checkMarket(input LaunchInput) error {
	switch input.Market {
	case "":
		return nil
	case CapacityBlock, InterruptibleReservation:
	default:
		return invalidValue("Invalid value '" + input.Market + "' for MarketType")
	}
	switch {
	case input.Spot != nil:
		return invalidCombination("An instance cannot be of the market types 'spot' and '" + input.Market + "' at once")
	case input.CapacityReservationID == "":
		return invalidCombination("The market type '" + input.Market + "' needs a Capacity Reservation as target")
	default:
		return nil
	}
}

// maxUserData bounds user data, before base64 (EC2 User Guide, Instance user data).
const maxUserData = 16 << 10

func checkUserData(encoded string) error {
	raw, err := base64.StdEncoding.DecodeString(encoded)
	switch {
	case err != nil:
		return malformedUserData("Invalid BASE64 encoding of user data.")
	case len(raw) > maxUserData:
		return malformedUserData("User data is limited to 16384 bytes")
	default:
		return nil
	}
}

// checkRequestTags rejects tags for a spot request if there is none.
func checkRequestTags(input LaunchInput) error {
	if input.Spot == nil && len(input.RequestTags) > 0 {
		return invalidValue("You cannot specify tags for Spot instances requests if there are no Spot instances requests being created by the request.")
	}
	return nil
}

func checkSpot(o *SpotOptions) error {
	if o == nil {
		return nil
	}
	switch o.Behaviour {
	case "", Terminate:
		return nil
	case Stop, Hibernate:
		if !o.Persistent {
			return invalidCombination("The interruption behavior '" + string(o.Behaviour) + "' needs a persistent Spot request")
		}
		return nil
	default:
		return invalidValue("Invalid value '" + string(o.Behaviour) + "' for InstanceInterruptionBehavior")
	}
}
