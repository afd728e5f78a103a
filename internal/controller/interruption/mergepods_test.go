package interruption

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

func TestOneEventForWhatHappenedToSeveralPods(t *testing.T) {
	of := func(name, what string) happening {
		return happening{
			TimelineEntry: v1alpha1.TimelineEntry{Time: microTime(start), Reason: v1alpha1.ReasonEvicted, Message: drillPrefix + name + " " + what},
			pod:           &corev1.ObjectReference{Namespace: "default", Name: name}, what: what,
		}
	}
	got := mergePods([]happening{of("a", "goes now"), of("b", "goes now"), of("c", "goes later")})
	if len(got) != 2 || got[0].pod != nil || got[1].pod == nil {
		t.Fatalf("%+v", got)
	}
	if m := got[0].Message; !strings.HasPrefix(m, drillPrefix) || !strings.Contains(m, "2 pods: default/a, default/b") {
		t.Errorf("message %q", m)
	}
}
