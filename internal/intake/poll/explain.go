package poll

import (
	"context"
	"errors"
	"net/http"
	"strings"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
)

// Reason is why a call to AWS failed, as a metric label.
type Reason string

// The reasons.
const (
	Denied      Reason = "accessDenied"
	Credentials Reason = "credentials"
	Clock       Reason = "clock"
	Throttled   Reason = "throttled"
	Unavailable Reason = "unavailable"
	Unreachable Reason = "unreachable"
	Refused     Reason = "refused"
)

// Reasons are all reasons, for tables of metrics.
func Reasons() []Reason {
	return []Reason{Denied, Credentials, Clock, Throttled, Unavailable, Unreachable, Refused}
}

// reasons maps the error codes of EC2 and Auto Scaling (Amazon EC2 API
// Reference, "Error codes for the Amazon EC2 API"; Amazon EC2 Auto Scaling API
// Reference, "Common Errors").
var reasons = map[string]Reason{
	"UnauthorizedOperation":       Denied,
	"AccessDenied":                Denied,
	"AccessDeniedException":       Denied,
	"NotAuthorized":               Denied,
	"OptInRequired":               Denied,
	"AuthFailure":                 Credentials,
	"InvalidClientTokenId":        Credentials,
	"UnrecognizedClientException": Credentials,
	"MissingAuthenticationToken":  Credentials,
	"SignatureDoesNotMatch":       Credentials,
	"IncompleteSignature":         Credentials,
	"ExpiredToken":                Credentials,
	"ExpiredTokenException":       Credentials,
	"RequestExpired":              Clock,
	"RequestLimitExceeded":        Throttled,
	"Throttling":                  Throttled,
	"ThrottlingException":         Throttled,
	"RequestThrottled":            Throttled,
	"RequestThrottledException":   Throttled,
	"EC2ThrottledException":       Throttled,
	"InternalError":               Unavailable,
	"InternalFailure":             Unavailable,
	"ServiceUnavailable":          Unavailable,
	"Unavailable":                 Unavailable,
}

// Sort returns why a call to AWS failed.
func Sort(err error) Reason {
	var api smithy.APIError
	var response *awshttp.ResponseError
	switch {
	case errors.As(err, &api) && reasons[api.ErrorCode()] != "":
		return reasons[api.ErrorCode()]
	case errors.As(err, &response) && response.HTTPStatusCode() == http.StatusServiceUnavailable,
		errors.As(err, &response) && response.HTTPStatusCode() >= http.StatusInternalServerError:
		return Unavailable
	case errors.As(err, &api):
		return Refused
	case errors.Is(err, context.DeadlineExceeded):
		return Unreachable
	case strings.Contains(err.Error(), "get credentials"): // the SDK has no type for it
		return Credentials
	}
	return Unreachable
}

// Advice says what to do about a call that needs the permission and fails for
// the reason.
func Advice(permission string, reason Reason) string {
	switch reason {
	case Denied:
		leaveOut := "leave this source out with --sources"
		if strings.HasPrefix(permission, "cloudtrail:") {
			leaveOut = "leave out --cloudtrail-interval"
		}
		return "grant " + permission + ` on "*" to the role that Lifeboat runs as, or ` + leaveOut
	case Credentials:
		return "make sure that the pod gets AWS credentials: an EKS Pod Identity association, or a role for its service account"
	case Clock:
		return "correct the node's clock: AWS rejects requests that differ by more than fifteen minutes"
	case Throttled:
		return "nothing: Lifeboat polls half as often until throttling ends; other callers of the account use up the quota"
	case Unavailable:
		return "nothing if it is temporary"
	case Unreachable:
		service, _, _ := strings.Cut(permission, ":")
		return "make sure that the pod can reach " + service + ": DNS, security groups, a VPC endpoint, and AWS_ENDPOINT_URL if it is set"
	}
	return "see the error"
}
