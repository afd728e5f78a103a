package record

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// Pending returns the pods of a drain that must still leave, and those that are lost while their Pod
// exists.
func Pending(d *v1beta1.DrainStatus) []v1beta1.PodStatus {
	return slices.DeleteFunc(slices.Clone(d.Pods), func(p v1beta1.PodStatus) bool { return !IsPending(&p) })
}

// IsPending reports whether a pod is still there.
func IsPending(p *v1beta1.PodStatus) bool {
	return p.DepartureTime == nil && p.State != v1beta1.PodLeft
}

// PodHistory is what the record says about one pod, with plain times. A zero time is unknown.
type PodHistory struct {
	// Pod is namespace/name.
	Pod                           string
	State                         v1beta1.PodState
	Reason                        string
	Surged, Asked, Gone, LastCall time.Time
	Grace                         time.Duration
	// Overridden is true if the pod was deleted although a budget protected it.
	Overridden bool
}

// Pods returns the history of each pod of the current drain, in the order of the record.
func Pods(in *v1beta1.Interruption) []PodHistory {
	pods := Drain(&in.Status).Pods
	all := make([]PodHistory, len(pods))
	for i := range pods {
		p := &pods[i]
		all[i] = PodHistory{
			Pod: p.Namespace + "/" + p.Name, State: p.State, Reason: p.Message, Overridden: p.Overridden != "",
			Surged: timeOf(p.SurgeTime), Asked: timeOf(p.EvictionTime), Gone: timeOf(p.DepartureTime), LastCall: timeOf(p.LastCallTime),
		}
		if p.GraceSeconds != nil {
			all[i].Grace = time.Duration(*p.GraceSeconds) * time.Second
		}
	}
	return all
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}
