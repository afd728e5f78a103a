package nodegroup_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator"
	emu "github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
)

// TestCommandPutsHooksOfManyGroups puts the hooks of 200 groups, with one token bucket for
// all calls, as AWS has it (EC2 Auto Scaling API Reference, "Request throttling"). The
// command is stopped in the middle and run again.
func TestCommandPutsHooksOfManyGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 200
		server, err := emulator.New(emulator.Options{})
		if err != nil {
			t.Fatal(err)
		}
		name := func(i int) string { return fmt.Sprintf("nodes-%03d.prod.example.com", i) }
		for i := range many {
			if err := server.States.AutoScaling.CreateGroup(emu.Group{Name: name(i), Max: 3}); err != nil {
				t.Fatal(err)
			}
		}
		var passed, refused atomic.Int32
		server.Gate.Watch(func(r *wire.Request, failure *wire.Error) {
			if failure != nil {
				refused.Add(1)
			} else if r.Action == "PutLifecycleHook" {
				passed.Add(1)
			}
		})
		server.Gate.Limit("autoscaling", wire.AnyAction, 4, 20) // fewer than the command's own rate
		command := func(ctx context.Context) error {
			api := nodegroup.NewCommandAPI(emulatortest.Config(server))
			for i := range many {
				w := nodegroup.Want(&v1beta1.NodeGroup{Spec: v1beta1.NodeGroupSpec{AutoScalingGroup: name(i), Management: v1beta1.ManageHooks}}, "prod")
				o, err := api.Observe(ctx, w.Group, time.Now())
				if err != nil {
					return err
				}
				for _, step := range nodegroup.Diff(w, o, nodegroup.History{}).Steps {
					if err := api.Apply(ctx, w, step); err != nil {
						return err
					}
				}
			}
			return nil
		}
		begun := time.Now()
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if err := command(ctx); err == nil || passed.Load() == 0 || passed.Load() >= 2*many {
			t.Fatalf("the command was not stopped in the middle: %v, %d hooks", err, passed.Load())
		}
		if err := command(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range many {
			if hooks, err := server.States.AutoScaling.Hooks(name(i), nil); err != nil || len(hooks) != 2 {
				t.Errorf("%s: %d hooks, %v", name(i), len(hooks), err)
			}
		}
		all := 0
		for _, n := range server.Gate.AllCalls("autoscaling") {
			all += n
		}
		t.Logf("%s, %d calls, %d refused", time.Since(begun), all, refused.Load())
		if passed.Load() != 2*many || refused.Load() == 0 || int(refused.Load()) > all/2 {
			t.Errorf("%d hooks written, %d of %d calls refused", passed.Load(), refused.Load(), all)
		}
	})
}
