package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Say is what a person has said. The admission policy of the chart sees to it
// that nobody speaks for somebody else.
type Say struct {
	// By is the user's name, as the API server knows it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	By string `json:"by"`
	// Time is when it was said.
	Time metav1.MicroTime `json:"time"`
	// About is the kind, and the subject if it has one, of the notice that
	// ruled when it was said, with a space between: an approval counts for that
	// only.
	// +kubebuilder:validation:MaxLength=576
	// +optional
	About string `json:"about,omitempty"`
	// Until is when it ends by itself, for a hold.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
	// Note is why.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Note string `json:"note,omitempty"`
}
