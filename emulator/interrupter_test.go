package emulator_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
)

// TestSpotInterrupterRuns makes the calls of AWS's ec2-spot-interrupter: its first run, which
// creates its role, and a second one.
func TestSpotInterrupterRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, err := emulator.New(emulator.Options{})
		if err != nil {
			t.Fatal(err)
		}
		go server.Work(t.Context())
		program := emulatortest.NewSpotInterrupter(emulatortest.Config(server))
		for range 2 {
			launched, err := server.States.EC2.Launch(ec2.LaunchInput{ImageID: "ami-1", Type: "m5.large", Min: 6, Max: 6, Spot: &ec2.SpotOptions{}})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute) // pending
			var ids []string
			for _, in := range launched {
				ids = append(ids, in.ID)
			}
			began := time.Now()
			x, err := program.Start(t.Context(), 15*time.Second, ids...)
			if err != nil {
				t.Fatal(err)
			}
			if err := program.Follow(t.Context(), x); err != nil {
				t.Fatal(err)
			}
			for _, id := range ids {
				checkReclaimed(t, server, id, began)
			}
		}
		if left := server.States.FIS.Templates(); len(left) > 0 {
			t.Errorf("%d experiment templates are left", len(left))
		}
		if created, put := server.Gate.Calls("iam", "CreateRole"), server.Gate.Calls("iam", "PutRolePolicy"); created != 2 || put != 1 {
			t.Errorf("CreateRole %d times, PutRolePolicy %d times, want 2 and 1", created, put)
		}
	})
}

// checkReclaimed checks what EC2 sent about an instance, and when.
func checkReclaimed(t *testing.T, server *emulator.Server, id string, began time.Time) {
	t.Helper()
	type sent struct {
		what  string
		after time.Duration
	}
	var got []sent
	for _, e := range server.States.Events.Archive() {
		if strings.HasPrefix(e.DetailType, "EC2 ") && !e.Time.Before(began) && strings.Contains(string(e.Detail), id) {
			got = append(got, sent{e.DetailType, e.Time.Sub(began).Round(time.Second)})
		}
	}
	want := []sent{
		{"EC2 Instance Rebalance Recommendation", 0},
		{"EC2 Spot Instance Interruption Warning", 15 * time.Second},
		{"EC2 Instance State-change Notification", 135 * time.Second},
	}
	if diff := cmp.Diff(want, got[:min(len(got), len(want))], cmp.AllowUnexported(sent{})); diff != "" {
		t.Errorf("events of %s (-want +got):\n%s", id, diff)
	}
	if in, ok := server.States.EC2.Instance(id); !ok || !slices.Contains([]ec2.InstanceState{ec2.ShuttingDown, ec2.Terminated}, in.State) {
		t.Errorf("instance %s is %s at the end of the experiment", id, in.State)
	}
}
