package interruption

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// The more nodes are doomed, the longer each is waited for, within a bound: with a
// thousand the last is cordoned after nine seconds on a small control plane.
func TestManyAreWaitedForLonger(t *testing.T) {
	now := time.Date(2026, 11, 22, 6, 0, 0, 0, time.UTC)
	for n, want := range map[int]time.Duration{1: patience, 101: patience + time.Second, 5000: mostPatience} {
		var m muster
		for i := range n {
			in := &v1alpha1.Interruption{}
			in.Name = fmt.Sprint("i-", i)
			in.Spec.Notices = []v1alpha1.Notice{{ReceivedTime: metav1.NewMicroTime(now)}}
			m.hear(in)
		}
		var longest time.Duration
		for _, until := range m.open {
			longest = max(longest, until.Sub(now))
		}
		if longest != want {
			t.Errorf("of %d nodes one is waited for for %s, want %s", n, longest, want)
		}
	}
}
