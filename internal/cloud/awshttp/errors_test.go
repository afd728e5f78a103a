package awshttp

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	sdkhttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

func TestAWSErrorText(t *testing.T) {
	t.Parallel()
	apiError := func(code string) error { return fmt.Errorf("calling: %w", &smithy.GenericAPIError{Code: code}) }
	answered := func(status int) error {
		return fmt.Errorf("calling: %w", &sdkhttp.ResponseError{ResponseError: &smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: errors.New("no"),
		}})
	}
	for name, tt := range map[string]struct {
		err                     error
		code                    string
		denied, throttled, busy bool
	}{
		"nothing":          {},
		"none of AWS's":    {err: errors.New("connection refused")},
		"EC2's denial":     {err: apiError("UnauthorizedOperation"), code: "UnauthorizedOperation", denied: true},
		"others' denial":   {err: apiError("AccessDenied"), code: "AccessDenied", denied: true},
		"too many calls":   {err: apiError("Throttling"), code: "Throttling", throttled: true, busy: true},
		"something wrong":  {err: apiError("ValidationError"), code: "ValidationError"},
		"it does not work": {err: answered(http.StatusServiceUnavailable), busy: true},
		"it is refused":    {err: answered(http.StatusBadRequest)},
	} {
		if Code(tt.err) != tt.code || IsDenied(tt.err) != tt.denied || IsThrottled(tt.err) != tt.throttled || IsBusy(tt.err) != tt.busy {
			t.Errorf("%s: code %q, denied %t, throttled %t, busy %t", name, Code(tt.err), IsDenied(tt.err), IsThrottled(tt.err), IsBusy(tt.err))
		}
	}
}
