package poll_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll/polltest"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

func refusal(code string) error {
	return fmt.Errorf("reading: %w", &smithy.GenericAPIError{Code: code, Message: "no"})
}

// play runs a Poller for a while.
func play(t *testing.T, w *world, metrics *intake.Metrics, long time.Duration, questions ...poll.Query) {
	t.Helper()
	ledger := poll.NewDeduper(intake.NewRecorder(w.Kube, w, intake.Options{}), w.Kube, poll.Options{Source: source, Metrics: metrics})
	ctx, cancel := context.WithTimeout(log.IntoContext(t.Context(), w.Logger()), long)
	defer cancel()
	poll.NewPoller(ledger).Run(ctx, questions)
}

func TestPace(t *testing.T) {
	tests := []struct {
		name     string
		answers  []error // the last goes on
		long     time.Duration
		from, to int // rounds
	}{
		{"all is well", []error{nil}, 150 * time.Second, 10, 11},
		{"throttled throughout: 30, 60, 120, 240 s", []error{refusal("RequestLimitExceeded")}, 449 * time.Second, 4, 5},
		{"throttled for a while, then back to the pace", []error{refusal("Throttling"), refusal("Throttling"), nil}, 30*time.Second + time.Minute + 30*time.Second + 152*time.Second, 12, 15},
		{"away: it is tried soon and then at the pace", []error{polltest.ErrAway}, 31*time.Second + 150*time.Second, 13, 17},
		{"away for a moment", []error{polltest.ErrAway, polltest.ErrAway, nil}, 3*time.Second + 75*time.Second, 7, 8},
		{"denied: trying sooner changes nothing", []error{refusal("UnauthorizedOperation")}, 150 * time.Second, 10, 11},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rounds := 0
				play(t, newWorld(t), nil, test.long, poll.Query{Name: "q", Interval: 15 * time.Second, Ask: func(context.Context) ([]notice.Notice, error) {
					rounds++
					return nil, test.answers[min(rounds, len(test.answers))-1]
				}})
				if rounds < test.from || rounds > test.to {
					t.Errorf("asked %d times, want %d to %d", rounds, test.from, test.to)
				}
			})
		})
	}
}

func TestDeniedQueryDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		metrics, err := intake.NewMetrics(registry)
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t)
		play(t, w, metrics, 119*time.Second,
			poll.Query{Name: "denied", Permission: "ec2:DescribeSpotInstanceRequests", Interval: 15 * time.Second,
				Ask: func(context.Context) ([]notice.Notice, error) { return nil, refusal("UnauthorizedOperation") }},
			poll.Query{Name: "hangs", Permission: "ec2:DescribeInstanceStatus", Interval: 15 * time.Second,
				Ask: func(ctx context.Context) ([]notice.Notice, error) { <-ctx.Done(); return nil, ctx.Err() }},
			poll.Query{Name: "partial", Permission: "ec2:DescribeInstanceStatus", Interval: 15 * time.Second,
				Ask: func(context.Context) ([]notice.Notice, error) {
					return []notice.Notice{about("e", "a")}, poll.Needs("ec2:DescribeInstances", refusal("UnauthorizedOperation"))
				}},
			poll.Query{Name: "late", Interval: time.Minute, Late: true, Ask: func(context.Context) ([]notice.Notice, error) { return nil, nil }},
		)
		if diff := cmp.Diff([]string{"a"}, w.IDs(instance)); diff != "" {
			t.Errorf("on record (-want +got):\n%s", diff)
		}
		for says, want := range map[string]int{
			"grant ec2:DescribeSpotInstanceRequests":                2, // once a minute
			"grant ec2:DescribeInstances":                           2,
			`"reason"="unreachable" "permission"="ec2:DescribeInst`: 1,
			`"query"="hangs"`:                                       1,
			`"AWS responds" "source"="test" "query"="late"`:         1,
			`"msg"="AWS responds" "source"="test" "query"="denied"`: 0,
		} {
			got := w.Said(says)
			if got != want {
				t.Errorf("%d lines say %s, want %d:\n%s", got, says, want, w.Log())
			}
		}
		if err := testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP lifeboat_source_up 1 while the source can be reached, else 0.
# TYPE lifeboat_source_up gauge
lifeboat_source_up{source="test"} 1
`), "lifeboat_source_up"); err != nil {
			t.Error(err)
		}
	})
}

func TestAPIServerOutageIsNotAWSFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		metrics, err := intake.NewMetrics(registry)
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t)
		play(t, w, metrics, 20*time.Second, poll.Query{
			Name: "q", Permission: "ec2:DescribeInstanceStatus", Interval: 15 * time.Second,
			Ask: func(context.Context) ([]notice.Notice, error) {
				return nil, poll.OfCluster(errors.New("listing nodes: away"))
			},
		})
		if w.Said("cannot read the cluster") != 1 || w.Said("grant") != 0 {
			t.Error(w.Log())
		}
		if n, err := testutil.GatherAndCount(registry, "lifeboat_source_errors_total"); n != 0 || err != nil {
			t.Errorf("%d errors of the source, %v", n, err)
		}
	})
}

func TestNoticeIsRecordedAfterAPIServerReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Away(true)
		var back time.Time
		go func() {
			time.Sleep(20 * time.Second)
			back = time.Now()
			w.Away(false)
		}()
		play(t, w, nil, time.Minute, poll.Query{Name: "q", Interval: 15 * time.Second, Ask: func(context.Context) ([]notice.Notice, error) {
			return []notice.Notice{about("e", "a")}, nil
		}})
		if got := w.Notices(instance); len(got) != 1 || time.Since(back) < 0 {
			t.Errorf("on record: %v", got)
		}
	})
}

func TestSort(t *testing.T) {
	for _, test := range []struct {
		err  error
		want poll.Reason
	}{
		{refusal("UnauthorizedOperation"), poll.Denied},
		{refusal("AccessDenied"), poll.Denied},
		{refusal("RequestLimitExceeded"), poll.Throttled},
		{refusal("Throttling"), poll.Throttled},
		{refusal("ExpiredToken"), poll.Credentials},
		{refusal("RequestExpired"), poll.Clock},
		{refusal("InvalidParameterValue"), poll.Refused},
		{refusal("ServiceUnavailable"), poll.Unavailable},
		{errors.New("get identity: get credentials: no EC2 IMDS role found"), poll.Credentials},
		{context.DeadlineExceeded, poll.Unreachable},
		{polltest.ErrAway, poll.Unreachable},
	} {
		if got := poll.Sort(test.err); got != test.want {
			t.Errorf("%v: got %s, want %s", test.err, got, test.want)
		}
		if poll.Advice("ec2:DescribeInstances", poll.Sort(test.err)) == "" {
			t.Errorf("%v: no advice", test.err)
		}
	}
}
