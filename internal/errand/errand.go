// Package errand does what a policy wants done beside the drain: it runs hooks,
// which are Jobs and webhooks, and delivers notifications. Hooks and Tell are
// level-triggered and take at most one step; HTTP calls go on in the
// background, in a bounded pool, and wake the record once they are over.
package errand

import (
	"context"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/hook"
)

// Jobs in other namespaces are the chart's to grant (hooks.namespaces), and so
// are the Secrets that hold URLs (webhooks.secrets): one by one, by name.
//
// +kubebuilder:rbac:groups=batch,namespace=lifeboat-system,resources=jobs,verbs=get;list;watch;create;delete

// Options are what a Runner needs.
type Options struct {
	// Client makes, reads and deletes Jobs; it may read from a cache.
	Client client.Client
	// Live reads past the cache: Secrets, and Jobs that the cache does not know.
	Live client.Reader
	// Namespace is Lifeboat's own: of Jobs whose hook names none, and of Secrets.
	Namespace string
	// Wake has the record of that name looked at again. It must not block. Nil:
	// nobody is told, and records are looked at when Until or Wake says.
	Wake func(record string)
	// HTTP makes the calls; nil: one of its own. Redirects are followed as
	// checkRedirect says in any case.
	HTTP *http.Client
	// Abreast is how many calls of hooks are made at the same time, and a quarter
	// of it how many to one host; 0: 16. As many are made for notifications, for
	// which no hook waits.
	Abreast int
	// Metrics are counted in; nil: nobody reads them.
	Metrics *Metrics
}

// Runner runs hooks and delivers notifications. It is safe for concurrent use.
// It runs from New on and ends with Start.
type Runner struct {
	o             Options
	hooks         *desk
	notifications *desk
}

// New returns a Runner.
func New(o Options) *Runner {
	if o.Abreast <= 0 {
		o.Abreast = 16
	}
	if o.Wake == nil {
		o.Wake = func(string) {}
	}
	if o.Metrics == nil {
		o.Metrics, _ = NewMetrics(nil) // registers nothing, so nothing can fail
	}
	p := newPoster(&o)
	return &Runner{o: o, hooks: newDesk(o.Abreast, o.Wake, p.post), notifications: newDesk(o.Abreast, o.Wake, p.post)}
}

// NeedLeaderElection says that one process runs it at a time.
func (r *Runner) NeedLeaderElection() bool { return true }

// Start waits until ctx is over and ends the calls that are under way. What
// they would have brought is not known; the next process makes them again.
func (r *Runner) Start(ctx context.Context) error {
	<-ctx.Done()
	r.hooks.close()
	r.notifications.close()
	return nil
}

// Happening is something that belongs in the timeline.
type Happening struct {
	// Reason is one of the Reason constants of the API.
	Reason string
	// Message is a sentence for people.
	Message string
}

// HookRun is what Hooks needs to know.
type HookRun struct {
	// Hooks are the policy's, of any time, in its order.
	Hooks []v1alpha1.Hook
	// When says which of them are run.
	When v1alpha1.HookTime
	// Status is how far they have come, as it was read from the record.
	Status []v1alpha1.HookStatus
	// Subject is what they are told.
	Subject hook.Subject
	// Now is the time.
	Now time.Time
	// GoAhead is when a person last approved, or zero: later than the end of a
	// hook that has failed, it lets the rest go on.
	GoAhead time.Time
}

// HookOutcome is how the hooks stand.
type HookOutcome struct {
	// Status is the whole list, to be written to the record.
	Status []v1alpha1.HookStatus
	// Done tells that no hook of that time is waited for.
	Done bool
	// Waits says what is waited for, as the rest of a sentence that begins with
	// "waits: "; empty if Done.
	Waits string
	// Until is when that may end by itself: look again. Zero: it needs a person,
	// or it is done.
	Until time.Time
	// Happened belongs in the timeline once Status is written.
	Happened []Happening
}

// Telling is what Tell needs to know.
type Telling struct {
	// Notifications are the policy's.
	Notifications []v1alpha1.Notification
	// Timeline is the record's, as it was read: what is not written yet might be
	// told and never be so.
	Timeline []v1alpha1.TimelineEntry
	// Notified is how far they have come, as it was read.
	Notified []v1alpha1.NotifiedStatus
	// Subject is what they are told, but for Reason and Message, which are of
	// the entries.
	Subject hook.Subject
	// Now is the time.
	Now time.Time
}

// Told is how the notifications stand.
type Told struct {
	// Notified is the whole list, to be written to the record.
	Notified []v1alpha1.NotifiedStatus
	// Happened belongs in the timeline once Notified is written.
	Happened []Happening
	// Wake is when to look again, or zero.
	Wake time.Time
	// Idle tells that there is nothing left to tell, and nothing under way.
	Idle bool
}
