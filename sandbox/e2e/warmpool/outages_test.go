package warmpool

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

// TestOutages measures what an outage costs while instances come into service, with hooks of ten
// minutes. docs/guides/warm-pools.md has the same table.
func TestOutages(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		scenario
		// loses: the hook's timeout abandons the launches that wait, and the group replaces their
		// instances.
		// abandoned, and others take their place.
		loses bool
	}{
		{"the controller for ten minutes", scenario{control: noController(10 * time.Minute), trouble: none}, false},
		{"Auto Scaling's API for nine minutes", scenario{control: always, trouble: noAPI(9 * time.Minute)}, false},
		{"Auto Scaling's API for longer than the hook waits", scenario{control: always, trouble: noAPI(12 * time.Minute)}, true},
		{"the machines' network for nine minutes", scenario{control: always, trouble: noNetwork(9 * time.Minute)}, false},
		{"the machines' network for longer than the hook waits", scenario{control: always, trouble: noNetwork(14 * time.Minute)}, false},
		{"the controller and the machines' network for nine minutes", scenario{control: noController(9 * time.Minute), trouble: noNetwork(9 * time.Minute)}, false},
		{"the controller and the machines' network for longer than the hook waits", scenario{control: noController(14 * time.Minute), trouble: noNetwork(14 * time.Minute)}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.way, tt.groups = lifeboat{}, groups()[:3]
			for seed := range max(1, repetitions()/20) {
				synctest.Test(t, func(t *testing.T) {
					lost := 0
					for _, f := range tt.play(t, seed) {
						if tt.loses && (f.kind == takenDown || f.kind == replaced) && strings.Contains(f.text, ":Wait:") {
							lost++
							continue
						}
						t.Error(fmt.Sprint(seed), f)
					}
					if tt.loses && lost == 0 {
						t.Error("no launch was lost, but the guide lists losses")
					}
				})
			}
		})
	}
}

// noController stops the controller for some time, starting when instances leave the pools.
func noController(d time.Duration) func(context.Context, *world) {
	return func(ctx context.Context, w *world) {
		first, stop := context.WithCancel(ctx)
		w.control(first)
		sleep.For(ctx, untilPools)
		stop()
		if sleep.For(ctx, d) {
			w.control(ctx)
		}
	}
}

func none(context.Context, *world) {}

// noAPI makes every Auto Scaling call fail.
func noAPI(d time.Duration) func(context.Context, *world) {
	return func(ctx context.Context, w *world) {
		sleep.For(ctx, 30*time.Second)
		w.cloud.Gate.Fail("autoscaling", wire.AnyAction)
		sleep.For(ctx, d)
		w.cloud.Gate.Lift("autoscaling", wire.AnyAction)
	}
}

// noNetwork cuts all machines off from AWS, instance metadata and the cluster.
func noNetwork(d time.Duration) func(context.Context, *world) {
	return func(ctx context.Context, w *world) {
		until := time.Now().Add(d)
		for time.Now().Before(until) {
			for _, m := range w.all() {
				m.cloud.restart(time.Until(until))
				m.metadata.restart(time.Until(until))
			}
			sleep.For(ctx, time.Second)
		}
	}
}
