package interruption

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/hooks/runner"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/model"
)

// hookTakes is how long a hook of the model runs.
const hookTakes = 10 * time.Second

// drawHooks draws the hooks of a policy.
func (r *modelRun) drawHooks() []v1beta1.Hook {
	call := &v1beta1.Webhook{URL: "https://hooks.example.com"}
	before := v1beta1.Hook{Name: "before", When: v1beta1.HookBeforeDrain, Webhook: call}
	after := v1beta1.Hook{Name: "after", When: v1beta1.HookAfterDrain, Webhook: call}
	return pick(r, []v1beta1.Hook{before}, []v1beta1.Hook{after}, []v1beta1.Hook{before, after})
}

// modelHooks simulates what runs hooks: each succeeds after some time.
type modelHooks struct{ *controllerProcess }

// Hooks takes the hooks of a time one step further.
func (h modelHooks) Hooks(ctx context.Context, run runner.HookRun) (runner.HookOutcome, error) {
	out := runner.HookOutcome{Status: slices.Clone(run.Status), Done: true}
	for i := range run.Hooks {
		hook := &run.Hooks[i]
		if hook.When != run.When {
			continue
		}
		at := slices.IndexFunc(out.Status, func(s v1beta1.HookStatus) bool { return s.Name == hook.Name })
		switch {
		case at < 0:
			err := h.Call(ctx, "hook", model.Key{Kind: "Hook", Name: run.Subject.Interruption}, func() error {
				h.run.note("hook %s of %s runs", hook.Name, run.Subject.Interruption)
				h.run.bookkeeping.checkHookRun(run.Subject.Interruption, run.When)
				return nil
			})
			if err != nil {
				return runner.HookOutcome{Status: run.Status, Waits: "the hook cannot be started"}, err
			}
			out.Status = append(out.Status, v1beta1.HookStatus{Name: hook.Name, State: v1beta1.HookRunning, Try: 1, StartTime: metav1.NewMicroTime(run.Now)})
			at = len(out.Status) - 1
		case out.Status[at].State == v1beta1.HookRunning && run.Now.Sub(out.Status[at].StartTime.Time) >= hookTakes:
			now := metav1.NewMicroTime(run.Now)
			out.Status[at].State, out.Status[at].CompletionTime = v1beta1.HookSucceeded, &now
		}
		if s := &out.Status[at]; s.State == v1beta1.HookRunning {
			out.Done, out.Waits, out.Until = false, "hook "+hook.Name+" runs", s.StartTime.Add(hookTakes)
			break
		}
	}
	return out, nil
}
