// Package runner runs the hooks of a policy (Jobs and webhooks) and delivers
// its notifications. Hooks and Notify are level-triggered and take at most one
// step per call. HTTP requests run in the background in a bounded pool, which
// requeues the Interruption when a request ends.
package runner

import (
	"context"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/hooks"
)

// The chart grants this Role in each namespace of hooks.namespaces, and in no
// other. It grants the Secrets that hold URLs (webhooks.secrets) by name.
//
// +kubebuilder:rbac:groups=batch,namespace=lifeboat-hooks,resources=jobs,verbs=get;create;delete

// Options configure a Runner.
type Options struct {
	// Client creates and deletes Jobs.
	Client client.Client
	// Live reads Jobs and Secrets past the cache.
	Live client.Reader
	// Namespace is Lifeboat's own, where Secrets are read.
	Namespace string
	// JobNamespaces are the only namespaces in which hooks may run Jobs. If
	// there is one, it is the default.
	JobNamespaces []string
	// WakeHooks and WakeNotifications requeue the Interruption of that name when a
	// request of a hook, or of a notification, is answered. They must not block. Nil:
	// the caller relies on HookOutcome.Until and NotifyResult.Wake.
	WakeHooks, WakeNotifications func(record string)
	// Destinations limits what webhooks may call.
	Destinations Destinations
	// HTTP makes the requests; nil: a client with default limits that checks each
	// address. checkRedirect
	// replaces its redirect policy in any case.
	HTTP *http.Client
	// Concurrency is how many hook calls may run at the same time; a quarter of
	// it may go to one host. Zero: 16. Notifications have a pool of the same
	// size, so that they never delay a hook.
	Concurrency int
	// Metrics counts the results; nil: metrics that are not registered.
	Metrics *Metrics
}

// Runner runs hooks and delivers notifications. It is safe for concurrent use.
// It works from New on; Start stops it when its context ends.
type Runner struct {
	o             Options
	hooks         *pool
	notifications *pool
}

// New returns a Runner.
func New(o Options) *Runner {
	if o.Concurrency <= 0 {
		o.Concurrency = 16
	}
	if o.WakeHooks == nil {
		o.WakeHooks = func(string) {}
	}
	if o.WakeNotifications == nil {
		o.WakeNotifications = func(string) {}
	}
	if o.Metrics == nil {
		o.Metrics, _ = NewMetrics(nil) // registers nothing, so nothing can fail
	}
	p := newWebhookClient(&o)
	return &Runner{o: o, hooks: newPool(o.Concurrency, o.WakeHooks, p.post), notifications: newPool(o.Concurrency, o.WakeNotifications, p.post)}
}

// NeedLeaderElection makes the manager run it on the leader only.
func (r *Runner) NeedLeaderElection() bool { return true }

// Start waits for the end of ctx and cancels the calls in progress. Their
// results are lost; the next process repeats them with the same keys.
func (r *Runner) Start(ctx context.Context) error {
	<-ctx.Done()
	r.hooks.close()
	r.notifications.close()
	return nil
}

// Event is an entry for the timeline.
type Event struct {
	// Reason is one of the Reason constants of the API.
	Reason string
	// Message is a sentence for people.
	Message string
}

// HookRun is the input of Hooks.
type HookRun struct {
	// Hooks are all hooks of the policy, in its order.
	Hooks []v1beta1.Hook
	// When selects the hooks to run.
	When v1beta1.HookTime
	// Status is their state as read from the record.
	Status []v1beta1.HookStatus
	// Subject describes the interruption to the hooks.
	Subject hooks.Subject
	// Now is the current time.
	Now time.Time
	// GoAhead is the time of the last approval, or zero. An approval later than
	// a hook's failure lets the remaining hooks run.
	GoAhead time.Time
}

// HookOutcome is the state of the hooks after one step.
type HookOutcome struct {
	// Status is the complete list to write to the record.
	Status []v1beta1.HookStatus
	// Done is true if no hook of that time is pending.
	Done bool
	// Waits names the hook that is waited for and why. It completes a sentence
	// that begins with "waits: "; empty if Done.
	Waits string
	// Until is when to reconcile again. Zero: the hooks are done, or a person
	// must act.
	Until time.Time
	// Happened are timeline entries to add in the write that stores Status.
	Happened []Event
}

// NotifyRequest is the input of Notify.
type NotifyRequest struct {
	// Notifications are the policy's.
	Notifications []v1beta1.Notification
	// Timeline is the record's, as read. Entries that are not stored yet must
	// not be sent: their write may fail.
	Timeline []v1beta1.TimelineEntry
	// Notified is the delivery state as read from the record.
	Notified []v1beta1.NotificationStatus
	// Subject describes the interruption. Notify sets Reason and Message from
	// the timeline entries.
	Subject hooks.Subject
	// Now is the current time.
	Now time.Time
}

// NotifyResult is the state of the notifications after one step.
type NotifyResult struct {
	// Notified is the complete list to write to the record.
	Notified []v1beta1.NotificationStatus
	// Happened are timeline entries to add in the write that stores Notified.
	Happened []Event
	// Wake is when to reconcile again, or zero.
	Wake time.Time
	// Idle is true if nothing is left to send and no request is in progress.
	Idle bool
}
