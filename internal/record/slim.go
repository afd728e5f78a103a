package record

import (
	"slices"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// Slim is a cache transform: it removes managed fields and shares the strings that
// most pods of a record have in common. It changes the object in place. A patch made
// from a cached record stays correct, because it names no field that Slim removed.
func Slim(object any) (any, error) {
	in, ok := object.(*v1beta1.Interruption)
	if !ok {
		return object, nil // a tombstone
	}
	in.ManagedFields = nil
	texts := map[string]string{}
	share := func(text *string) {
		if shared, ok := texts[*text]; ok {
			*text = shared
			return
		}
		texts[*text] = *text
	}
	in.Status.Timeline = slices.Clone(in.Status.Timeline) // a decoder leaves spare capacity
	for i := range in.Status.Timeline {
		share(&in.Status.Timeline[i].Reason)
	}
	if in.Status.Drain == nil {
		return in, nil
	}
	pods := slices.Clone(in.Status.Drain.Pods)
	for i := range pods {
		share(&pods[i].Namespace)
		share((*string)(&pods[i].State))
		share(&pods[i].Owner)
		share((*string)(&pods[i].Reason))
		share(&pods[i].Message)
	}
	in.Status.Drain.Pods = pods
	return in, nil
}
