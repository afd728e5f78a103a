package record

import (
	"slices"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// Slim is a cache's transform that makes records small, the very ones that it is given: of the pods that one was made with
// its status says more, from the first time that it was written; and what is said of one pod
// is said of most, and is text of its own for each as it is decoded.
//
// A patch made from a cached record is none the worse for it: a merge patch names what
// changed, and what both sides lack has not.
func Slim(object any) (any, error) {
	in, ok := object.(*v1alpha1.Interruption)
	if !ok {
		return object, nil // a tombstone
	}
	in.ManagedFields = nil
	if !Unwritten(&in.Status) {
		in.Spec.Pods = nil
	}
	texts := map[string]string{}
	share := func(text *string) {
		if shared, ok := texts[*text]; ok {
			*text = shared
			return
		}
		texts[*text] = *text
	}
	// Decoders leave slices with room for twice as much.
	in.Spec.Pods, in.Status.PodsLeft, in.Status.Timeline = slices.Clone(in.Spec.Pods), slices.Clone(in.Status.PodsLeft), slices.Clone(in.Status.Timeline)
	for i := range in.Spec.Pods {
		share(&in.Spec.Pods[i].Namespace)
	}
	for i := range in.Status.PodsLeft {
		left := &in.Status.PodsLeft[i]
		share(&left.Namespace)
		share(&left.Verdict)
		share(&left.Reason)
	}
	for i := range in.Status.Timeline {
		share(&in.Status.Timeline[i].Reason)
	}
	return in, nil
}
