package intake_test

import (
	"math/rand/v2"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// deadlineOf records a notice, and returns its deadline in the record.
func deadlineOf(t *testing.T, n notice.Notice, options intake.Options) *v1beta1.Deadline {
	t.Helper()
	c := cluster(interceptor.Funcs{})
	if got, err := intake.NewRecorder(c, oneNode(), options).Record(t.Context(), n); err != nil || got != intake.Recorded {
		t.Fatalf("outcome %s, error %v", got, err)
	}
	return read(t, c).Spec.Notices[0].Deadline
}

func due(of v1beta1.DeadlineType, at time.Time) func(*notice.Notice) {
	return func(n *notice.Notice) { n.Deadline = notice.At(at, of) }
}

// A notice from the future shows that AWS's clock is ahead. Its firm deadline comes earlier by as much:
// the instance ends by AWS's clock.
func TestFirmDeadlineIsOnTheOwnClock(t *testing.T) {
	const lead, ahead = 2 * time.Minute, 90 * time.Second
	const hard, estimated, soft = v1beta1.DeadlineHard, v1beta1.DeadlineEstimated, v1beta1.DeadlineSoft
	for name, tc := range map[string]struct {
		ahead time.Duration // of AWS's clock
		of    v1beta1.DeadlineType
		lead  time.Duration // from the notice's time
		delay time.Duration // of the delivery
		want  time.Duration // from the delivery
	}{
		"clocks agree":                             {0, hard, lead, 0, lead},
		"AWS is ahead":                             {ahead, hard, lead, 0, lead},
		"AWS is behind":                            {-ahead, hard, lead, 0, lead - ahead},
		"an estimate":                              {ahead, estimated, lead, 0, lead},
		"a planned change":                         {ahead, soft, lead, 0, lead + ahead},
		"hibernation, at once":                     {ahead, hard, 0, 0, 0},
		"a deadline before its notice":             {ahead, hard, -time.Minute, 0, 0},
		"a deadline that has passed":               {ahead, hard, -2 * time.Minute, 0, ahead - 2*time.Minute},
		"delivered after 30 s":                     {ahead, hard, lead, 30 * time.Second, lead},
		"delivered so late that it is of the past": {ahead, hard, lead, 2 * time.Minute, ahead},
	} {
		t.Run(name, func(t *testing.T) {
			at := now.Add(tc.ahead - tc.delay)
			got := deadlineOf(t, spot("n", issued(at), due(tc.of, at.Add(tc.lead))), options())
			if left := got.Time.Sub(now); left != tc.want || got.Type != tc.of {
				t.Errorf("the deadline is %s in %s, want %s in %s", got.Type, left, tc.of, tc.want)
			}
		})
	}
}

// Whatever a notice says: its deadline is never later than it says, never in the past if it was not, and
// not earlier by more than the notice is from the future.
func TestDeadlineOnTheOwnClockIsBounded(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	within := func(d time.Duration) time.Duration {
		return (time.Duration(random.Int64N(int64(2*d))) - d).Truncate(time.Second)
	}
	for range 300 {
		at := now.Add(within(5 * time.Minute))
		stated := now.Add(within(9 * time.Minute))
		n := spot("n", issued(at), due(v1beta1.DeadlineHard, stated))
		got := deadlineOf(t, n, options()).Time.Time
		earliest := stated.Add(-max(0, at.Sub(now)))
		if got.After(stated) || got.Before(earliest) || got.Before(now) && !got.Equal(stated) {
			t.Fatalf("seed %d: issued %s, due %s: the deadline is %s (from now)", seed, at.Sub(now), stated.Sub(now), got.Sub(now))
		}
	}
}

// A message arrives again after this clock has passed its time. It does not move the deadline.
func TestRepeatKeepsTheDeadlineOnTheOwnClock(t *testing.T) {
	c, clock := cluster(interceptor.Funcs{}), now
	o := options()
	o.Clock = func() time.Time { return clock }
	r := intake.NewRecorder(c, oneNode(), o)
	n := spot("n", issued(now.Add(90*time.Second)))
	for _, want := range []intake.Outcome{intake.Recorded, intake.Repeated, intake.Repeated} {
		if got, err := r.Record(t.Context(), n); err != nil || got != want {
			t.Fatalf("outcome %s, error %v, want %s", got, err, want)
		}
		if got := read(t, c).Spec.Notices[0].Deadline.Time; !got.Equal(&metav1.Time{Time: now.Add(2 * time.Minute)}) {
			t.Errorf("at %s the deadline is %s, from the first", clock.Sub(now), got.Sub(now))
		}
		clock = clock.Add(80 * time.Second)
	}
}
