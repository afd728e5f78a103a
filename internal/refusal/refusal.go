// Package refusal tells what the API server, or what guards it, refuses from what it
// cannot answer now. It is pure.
package refusal

import (
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Is reports whether an error refuses the very request. It goes by the code: admission
// webhooks mostly give no reason. Not refused is what passes by itself: who asks is not
// known (401), it took too long (408), somebody was faster (409), there is too much to
// do (429). Of the server's own errors one is a refusal that the API server itself says
// (reason InternalError): a webhook of admission that fails, or several budgets on a
// pod. One that a proxy or a panic made of it is none, nor is one of etcd.
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

// ByAdmission reports whether admission denied a request, whatever code it gave: a
// webhook chooses its own (k8s.io/apiserver, plugin/webhook/errors, ToStatusErr), and a
// ValidatingAdmissionPolicy may.
func ByAdmission(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	text := status.Status().Message
	return strings.Contains(text, "admission webhook ") && strings.Contains(text, " denied the request") ||
		strings.Contains(text, "ValidatingAdmissionPolicy ") && strings.Contains(text, " denied request")
}
