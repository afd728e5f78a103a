package ec2

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/replica"
)

// With a lag, a new instance is unknown to some calls, and a later call can know less than an
// earlier one. Calls that change it work at once, and answer from the true state.
func TestLag(t *testing.T) {
	inWorld(t, Timing{}, func(t *testing.T, w *world) {
		const most = 3 * time.Second
		w.SetLag(replica.Lag{Most: most, Random: rand.New(rand.NewPCG(1, 2))})
		made, err := w.Launch(LaunchInput{ImageID: "ami-1", Min: 1, Max: 1, Tags: map[string]string{"a": "1"}})
		if err != nil {
			t.Fatal(err)
		}
		id := made[0].ID
		var known, unknown, forgotten int
		before := false
		for range 100 {
			_, err := w.Describe([]string{id}, nil)
			if err != nil {
				wantCode(t, err, "InvalidInstanceID.NotFound")
				unknown++
				if before {
					forgotten++
				}
			} else {
				known++
			}
			before = err == nil
			if all, err := w.DescribeStatus(nil, nil, true); err != nil || len(all) > 1 {
				t.Fatalf("all statuses: %d, %v", len(all), err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if known == 0 || unknown == 0 || forgotten == 0 {
			t.Errorf("known to %d calls, unknown to %d, and to %d after it was known; want some of each", known, unknown, forgotten)
		}
		if err := w.CreateTags([]string{id}, map[string]string{"a": "2"}); err != nil {
			t.Fatal(err)
		}
		stopped, err := w.Terminate([]string{id})
		if err != nil || stopped[0].Current != ShuttingDown {
			t.Fatalf("terminate: %v, %v", stopped, err)
		}
		stopped, err = w.Terminate([]string{id})
		if err != nil || stopped[0].Previous != ShuttingDown {
			t.Errorf("terminate again: %v, %v", stopped, err)
		}
		time.Sleep(w.timing.ShutdownFor + most)
		list, err := w.Describe([]string{id}, nil)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "state after the lag", list[0].State, Terminated)
		same(t, "tag after the lag", list[0].Tags["a"], "2")
	})
}
