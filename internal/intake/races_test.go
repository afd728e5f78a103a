package intake_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
)

func TestReplicasCreateOneRecord(t *testing.T) {
	const replicas, each = 8, 3
	c := cluster(interceptor.Funcs{})
	outcomes := make(chan intake.Outcome, 2*replicas*each)
	var group sync.WaitGroup
	for r := range replicas {
		recorder := intake.NewRecorder(c, oneNode(), options())
		group.Go(func() {
			for i := range each {
				n := spot(fmt.Sprintf("n-%d-%d", r, i))
				for range 2 { // delivered twice
					outcome, err := recorder.Record(t.Context(), n)
					if err != nil {
						t.Error(err)
					}
					outcomes <- outcome
				}
			}
		})
	}
	group.Wait()
	close(outcomes)
	count := map[intake.Outcome]int{}
	for o := range outcomes {
		count[o]++
	}
	want := map[intake.Outcome]int{intake.Recorded: 1, intake.Joined: replicas*each - 1, intake.Repeated: replicas * each}
	if diff := cmp.Diff(want, count); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	got := ids(t, c)
	slices.Sort(got)
	if len(slices.Compact(got)) != replicas*each {
		t.Errorf("%d notices on record: %v", len(got), got)
	}
}

// behind is a client whose cache is still empty.
func behind(c client.WithWatch) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return apierrors.NewNotFound(resource, key.Name)
		},
	})
}

func TestStaleCacheIsBypassed(t *testing.T) {
	c := cluster(interceptor.Funcs{}, recorded(spot("old").Notice))
	o := options()
	o.Live = c
	recorder := intake.NewRecorder(behind(c), oneNode(), o)
	for _, want := range []intake.Outcome{intake.Joined, intake.Repeated} {
		if got, err := recorder.Record(t.Context(), spot("a")); got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	if diff := cmp.Diff([]string{"old", "a"}, ids(t, c)); diff != "" {
		t.Errorf("notices on record (-want +got):\n%s", diff)
	}
}

func TestConcurrentWrites(t *testing.T) {
	tests := []struct {
		name    string
		meddle  func(context.Context, client.WithWatch) error
		want    intake.Outcome
		wantIDs []string
	}{
		{"the controller writes status", func(ctx context.Context, c client.WithWatch) error {
			return changeRecord(ctx, c, func(r *v1beta1.Interruption) error {
				r.Status.Phase = v1beta1.PhaseDraining
				return c.Status().Update(ctx, r)
			})
		}, intake.Joined, []string{"old", "a"}},
		{"another replica joins another notice", func(ctx context.Context, c client.WithWatch) error {
			return changeRecord(ctx, c, func(r *v1beta1.Interruption) error {
				r.Spec.Notices = append(r.Spec.Notices, spot("b").Notice)
				return c.Update(ctx, r)
			})
		}, intake.Joined, []string{"old", "b", "a"}},
		{"another replica joins the same notice", func(ctx context.Context, c client.WithWatch) error {
			return changeRecord(ctx, c, func(r *v1beta1.Interruption) error {
				r.Spec.Notices = append(r.Spec.Notices, spot("a").Notice)
				return c.Update(ctx, r)
			})
		}, intake.Repeated, []string{"old", "a"}},
		{"the record is deleted", func(ctx context.Context, c client.WithWatch) error {
			return c.Delete(ctx, recorded())
		}, intake.Recorded, []string{"a"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var once sync.Once
			c := cluster(interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				once.Do(func() {
					if err := test.meddle(ctx, c); err != nil {
						t.Error(err)
					}
				})
				return c.Patch(ctx, o, p, opts...)
			}}, recorded(spot("old").Notice))
			got, err := intake.NewRecorder(c, oneNode(), options()).Record(t.Context(), spot("a"))
			if err != nil || got != test.want {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
			if diff := cmp.Diff(test.wantIDs, ids(t, c)); diff != "" {
				t.Errorf("notices on record (-want +got):\n%s", diff)
			}
		})
	}
}

func changeRecord(ctx context.Context, c client.Client, change func(*v1beta1.Interruption) error) error {
	var record v1beta1.Interruption
	if err := c.Get(ctx, client.ObjectKey{Name: instance}, &record); err != nil {
		return err
	}
	return change(&record)
}

func TestDeletingRecordIsNotJoined(t *testing.T) {
	record := recorded(spot("old").Notice)
	record.Finalizers = []string{"example.com/held"}
	record.DeletionTimestamp = &metav1.Time{Time: now}
	var reads atomic.Int32
	c := cluster(interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if reads.Add(1) == 3 { // the deletion completes
			err := changeRecord(ctx, c, func(r *v1beta1.Interruption) error {
				r.Finalizers = nil
				return c.Update(ctx, r)
			})
			if err != nil {
				t.Error(err)
			}
		}
		return c.Get(ctx, key, o, opts...)
	}}, record)
	got, err := intake.NewRecorder(c, oneNode(), options()).Record(t.Context(), spot("a"))
	if got != intake.Recorded {
		t.Errorf("got %q, %v, want a new record", got, err)
	}
	if diff := cmp.Diff([]string{"a"}, ids(t, c)); diff != "" {
		t.Errorf("notices on record (-want +got):\n%s", diff)
	}
}
