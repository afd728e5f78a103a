package replacement_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

func TestExpectedTimeOfAReplacement(t *testing.T) {
	began := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	end := began.Add(2 * time.Minute)
	start, order := metav1.NewMicroTime(began), metav1.NewMicroTime(began.Add(5*time.Second))
	booted := func(name, pool string, created, took time.Duration) *replacement.Claim {
		return &replacement.Claim{
			Name: name, Labels: map[string]string{replacement.LabelNodePool: pool},
			CreationTime: began.Add(created), BootTime: took,
		}
	}
	ours := booted("ours", "web", 5*time.Second, 0)
	for _, c := range []struct {
		name   string
		phase  v1beta1.ReplacementPhase
		claims []*replacement.Claim
		want   time.Duration // after began; 0: no pod waits
	}{
		{"no other of the pool is known", v1beta1.ReplacementOrdered, nil, 65 * time.Second},
		{"others of the pool are Ready: the newest counts", v1beta1.ReplacementOrdered, []*replacement.Claim{
			ours, booted("a", "web", -time.Hour, 90*time.Second), booted("b", "web", -time.Minute, 40*time.Second), booted("c", "db", 0, 10*time.Second),
		}, 45 * time.Second},
		{"others are not Ready", v1beta1.ReplacementLaunched, []*replacement.Claim{ours, booted("a", "web", 0, 0)}, 65 * time.Second},
		{"it is not ordered yet", v1beta1.ReplacementQueued, nil, 60 * time.Second},
		{"it is ordered again", v1beta1.ReplacementRetrying, nil, 65*time.Second + 5*time.Second},
		{"there is no capacity", v1beta1.ReplacementFailed, nil, 120 * time.Second},
		{"it is Ready", v1beta1.ReplacementReady, nil, 0},
		{"none is wanted", v1beta1.NoReplacement, nil, 0},
	} {
		s := &v1beta1.ReplacementStatus{Phase: c.phase, Name: "ours", StartTime: &start, OrderTime: &order, Tries: 1}
		got := replacement.ExpectedAt(s, notice.At(end, v1beta1.DeadlineHard), c.claims)
		if c.phase == v1beta1.ReplacementRetrying {
			c.want = replacement.RetryAt(s, notice.At(end, v1beta1.DeadlineHard)).Add(replacement.BootTime).Sub(began)
		}
		if (c.want == 0) != got.IsZero() || c.want != 0 && !got.Equal(began.Add(c.want)) {
			t.Errorf("%s: %s, want %s", c.name, got, began.Add(c.want))
		}
	}
	if at := replacement.ExpectedAt(nil, nil, nil); !at.IsZero() {
		t.Errorf("nothing is ordered: %s", at)
	}
}
