package intake_test

import (
	"context"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record/recordtest"
)

// A notice that joins a record which was completed after the notice was received must
// reopen it: the pass that completed it has not seen the notice.
func TestNoticeReopensCompletedRecord(t *testing.T) {
	for name, completed := range map[string]time.Time{
		"completed between receipt and write":        now.Add(5 * time.Millisecond),
		"completed in the same microsecond":          now,
		"completed by a clock that is an hour ahead": now.Add(time.Hour),
		"completed before":                           now.Add(-time.Minute),
	} {
		t.Run(name, func(t *testing.T) {
			var once sync.Once
			c := cluster(interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				once.Do(func() { // the controller completes the record between the read and the patch
					if err := changeRecord(ctx, c, func(r *v1beta1.Interruption) error {
						done := metav1.NewMicroTime(completed)
						r.Status.CompletionTime = &done
						return c.Status().Update(ctx, r)
					}); err != nil {
						t.Error(err)
					}
				})
				return c.Patch(ctx, o, p, opts...)
			}}, recorded(spot("old").Notice))
			record := join(t, c, spot("a"))
			if notice.Finished(record) {
				t.Errorf("the record still counts as finished: received %s, completed %s",
					record.Spec.Notices[1].ReceivedTime, record.Status.CompletionTime)
			}
		})
	}
}

// The same for a record that another notice has reopened: status.history has the completion.
func TestNoticeJoinsReopenedRecord(t *testing.T) {
	in := recorded(spot("old").Notice)
	in.Status.History = recordtest.CompletedBefore(now.Add(time.Minute)) // the leader's clock is ahead
	record := join(t, cluster(interceptor.Funcs{}, in), spot("a"))
	if notice.Finished(record) || len(record.Spec.Notices) != 2 || record.Spec.Notices[1].ID != "a" {
		t.Errorf("notices %v, want the one that was added", record.Spec.Notices)
	}
}

func TestRepeatDoesNotReopenCompletedRecord(t *testing.T) {
	in := recorded(spot("a").Notice)
	recordtest.Complete(in, now.Add(time.Minute), "a")
	c := cluster(interceptor.Funcs{}, in)
	if got, err := intake.NewRecorder(c, oneNode(), options()).Record(t.Context(), spot("a")); got != intake.Repeated {
		t.Fatalf("got %q, %v", got, err)
	}
	if !notice.Finished(read(t, c)) {
		t.Error("a repeat reopened the record")
	}
}

// A source can pass the time of first sight, and its clock can have been set back since.
func TestReceivedTimesAreNotInFuture(t *testing.T) {
	for name, tc := range map[string]struct{ received, want time.Time }{
		"ahead":               {now.Add(10 * time.Second), now},
		"at first sight":      {now.Add(-10 * time.Second), now.Add(-10 * time.Second)},
		"with nanoseconds":    {now.Add(-1500 * time.Nanosecond), now.Add(-2 * time.Microsecond)},
		"no time":             {time.Time{}, now},
		"at this very moment": {now, now},
	} {
		t.Run(name, func(t *testing.T) {
			n := spot("a", func(n *notice.Notice) { n.ReceivedTime = metav1.NewMicroTime(tc.received) })
			c := cluster(interceptor.Funcs{})
			if got, err := intake.NewRecorder(c, oneNode(), options()).Record(t.Context(), n); got != intake.Recorded {
				t.Fatalf("got %q, %v", got, err)
			}
			if got := read(t, c).Spec.Notices[0].ReceivedTime.Time; !got.Equal(tc.want) {
				t.Errorf("received %s, want %s", got, tc.want)
			}
		})
	}
}

func join(t *testing.T, c client.Client, n notice.Notice) *v1beta1.Interruption {
	t.Helper()
	if got, err := intake.NewRecorder(c, oneNode(), options()).Record(t.Context(), n); got != intake.Joined {
		t.Fatalf("got %q, %v", got, err)
	}
	return read(t, c)
}

func read(t *testing.T, c client.Client) *v1beta1.Interruption {
	t.Helper()
	var record v1beta1.Interruption
	if err := c.Get(t.Context(), client.ObjectKey{Name: instance}, &record); err != nil {
		t.Fatal(err)
	}
	return &record
}
