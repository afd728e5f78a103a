package sqs_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/intake/sqs"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

const blockExpires = `{"id":"b","detail-type":"Capacity Block Reservation Expiration Warning","source":"aws.ec2","account":"210987654321",` +
	`"time":"2026-05-11T08:14:02Z","region":"eu-west-1","detail":{"capacity-reservation-id":"cr-1","end-date":"2026-05-11T08:54:02Z"}}`

// TestGroupsAreTakenApart: a Capacity Block's warning names no instance; while
// they cannot be asked for, it stays in the queue.
func TestGroupsAreTakenApart(t *testing.T) {
	two := []string{"i-0a1b2c3d4e5f60718", "i-0bb2c3d4e5f607182"}
	for name, tc := range map[string]struct {
		instances func(context.Context, string, string) ([]string, error)
		recorded  []string
		deletes   int
	}{
		"each instance gets its notice": {func(_ context.Context, filter, value string) ([]string, error) {
			if filter != "capacity-reservation-id" || value != "cr-1" {
				return nil, errors.New("asked for " + filter + " " + value)
			}
			return two, nil
		}, two, 1},
		"a block without instances concerns nobody": {func(context.Context, string, string) ([]string, error) { return nil, nil }, nil, 1},
		"what cannot be asked for stays":            {func(context.Context, string, string) ([]string, error) { return nil, errors.New("denied") }, nil, 0},
		"without the source it is passed over":      {nil, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var mu sync.Mutex
				var recorded []string
				api := newPaper(blockExpires)
				w := &world{t: t, queue: "http://queue/0/lifeboat", calls: &calls{}, log: &lines{}}
				stop := w.run(api, recorderFunc(func(_ context.Context, n notice.Notice) (intake.Outcome, error) {
					mu.Lock()
					defer mu.Unlock()
					recorded = append(recorded, n.InstanceID)
					return intake.Recorded, nil
				}), sqs.Options{Receivers: 1, Instances: tc.instances})
				time.Sleep(time.Second) // on synctest's clock
				synctest.Wait()
				stop()
				if !slices.Equal(recorded, tc.recorded) || len(api.deletes) != tc.deletes {
					t.Errorf("recorded %v, deleted %d; want %v and %d", recorded, len(api.deletes), tc.recorded, tc.deletes)
				}
			})
		})
	}
}
