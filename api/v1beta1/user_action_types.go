package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UserAction records a request of a person: an approval, a hold or a release. The
// chart's admission policy ensures that a user can only write their own name.
type UserAction struct {
	// By is the user's name, as the API server authenticated it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +required
	By string `json:"by"`
	// Time is when the request was made.
	// +required
	Time metav1.MicroTime `json:"time"`
	// About identifies the notice that the request is about: its kind and, if
	// it has one, its subject, separated by a space. An approval is valid for
	// that notice only.
	// +kubebuilder:validation:MaxLength=576
	// +optional
	About string `json:"about,omitempty"`
	// Until is when a hold expires.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
	// Note is the reason that the user gave.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Note string `json:"note,omitempty"`
}
