package drain

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// Origin is the ReplicaSet that a surged pod was taken from. It is written to the pod, so that
// it survives a crash of the controller.
type Origin struct {
	// ReplicaSet is the name of the pod's ReplicaSet, in the pod's namespace.
	ReplicaSet string `json:"replicaSet"`
	// UID is the ReplicaSet's UID: a new ReplicaSet may have the same name by now.
	UID types.UID `json:"uid"`
	// Hash was the value of the pod's label pod-template-hash.
	Hash string `json:"hash"`
	// Time is when the pod was surged.
	Time time.Time `json:"time"`
	// Seen was the ReplicaSet's resourceVersion, if known. While it is unchanged, the
	// ReplicaSet's status still counts the pod.
	Seen string `json:"seen,omitempty"`
}

// String returns the value of the annotation lifeboat.dev/surge-origin.
func (o Origin) String() string {
	text, err := json.Marshal(o)
	if err != nil {
		return "" // only a time after the year 9999 cannot be marshalled
	}
	return string(text)
}

// OwnerOf names the controller of a pod, as Kind/Name, and says when the pod was surged. A surged pod has
// no controller any more; it names the ReplicaSet that it was taken from.
func OwnerOf(pod *corev1.Pod) (owner string, surged *metav1.Time) {
	if o, ok := SurgedFrom(pod); ok {
		at := metav1.NewTime(o.Time.Truncate(time.Second))
		return "ReplicaSet/" + o.ReplicaSet, &at
	}
	if c := metav1.GetControllerOf(pod); c != nil {
		return c.Kind + "/" + c.Name, nil
	}
	return "", nil
}

// SurgedFrom returns the origin of a pod, and whether the pod was surged and its annotation can
// be parsed.
func SurgedFrom(pod *corev1.Pod) (Origin, bool) {
	text, ok := pod.Annotations[v1beta1.AnnotationSurgeOrigin]
	if !ok {
		return Origin{}, false
	}
	var o Origin
	if err := json.Unmarshal([]byte(text), &o); err != nil || o.ReplicaSet == "" {
		return Origin{}, false
	}
	return o, true
}
