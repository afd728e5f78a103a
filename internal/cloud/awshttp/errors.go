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
