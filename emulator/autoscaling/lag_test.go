package autoscaling

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/events"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// With a lag, Describe calls show old states and old membership.
func TestLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scope := wire.Scope{Account: "210987654321", Region: "eu-west-1"}
		s := New(Options{Scope: scope, EC2: ec2.New(ec2.Options{Scope: scope}), Emit: func(events.Event) {}, Consistency: Consistency{Lag: 10 * time.Second}})
		made, err := s.ec2.Launch(ec2.LaunchInput{ImageID: "ami-0abc", Min: 1, Max: 1})
		if err != nil {
			t.Fatal(err)
		}
		var got []LifecycleState
		look := func(after time.Duration) {
			time.Sleep(after)
			if members := s.describe()[0].members; len(members) > 0 {
				got = append(got, members[0].State)
			} else {
				got = append(got, "")
			}
		}
		do := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		do(s.CreateGroup(Group{Name: "g"}))
		do(s.Attach("g", made[0].ID, InService))
		look(0)
		look(10 * time.Second)
		do(s.Attach("g", made[0].ID, Terminating))
		look(5 * time.Second)
		do(s.Attach("g", made[0].ID, Terminating.wait()))
		look(4 * time.Second)
		look(time.Second)
		s.Detach(made[0].ID)
		look(5 * time.Second)
		look(5 * time.Second)
		s.SetConsistency(Consistency{})
		do(s.Attach("g", made[0].ID, Standby))
		look(0)
		want := []LifecycleState{"", InService, InService, InService, Terminating, Terminating.wait(), "", Standby}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("states (-want +got):\n%s", diff)
		}
		s.clock.Stop()
	})
}
