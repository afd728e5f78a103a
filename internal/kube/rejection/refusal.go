// Package rejection distinguishes requests that the API server or admission
// rejects from requests that may succeed later. It is pure.
package rejection

import (
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Is reports whether an error rejects the request itself. It uses the status
// code, because admission webhooks rarely set a reason. Temporary errors are
// not rejections: 401 (unauthenticated), 408 (timeout), 409 (conflict) and 429
// (too many requests). A 500 is a rejection only if the API server itself
// reports reason InternalError: a failing admission webhook, or several budgets
// on one pod. A 500 from a proxy, a panic or etcd is not.
func Is(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; {
	case ByAdmission(err):
		return true
	case code == http.StatusUnauthorized, code == http.StatusRequestTimeout, code == http.StatusConflict, code == http.StatusTooManyRequests:
		return false
	case code == http.StatusInternalServerError:
		return status.Status().Reason == metav1.StatusReasonInternalError && !apierrors.IsUnexpectedServerError(err)
	default:
		return code >= 400 && code < 500
	}
}

// ByAdmission reports whether admission denied a request. The status code does
// not tell: a webhook chooses its own (k8s.io/apiserver, plugin/webhook/errors,
// ToStatusErr), and a ValidatingAdmissionPolicy may.
func ByAdmission(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	text := status.Status().Message
	return strings.Contains(text, "admission webhook ") && strings.Contains(text, " denied the request") ||
		strings.Contains(text, "ValidatingAdmissionPolicy ") && strings.Contains(text, " denied request")
}
