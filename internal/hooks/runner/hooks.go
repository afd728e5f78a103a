package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/hooks"
)

// maxStatuses is the CRD's limit on hook statuses and on notification statuses.
const maxStatuses = 8

// resultDelay is added to a try's timeout before it counts as lost, so that a result
// at the very end still arrives.
const resultDelay = 5 * time.Second

// requeueSoon is the requeue delay when the next step is possible at once.
const requeueSoon = 100 * time.Millisecond

// Hooks takes the hooks of one time one step further: it starts, checks or ends
// the first hook that is not finished. An error means that the API server could
// not be reached; the outcome is then unchanged.
func (r *Runner) Hooks(ctx context.Context, run HookRun) (HookOutcome, error) {
	w := &hookPass{Runner: r, run: &run, out: HookOutcome{Status: slices.Clone(run.Status)}}
	for i := range run.Hooks {
		h := &run.Hooks[i]
		if h.When != run.When {
			continue
		}
		status := w.status(h)
		if status != nil && hooks.IsFinished(*h, *status, run.GoAhead) {
			continue
		}
		next, err := w.step(ctx, h, status)
		if err != nil {
			return HookOutcome{Status: run.Status, Waits: fmt.Sprintf("hook %s: %v", h.Name, err)}, fmt.Errorf("hook %s: %w", h.Name, err)
		}
		w.put(h, next)
		break
	}
	w.out.Waits = hooks.Awaited(run.Hooks, run.When, w.out.Status, run.Subject, run.GoAhead)
	w.out.Done = w.out.Waits == ""
	if w.out.Done {
		w.out.Until = time.Time{}
	}
	return w.out, nil
}

// hookPass is one pass over the hooks.
type hookPass struct {
	*Runner
	run *HookRun
	out HookOutcome
}

func (w *hookPass) status(h *v1beta1.Hook) *v1beta1.HookStatus {
	for i := range w.out.Status {
		if w.out.Status[i].Name == h.Name {
			return &w.out.Status[i]
		}
	}
	return nil
}

// put stores a hook's status. If the list is full, put drops the oldest
// statuses of hooks that the policy no longer has.
func (w *hookPass) put(h *v1beta1.Hook, next v1beta1.HookStatus) {
	next.Message = clip(next.Message, longestMessage)
	if at := w.status(h); at != nil {
		*at = next
		return
	}
	w.out.Status = append(w.out.Status, next)
	for len(w.out.Status) > maxStatuses {
		i := slices.IndexFunc(w.out.Status, func(s v1beta1.HookStatus) bool {
			return !slices.ContainsFunc(w.run.Hooks, func(h v1beta1.Hook) bool { return h.Name == s.Name })
		})
		if i < 0 {
			return
		}
		w.out.Status = slices.Delete(w.out.Status, i, i+1)
	}
}

// step takes one hook one step further and returns its new status.
func (w *hookPass) step(ctx context.Context, h *v1beta1.Hook, status *v1beta1.HookStatus) (v1beta1.HookStatus, error) {
	switch {
	case status == nil:
		return w.begin(ctx, h, 1, "")
	case status.State == v1beta1.HookRunning && h.Webhook != nil:
		return w.checkCall(h, *status), nil
	case status.State == v1beta1.HookRunning:
		return w.checkJob(ctx, h, *status)
	case status.CompletionTime != nil:
		return *status, nil // it waits for an approval
	case w.run.Now.Before(hooks.NextTry(*status)):
		w.out.Until = hooks.NextTry(*status)
		return *status, nil
	}
	return w.begin(ctx, h, status.Try+1, status.Message)
}

// begin starts a try; before is the message of the previous try.
func (w *hookPass) begin(ctx context.Context, h *v1beta1.Hook, try int32, before string) (v1beta1.HookStatus, error) {
	status := v1beta1.HookStatus{Name: h.Name, State: v1beta1.HookRunning, Try: try, StartTime: micro(w.run.Now)}
	var not *startError
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
	w.addEvent(v1beta1.ReasonHookStarted, text)
	if w.out.Until.IsZero() {
		w.out.Until = w.end(h, status)
	}
	return status, nil
}

// startError means that a try could not start.
type startError struct {
	error
	forGood bool // a retry would fail in the same way
}

func (w *hookPass) start(ctx context.Context, h *v1beta1.Hook, status *v1beta1.HookStatus) error {
	if h.Webhook != nil {
		return w.startCall(h, status)
	}
	return w.startJob(ctx, h, status)
}

// startCall starts the webhook request in the background.
func (w *hookPass) startCall(h *v1beta1.Hook, status *v1beta1.HookStatus) error {
	if _, err := hooks.Body(*h.Webhook, w.run.Subject, nil); err != nil {
		return &startError{err, true}
	}
	key, timeout := w.run.Subject.TryKey(h.Name, status.Try), hooks.Timeout(*h)
	w.hooks.start(key, &webhookCall{
		webhook: *h.Webhook, subject: w.run.Subject, key: key, record: w.run.Subject.Interruption, queueTimeout: timeout, timeout: timeout,
	})
	return nil
}

// checkCall reads the result of the webhook request. An unknown id belongs to a
// process that has ended, so the request is made again.
func (w *hookPass) checkCall(h *v1beta1.Hook, status v1beta1.HookStatus) v1beta1.HookStatus {
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
		w.out.Until = w.run.Now.Add(resultDelay) // the timeout has passed on this clock; the call ends on the pool's clock
	}
	return status
}

// end is the latest time at which a try ends.
func (w *hookPass) end(h *v1beta1.Hook, status v1beta1.HookStatus) time.Time {
	return status.StartTime.Add(hooks.Timeout(*h) + resultDelay)
}

func (w *hookPass) addEvent(reason, message string) {
	w.out.Happened = append(w.out.Happened, Event{Reason: reason, Message: message})
}

func (w *hookPass) succeeded(h *v1beta1.Hook, status v1beta1.HookStatus, message string) v1beta1.HookStatus {
	now := micro(w.run.Now)
	status.State, status.CompletionTime, status.Message = v1beta1.HookSucceeded, &now, message
	w.addEvent(v1beta1.ReasonHookSucceeded, fmt.Sprintf("hook %s succeeded: %s", h.Name, message))
	w.o.Metrics.hooks.WithLabelValues("succeeded").Inc()
	w.out.Until = w.run.Now.Add(requeueSoon) // the next hook may start
	return status
}

// failed ends a try; later tries may follow.
func (w *hookPass) failed(h *v1beta1.Hook, status v1beta1.HookStatus, message string) v1beta1.HookStatus {
	if status.Try > h.Retries {
		return w.failedForGood(h, status, message)
	}
	w.o.Metrics.hooks.WithLabelValues("failed").Inc()
	status.State, status.Message = v1beta1.HookFailed, message
	w.out.Until = later(w.run.Now, hooks.NextTry(status))
	return status
}

func (w *hookPass) failedForGood(h *v1beta1.Hook, status v1beta1.HookStatus, message string) v1beta1.HookStatus {
	w.o.Metrics.hooks.WithLabelValues("failed").Inc()
	now := micro(w.run.Now)
	status.State, status.CompletionTime, status.Message = v1beta1.HookFailed, &now, message
	w.out.Until = w.run.Now.Add(requeueSoon) // the next hook may start
	what := "the drain continues without it"
	if h.OnFailure == v1beta1.HookHold {
		what = "the policy holds the drain"
		w.out.Until = time.Time{}
	}
	w.addEvent(v1beta1.ReasonHookFailed, fmt.Sprintf("hook %s failed and %s: %s", h.Name, what, message))
	return status
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// micro truncates a time to the API's precision.
func micro(t time.Time) metav1.MicroTime { return metav1.NewMicroTime(t.Truncate(time.Microsecond)) }
