package drain

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// Origin is what a surged pod was taken from. It is written on the pod, so
// that whoever comes after a crash knows it too.
type Origin struct {
	// ReplicaSet is the name of the pod's ReplicaSet, which is of the pod's
	// namespace.
	ReplicaSet string `json:"replicaSet"`
	// UID is that of the ReplicaSet: another may have its name by now.
	UID types.UID `json:"uid"`
	// Hash is the value that the pod's label pod-template-hash had.
	Hash string `json:"hash"`
	// Time is when the pod was surged.
	Time time.Time `json:"time"`
	// Seen is the resourceVersion that the ReplicaSet had then, if it is known.
	// As long as it has the same, its status counts the pod as its own still.
	Seen string `json:"seen,omitempty"`
}

// String returns the origin as the annotation lifeboat.dev/surged-from has it.
func (o Origin) String() string {
	text, err := json.Marshal(o)
	if err != nil {
		return "" // a time of a year beyond 9999 alone does not marshal
	}
	return string(text)
}

// SurgedFrom returns what a pod was taken from, and whether it was surged and
// says so in a way that can be read.
func SurgedFrom(pod *corev1.Pod) (Origin, bool) {
	text, ok := pod.Annotations[v1alpha1.AnnotationSurged]
	if !ok {
		return Origin{}, false
	}
	var o Origin
	if err := json.Unmarshal([]byte(text), &o); err != nil || o.ReplicaSet == "" {
		return Origin{}, false
	}
	return o, true
}
