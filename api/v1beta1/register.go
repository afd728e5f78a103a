package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of every type in this package.
var GroupVersion = schema.GroupVersion{Group: "lifeboat.dev", Version: "v1beta1"}

// AddToScheme registers the types of this package with a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Interruption{}, &InterruptionList{},
		&InterruptionPolicy{}, &InterruptionPolicyList{},
		&NodeGroup{}, &NodeGroupList{},
		&NodeNotice{}, &NodeNoticeList{},
		&Pause{}, &PauseList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
