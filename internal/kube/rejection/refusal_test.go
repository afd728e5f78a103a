package rejection_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lifeboat-dev/lifeboat/internal/kube/rejection"
)

var jobs = schema.GroupResource{Group: "batch", Resource: "jobs"}

// says is a response without a reason.
func says(code int32, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: message}}
}

func TestIsRejection(t *testing.T) {
	const webhook = `admission webhook "validate.example" denied the request: no`
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":                          {nil, false},
		"no right":                         {apierrors.NewForbidden(jobs, "a", errors.New("rbac")), true},
		"not found":                        {apierrors.NewNotFound(jobs, "a"), true},
		"invalid":                          {apierrors.NewInvalid(schema.GroupKind{Kind: "Job"}, "a", nil), true},
		"too large":                        {apierrors.NewRequestEntityTooLargeError("x"), true},
		"a webhook denies with 400":        {says(http.StatusBadRequest, webhook), true},
		"a webhook denies with 403":        {says(http.StatusForbidden, webhook), true},
		"a webhook denies with 409":        {says(http.StatusConflict, webhook), true},
		"a webhook denies with 429":        {says(http.StatusTooManyRequests, webhook), true},
		"a webhook denies with 500":        {says(http.StatusInternalServerError, webhook), true},
		"it is wrapped":                    {fmt.Errorf("making it: %w", says(http.StatusInternalServerError, webhook)), true},
		"a policy denies with 401":         {says(http.StatusUnauthorized, `jobs "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`), true},
		"a webhook that fails":             {apierrors.NewInternalError(errors.New(`failed calling webhook "x": connection refused`)), true},
		"several budgets":                  {apierrors.NewInternalError(errors.New("This pod has more than one PodDisruptionBudget")), true},
		"a panic, or a proxy":              {apierrors.NewGenericServerResponse(http.StatusInternalServerError, "post", jobs, "a", "panic", 0, true), false},
		"etcd changes its leader":          {says(http.StatusInternalServerError, "etcdserver: leader changed"), false},
		"who asks is not known":            {apierrors.NewUnauthorized("token"), false},
		"another client was faster":        {apierrors.NewConflict(jobs, "a", errors.New("version")), false},
		"it is there already":              {apierrors.NewAlreadyExists(jobs, "a"), false},
		"busy":                             {apierrors.NewTooManyRequests("busy", 1), false},
		"too slow":                         {apierrors.NewTimeoutError("slow", 1), false},
		"unavailable":                      {apierrors.NewServiceUnavailable("starting"), false},
		"the API server cannot be reached": {errors.New("connection refused"), false},
		"time is up":                       {context.DeadlineExceeded, false},
	} {
		if got := rejection.Is(tc.err); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
