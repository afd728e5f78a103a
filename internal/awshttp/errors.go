package awshttp

import (
	"errors"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	sdkhttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
)

// Code is the code of the error that AWS answered; empty: it was none of AWS's.
func Code(err error) string {
	var said smithy.APIError
	if errors.As(err, &said) {
		return said.ErrorCode()
	}
	return ""
}

// IsDenied reports whether AWS does not permit the call (IAM User Guide,
// "Troubleshoot access denied error messages"; UnauthorizedOperation is EC2's).
func IsDenied(err error) bool {
	switch Code(err) {
	case "AccessDenied", "AccessDeniedException", "UnauthorizedOperation":
		return true
	}
	return false
}

// IsThrottled reports whether there were too many calls.
func IsThrottled(err error) bool {
	_, throttled := retry.DefaultThrottleErrorCodes[Code(err)]
	return throttled
}

// IsBusy reports whether the call was throttled, or AWS answered that it does not
// work at the moment.
func IsBusy(err error) bool {
	var answered *sdkhttp.ResponseError
	return IsThrottled(err) || errors.As(err, &answered) && answered.HTTPStatusCode() >= http.StatusInternalServerError
}
