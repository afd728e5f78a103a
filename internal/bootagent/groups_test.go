package bootagent_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/bootagent/boottest"
)

// Nine groups are created at the same time, three of them with warm pools, while Auto Scaling's
// answers lag (kubernetes/kops#16582); then all are scaled out.
func TestNineGroupsCreatedAtOnce(t *testing.T) {
	t.Parallel()
	const groups, each = 9, 3
	for seed := range uint64(4) {
		throws := dice(seed)
		hosts := func(ec2.Instance) boottest.Host {
			h := warming()
			h.Dice = throws
			h.BootFor = time.Duration(throws() * float64(40*time.Second))
			h.ReadyFor = time.Duration(throws() * float64(time.Minute))
			h.RunFor = time.Duration(throws() * float64(time.Minute))
			return h
		}
		runHosts(t, cold(0), hosts, func(w *world) {
			w.as.SetConsistency(autoscaling.Consistency{Lag: 4 * time.Second, TargetAfter: 20 * time.Second, ActionAfter: 3 * time.Second})
			w.Gate.Limit("autoscaling", "*", 3, 10)
			name := func(i int) string { return fmt.Sprintf("g%d", i) }
			for i := range groups {
				g := cold(1)
				g.Name, g.Max = name(i), each
				if i%3 == 0 {
					g.WarmPool = &autoscaling.WarmPool{State: autoscaling.WarmedStopped}
				}
				w.group(g)
			}
			count := func(state string) int {
				n := 0
				for _, m := range w.fleet.Machines() {
					if m.State() == state {
						n++
					}
				}
				return n
			}
			w.until(15*time.Minute, "each group has one in service, and three have two warm ones", func() bool {
				return count("InService") == groups && count("Warmed:Stopped") == 2*groups/3
			})
			for i := range groups {
				if err := w.as.SetDesired(name(i), each, false); err != nil {
					w.t.Fatal(err)
				}
			}
			w.until(15*time.Minute, "all are in service", func() bool { return count("InService") == groups*each })
			pass(15 * time.Minute) // longer than the hook's timeout
			if n := len(w.fleet.Machines()); n != groups*each {
				w.t.Errorf("seed %d: %d instances were launched for %d", seed, n, groups*each)
			}
			for _, m := range w.fleet.Machines() {
				w.serves(m)
			}
			for _, f := range w.firings("lifeboat-launch") {
				if f != answered {
					w.t.Errorf("seed %d: a firing ended by %s", seed, f)
				}
			}
		})
	}
}
