package scenario

import (
	"slices"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
)

// groupPollInterval is the polling interval of groups while nothing else changes.
const groupPollInterval = 100 * time.Millisecond

// watchGroups records the changes of Auto Scaling groups in the world.
func (p *player) watchGroups() (stop func()) {
	groups := p.autoScaling()
	seen := 0 // recordProtection by the watcher
	p.mu.Lock()
	p.groups = func(w *World) []Moment {
		var out []Moment
		trace := groups.Trace()
		for _, c := range trace[min(seen, len(trace)):] {
			out = append(out, w.Lifecycle(Lifecycle{Time: c.Time, Instance: c.InstanceID, Group: c.Group, State: string(c.To), Cause: c.Cause})...)
		}
		seen = len(trace)
		out = append(out, w.HookExecutions(hookExecutions(groups.Firings()))...)
		slices.SortStableFunc(out, func(a, b Moment) int { return a.Time.Compare(b.Time) })
		return out
	}
	p.mu.Unlock()
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(groupPollInterval)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				p.do(func(*World) []Moment { return nil })
			}
		}
	}()
	return func() { close(ended); <-done }
}

// hookExecutions converts the emulator's hook executions.
func hookExecutions(all []autoscaling.HookExecution) []HookExecution {
	var out []HookExecution
	for _, f := range all {
		out = append(out, HookExecution{
			Instance: f.InstanceID, Group: f.Group, Hook: f.Hook, Held: f.Held, Ended: f.Ended, Result: string(f.Result), By: HookExecutionEnd(f.By),
		})
	}
	return out
}
