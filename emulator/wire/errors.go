package wire

import (
	"errors"
	"fmt"
	"net/http"
)

// Error is an AWS error, rendered in each protocol's shape.
type Error struct {
	// Status is the HTTP status; 0 means 400. From 500 on the fault is the
	// receiver's, below it the sender's.
	Status int
	// Code is the error's name, as in "QueueDoesNotExist".
	Code string
	// QueryCode is the name in the Query protocol where it differs, as in
	// "AWS.SimpleQueueService.NonExistentQueue".
	QueryCode string
	// Namespace replaces the service's ErrorNamespace.
	Namespace string
	// Message is the text for users.
	Message string
	// Fields are further members of JSON errors.
	Fields map[string]any
}

// Error implements error.
func (e *Error) Error() string {
	return e.queryCode() + ": " + e.Message
}

// Errorf makes a 400 Error with a formatted message.
func Errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Coral is the namespace of errors from AWS's common front end, before the service handles the
// request.
const Coral = "com.amazon.coral.service"

// NameIn is the error's name in a protocol.
func (e *Error) NameIn(p Protocol) string {
	if p == Query || p == EC2Query {
		return e.queryCode()
	}
	return e.Code
}

func (e *Error) status() int {
	if e.Status == 0 {
		return http.StatusBadRequest
	}
	return e.Status
}

func (e *Error) queryCode() string {
	if e.QueryCode != "" {
		return e.QueryCode
	}
	return e.Code
}

// fault is "Sender" or "Receiver".
func (e *Error) fault() string {
	if e.status() >= http.StatusInternalServerError {
		return "Receiver"
	}
	return "Sender"
}

// asError turns any error into an *Error; known reports whether it was one.
func asError(err error) (e *Error, known bool) {
	if errors.As(err, &e) {
		return e, true
	}
	return &Error{
		Status:  http.StatusInternalServerError,
		Code:    "InternalFailure",
		Message: "The request processing has failed because of an unknown error, exception or failure.",
	}, false
}

// unknownAction is the error for an unknown action, from AWS's lists of common errors.
func unknownAction(p Protocol, action string) *Error {
	e := &Error{Code: "UnknownOperationException", QueryCode: "InvalidAction", Namespace: Coral}
	switch p {
	case RESTJSON:
		e.Status = http.StatusNotFound
	case Query, EC2Query:
		e.Message = fmt.Sprintf("The action %s is not valid for this web service.", action)
	case JSON10, JSON11:
	}
	return e
}

func missingToken(p Protocol) *Error {
	e := &Error{
		Status:    http.StatusForbidden,
		Code:      "MissingAuthenticationTokenException",
		QueryCode: "MissingAuthenticationToken",
		Namespace: Coral,
		Message:   "Request is missing Authentication Token",
	}
	if p == JSON10 || p == JSON11 {
		e.Status = http.StatusBadRequest
	}
	return e
}

func wrongRegion(got, want string) *Error {
	return &Error{
		Status:    http.StatusForbidden,
		Code:      "InvalidSignatureException",
		QueryCode: "SignatureDoesNotMatch",
		Namespace: Coral,
		Message:   fmt.Sprintf("Credential should be scoped to a valid region, not '%s'; this endpoint is '%s'.", got, want),
	}
}

// malformed is the error for an unreadable request.
func malformed(p Protocol, err error) *Error {
	e := &Error{Code: "SerializationException", QueryCode: "MalformedInput", Namespace: Coral, Message: err.Error()}
	if p == EC2Query {
		e.QueryCode = "InvalidParameterValue"
	}
	return e
}
