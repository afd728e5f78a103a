package notice_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// EC2 warns two minutes before it takes an instance back. A time after that shows that this clock is
// behind AWS's, and the instance is gone by then.
func TestSpotDeadlineOfMetadataIsNeverLaterThanTheWarningAllows(t *testing.T) {
	now := time.Date(2026, 5, 11, 8, 0, 0, 0, time.UTC)
	for in, want := range map[time.Duration]time.Duration{
		-time.Minute: -time.Minute, 30 * time.Second: 30 * time.Second, 2 * time.Minute: 2 * time.Minute, 210 * time.Second: 2 * time.Minute,
	} {
		at := metav1.NewTime(now.Add(in))
		n, err := notice.FromMetadata(&v1beta1.MetadataNotice{
			ID: "imds/spot", Kind: notice.KindSpotInterruption, InstanceAction: notice.ActionTerminate, Deadline: &at,
		}, "i-1", now)
		if err != nil {
			t.Fatal(err)
		}
		if got := n.Deadline.Time.Sub(now); got != want || n.Deadline.Type != v1beta1.DeadlineHard {
			t.Errorf("metadata says %s, and the deadline is in %s, want %s", in, got, want)
		}
	}
}
