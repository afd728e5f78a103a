package awshttp

import (
	"errors"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	sdkhttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
)

// Code is the error code of an AWS error; empty for other errors.
func Code(err error) string {
	var apiError smithy.APIError
	if errors.As(err, &apiError) {
		return apiError.ErrorCode()
	}
	return ""
}

// stableError is an AWS error without parts that change each time, such as the request id.
// Conditions contain it, and must change only with the cause.
type stableError struct{ error }

// Error returns the AWS error code and message.
func (e stableError) Error() string {
	var apiError smithy.APIError
	if !errors.As(e.error, &apiError) {
		return e.error.Error()
	}
	return apiError.ErrorCode() + ": " + apiError.ErrorMessage()
}

// Unwrap returns the complete error.
func (e stableError) Unwrap() error { return e.error }

// Stable returns an error with the same text for the same cause: that of an AWS error is its code and
// message. It returns nil for nil.
func Stable(err error) error {
	if err == nil {
		return nil
	}
	return stableError{err}
}

// IsDenied reports whether AWS denied the call (IAM User Guide, "Troubleshoot
// access denied error messages"; UnauthorizedOperation is EC2's).
func IsDenied(err error) bool {
	switch Code(err) {
	case "AccessDenied", "AccessDeniedException", "UnauthorizedOperation":
		return true
	}
	return false
}

// IsThrottled reports whether AWS throttled the call.
func IsThrottled(err error) bool {
	_, throttled := retry.DefaultThrottleErrorCodes[Code(err)]
	return throttled
}

// IsBusy reports whether the call was throttled or AWS is temporarily
// unavailable.
func IsBusy(err error) bool {
	var answered *sdkhttp.ResponseError
	return IsThrottled(err) || errors.As(err, &answered) && answered.HTTPStatusCode() >= http.StatusInternalServerError
}
