package sqs

import (
	"net/http"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// prefix is what most codes carry in the Query protocol, and so in the
// x-amzn-query-error header. Which do is in the API's Query model.
const prefix = "AWS.SimpleQueueService."

func prefixed(code, format string, args ...any) *wire.Error {
	e := wire.Errorf(code, format, args...)
	e.QueryCode = prefix + code
	return e
}

func noSuchQueue() *wire.Error {
	return &wire.Error{
		Code:      "QueueDoesNotExist",
		QueryCode: prefix + "NonExistentQueue",
		Message:   "The specified queue does not exist.",
	}
}

func queueExists(attribute string) *wire.Error {
	e := wire.Errorf("QueueNameExists", "A queue already exists with the same name and a different value for attribute %s", attribute)
	e.QueryCode = "QueueAlreadyExists"
	return e
}

func unsupported(what string) *wire.Error {
	return prefixed("UnsupportedOperation", "%s are not emulated.", what)
}

func overLimit() *wire.Error {
	return &wire.Error{Status: http.StatusForbidden, Code: "OverLimit", Message: "Too many messages in flight."}
}

func purgeInProgress(queue string) *wire.Error {
	e := prefixed("PurgeQueueInProgress", "Only one PurgeQueue operation on %s is allowed every 60 seconds.", queue)
	e.Status = http.StatusForbidden
	return e
}

func unknownAttribute(name string) *wire.Error {
	return wire.Errorf("InvalidAttributeName", "Unknown Attribute %s.", name)
}

func badAttribute(name string) *wire.Error {
	return badAttributeValue("Invalid value for the parameter %s.", name)
}

func badAttributeValue(format string, args ...any) *wire.Error {
	return wire.Errorf("InvalidAttributeValue", format, args...)
}

func badHandle(handle string) *wire.Error {
	return wire.Errorf("ReceiptHandleIsInvalid", "The input receipt handle \"%s\" is not a valid receipt handle.", handle)
}

// The remaining errors are not in the service's model: AWS's front end returns them, and SDKs know
// them by their Query codes only.

func badParameter(format string, args ...any) *wire.Error {
	e := wire.Errorf("InvalidParameterValueException", format, args...)
	e.QueryCode, e.Namespace = "InvalidParameterValue", wire.Coral
	return e
}

func missingParameter(name string) *wire.Error {
	e := wire.Errorf("MissingRequiredParameterException", "The request must contain the parameter %s.", name)
	e.QueryCode, e.Namespace = "MissingParameter", wire.Coral
	return e
}
