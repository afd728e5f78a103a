package errand

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/hook"
)

// most is how many hooks, and how many notifications, a status takes.
const most = 8

// late is how much longer than its timeout a try is waited for: what it did at
// the very end has to be heard of.
const late = 5 * time.Second

// soon is when to look again where the next step can be taken already.
const soon = 100 * time.Millisecond

// Hooks takes the policy's hooks of one time a step further: the first of them
// that is not done with is begun, looked at, or given up. An error says that
// the API server could not be asked; the outcome is then as nothing was done.
func (r *Runner) Hooks(ctx context.Context, run HookRun) (HookOutcome, error) {
	w := &walk{Runner: r, run: &run, out: HookOutcome{Status: slices.Clone(run.Status)}}
	for i := range run.Hooks {
		h := &run.Hooks[i]
		if h.When != run.When {
			continue
		}
		status := w.status(h)
		if status != nil && hook.Over(*h, *status, run.GoAhead) {
			continue
		}
		next, err := w.step(ctx, h, status)
		if err != nil {
			return HookOutcome{Status: run.Status, Waits: fmt.Sprintf("hook %s: %v", h.Name, err)}, fmt.Errorf("hook %s: %w", h.Name, err)
		}
		w.put(h, next)
		break
	}
	w.out.Waits = hook.Awaited(run.Hooks, run.When, w.out.Status, run.Subject, run.GoAhead)
	w.out.Done = w.out.Waits == ""
	if w.out.Done {
		w.out.Until = time.Time{}
	}
	return w.out, nil
}

// walk is one pass over the hooks.
type walk struct {
	*Runner
	run *HookRun
	out HookOutcome
}

func (w *walk) status(h *v1alpha1.Hook) *v1alpha1.HookStatus {
	for i := range w.out.Status {
		if w.out.Status[i].Name == h.Name {
			return &w.out.Status[i]
		}
	}
	return nil
}

// put writes a hook's status into the list. Where that is full, those of hooks
// that the policy no longer has make room, the oldest first.
func (w *walk) put(h *v1alpha1.Hook, next v1alpha1.HookStatus) {
	next.Message = clip(next.Message, longestMessage)
	if at := w.status(h); at != nil {
		*at = next
		return
	}
	w.out.Status = append(w.out.Status, next)
	for len(w.out.Status) > most {
		i := slices.IndexFunc(w.out.Status, func(s v1alpha1.HookStatus) bool {
			return !slices.ContainsFunc(w.run.Hooks, func(h v1alpha1.Hook) bool { return h.Name == s.Name })
		})
		if i < 0 {
			return
		}
		w.out.Status = slices.Delete(w.out.Status, i, i+1)
	}
}

// step takes one hook a step further and returns how it stands then.
func (w *walk) step(ctx context.Context, h *v1alpha1.Hook, status *v1alpha1.HookStatus) (v1alpha1.HookStatus, error) {
	switch {
	case status == nil:
		return w.begin(ctx, h, 1, "")
	case status.State == v1alpha1.HookRunning && h.Webhook != nil:
		return w.lookAtCall(h, *status), nil
	case status.State == v1alpha1.HookRunning:
		return w.lookAtJob(ctx, h, *status)
	case status.CompletionTime != nil:
		return *status, nil // it waits for a person
	case w.run.Now.Before(hook.NextTry(*status)):
		w.out.Until = hook.NextTry(*status)
		return *status, nil
	}
	return w.begin(ctx, h, status.Try+1, status.Message)
}

// begin begins a try; before says what came of the one before it.
func (w *walk) begin(ctx context.Context, h *v1alpha1.Hook, try int32, before string) (v1alpha1.HookStatus, error) {
	status := v1alpha1.HookStatus{Name: h.Name, State: v1alpha1.HookRunning, Try: try, StartTime: micro(w.run.Now)}
	var not *refused
	switch err := w.start(ctx, h, &status); {
	case errors.As(err, &not) && not.forGood:
		return w.failedForGood(h, status, not.Error()), nil
	case errors.As(err, &not):
		return w.failed(h, status, not.Error()), nil
	case err != nil:
		return status, err
	}
	text := fmt.Sprintf("hook %s began (try %d of %d)", h.Name, try, h.Retries+1)
	if try > 1 {
		text = fmt.Sprintf("hook %s is tried again (try %d of %d): %s", h.Name, try, h.Retries+1, before)
	}
	w.happen(v1alpha1.ReasonHookStarted, text)
	if w.out.Until.IsZero() {
		w.out.Until = w.end(h, status)
	}
	return status, nil
}

// refused says why a try could not be begun.
type refused struct {
	error
	forGood bool // another try would end the same way
}

func (w *walk) start(ctx context.Context, h *v1alpha1.Hook, status *v1alpha1.HookStatus) error {
	if h.Webhook != nil {
		return w.startCall(h, status)
	}
	return w.startJob(ctx, h, status)
}

// startCall makes the webhook's call, in the background.
func (w *walk) startCall(h *v1alpha1.Hook, status *v1alpha1.HookStatus) error {
	body, err := hook.Body(*h.Webhook, w.run.Subject)
	if err != nil {
		return &refused{err, true}
	}
	key, timeout := w.run.Subject.TryKey(h.Name, status.Try), hook.Timeout(*h)
	w.hooks.start(key, &call{
		webhook: *h.Webhook, body: body, key: key, record: w.run.Subject.Interruption, patience: timeout, limit: timeout,
	})
	return nil
}

// lookAtCall looks at what came of the webhook's call. One that nobody knows
// of was made by a process that has ended; it is made again.
func (w *walk) lookAtCall(h *v1alpha1.Hook, status v1alpha1.HookStatus) v1alpha1.HookStatus {
	a, known := w.hooks.ask(w.run.Subject.TryKey(h.Name, status.Try), w.run.Now)
	switch {
	case !known:
		status.StartTime = micro(w.run.Now)
		if err := w.startCall(h, &status); err != nil {
			return w.failedForGood(h, status, err.Error())
		}
	case a != nil && a.ok:
		return w.succeeded(h, status, a.message)
	case a != nil:
		return w.failed(h, status, a.message)
	}
	w.out.Until = w.end(h, status)
	if !w.out.Until.After(w.run.Now) {
		w.out.Until = w.run.Now.Add(late) // the clocks differ: the call ends by its own
	}
	return status
}

// end is when a try is over at the latest.
func (w *walk) end(h *v1alpha1.Hook, status v1alpha1.HookStatus) time.Time {
	return status.StartTime.Add(hook.Timeout(*h) + late)
}

func (w *walk) happen(reason, message string) {
	w.out.Happened = append(w.out.Happened, Happening{Reason: reason, Message: message})
}

func (w *walk) succeeded(h *v1alpha1.Hook, status v1alpha1.HookStatus, message string) v1alpha1.HookStatus {
	now := micro(w.run.Now)
	status.State, status.CompletionTime, status.Message = v1alpha1.HookSucceeded, &now, message
	w.happen(v1alpha1.ReasonHookSucceeded, fmt.Sprintf("hook %s succeeded: %s", h.Name, message))
	w.o.Metrics.hooks.WithLabelValues("succeeded").Inc()
	w.out.Until = w.run.Now.Add(soon) // the next may begin
	return status
}

// failed ends a try, which may not be the last.
func (w *walk) failed(h *v1alpha1.Hook, status v1alpha1.HookStatus, message string) v1alpha1.HookStatus {
	if status.Try > h.Retries {
		return w.failedForGood(h, status, message)
	}
	w.o.Metrics.hooks.WithLabelValues("failed").Inc()
	status.State, status.Message = v1alpha1.HookFailed, message
	w.out.Until = later(w.run.Now, hook.NextTry(status))
	return status
}

func (w *walk) failedForGood(h *v1alpha1.Hook, status v1alpha1.HookStatus, message string) v1alpha1.HookStatus {
	w.o.Metrics.hooks.WithLabelValues("failed").Inc()
	now := micro(w.run.Now)
	status.State, status.CompletionTime, status.Message = v1alpha1.HookFailed, &now, message
	w.out.Until = w.run.Now.Add(soon) // the next may begin
	what := "the policy goes on without it"
	if h.OnFailure == v1alpha1.HookHold {
		what = "the policy holds for it"
		w.out.Until = time.Time{}
	}
	w.happen(v1alpha1.ReasonHookFailed, fmt.Sprintf("hook %s failed, and %s: %s", h.Name, what, message))
	return status
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// micro is a moment as the API keeps it.
func micro(t time.Time) metav1.MicroTime { return metav1.NewMicroTime(t.Truncate(time.Microsecond)) }
