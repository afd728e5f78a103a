// Package lifecyclehook sends heartbeats to the lifecycle hooks that hold interrupted instances
// in their Auto Scaling groups, and completes them. It has workers of its own, so that no drain
// waits for these calls. The interruption controller decides about the drain, and confirms in
// status.drain.lifecycleHooksDueTime that the hooks can be completed. This controller writes
// status.lifecycleHooks.
package lifecyclehook

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/asg/membership"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/status"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// +kubebuilder:rbac:groups=lifeboat.dev,resources=interruptions,verbs=get;list;watch
// +kubebuilder:rbac:groups=lifeboat.dev,resources=interruptions/status,verbs=patch
// +kubebuilder:rbac:groups=lifeboat.dev,resources=nodegroups,verbs=list;watch

const (
	// maxReconciles is how many instances are called for at the same time. One call takes up to
	// 10 s, and they share a rate limit.
	maxReconciles = 16
	// conflictRequeue is when to try again after a conflict: the cache is stale, or the
	// interruption controller wrote the status.
	conflictRequeue = 250 * time.Millisecond
)

// Caller calls the lifecycle hooks; aws.Lifecycle is one.
type Caller interface {
	Complete(context.Context, cloud.Action, cloud.Result) error
	Heartbeat(context.Context, cloud.Action) error
}

// NodeIndex finds the node of an instance; nil: it has none.
type NodeIndex interface {
	NodeByInstance(ctx context.Context, instanceID string) (*corev1.Node, error)
}

// Options configure the controller. All fields are required.
type Options struct {
	Client client.Client
	// Nodes finds the nodes for Kubernetes Events.
	Nodes   NodeIndex
	Members membership.Reader
	Hooks   Caller
	Events  events.EventRecorder
	// Clock returns the current time.
	Clock func() time.Time
}

// Controller calls lifecycle hooks.
type Controller struct {
	o Options
}

// New returns the controller.
func New(o Options) *Controller { return &Controller{o: o} }

// Register adds the controller to a manager. groups yields the names of groups that changed.
func (c *Controller) Register(mgr ctrl.Manager, groups <-chan event.TypedGenericEvent[string]) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("lifecyclehook").
		For(&v1beta1.Interruption{}, builder.WithPredicates(predicate.NewPredicateFuncs(c.hasGroup))).
		WatchesRawSource(source.Channel(groups, handler.TypedEnqueueRequestsFromMapFunc(c.ofGroup))).
		WithOptions(controller.Options{MaxConcurrentReconciles: maxReconciles}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), c))
}

// hasGroup reports whether the instance of an Interruption is in a group, as far as is known.
// A group that is read later enqueues its Interruptions.
func (c *Controller) hasGroup(o client.Object) bool {
	in, ok := o.(*v1beta1.Interruption)
	return ok && c.o.Members.Group(in) != ""
}

// ofGroup returns the unfinished Interruptions of the instances of a group.
func (c *Controller) ofGroup(ctx context.Context, group string) (requests []reconcile.Request) {
	var list v1beta1.InterruptionList
	if err := c.o.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "listing interruptions from the cache")
		return nil
	}
	for i := range list.Items {
		if in := &list.Items[i]; !notice.Finished(in) && c.o.Members.Group(in) == group {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(in)})
		}
	}
	return requests
}

// isDecided reports whether the status has a decision about the newest notice, which is the last.
// An earlier decision, such as Notify for a rebalance recommendation, says nothing about a
// termination.
func isDecided(in *v1beta1.Interruption) bool {
	n := len(in.Spec.Notices)
	return n > 0 && in.Status.Decision != nil && in.Status.LastNoticeID == in.Spec.Notices[n-1].ID
}

// Reconcile records the state of the hooks that hold the instance, and calls them if that is due.
func (c *Controller) Reconcile(ctx context.Context, in *v1beta1.Interruption) (reconcile.Result, error) {
	if !in.DeletionTimestamp.IsZero() || notice.Finished(in) || !isDecided(in) || notice.AllWithdrawn(notice.Unanswered(in.Spec.Notices, notice.Handled(&in.Status)), time.Time{}) {
		return reconcile.Result{}, nil // the next write of the interruption controller enqueues it
	}
	m, err := c.o.Members.Of(ctx, in)
	if err != nil {
		return reconcile.Result{}, err
	}
	node, err := c.o.Nodes.NodeByInstance(ctx, in.Spec.InstanceID)
	if err != nil {
		node = nil // several nodes state the instance
	}
	p := &pass{Controller: c, in: in, group: m, now: c.o.Clock()}
	p.update = status.ForTimeline(in, p.now).About(node)
	wake, err := p.run(ctx)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictRequeue}, nil
	}
	if err != nil || wake.IsZero() {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	return reconcile.Result{RequeueAfter: max(wake.Sub(c.o.Clock()), time.Millisecond)}, nil
}

// pass is one pass over an Interruption.
type pass struct {
	*Controller
	in     *v1beta1.Interruption
	group  membership.Membership
	now    time.Time
	update *status.Update
}

func (p *pass) writer() *status.Writer {
	return &status.Writer{Client: p.o.Client, Events: p.o.Events}
}

func (p *pass) decide() lifecycle.TerminationDecision {
	return lifecycle.DecideTermination(p.group.Termination(p.in, p.update.Status(), p.now))
}

// run records the state, calls the hooks, and returns when to look again; zero: when something
// changes.
func (p *pass) run(ctx context.Context) (wake time.Time, err error) {
	d := p.decide()
	p.record(d.Status)
	if d.Look {
		p.o.Members.Groups.RequestRefresh(d.Status.Group)
	}
	if d.Do != lifecycle.Nothing {
		if err := p.call(ctx, d.Do); err != nil {
			return time.Time{}, err
		}
		d = p.decide()
	}
	if p.update.Changed() {
		_, err = p.writer().Finish(ctx, p.update)
	}
	return d.Wake, err
}

// call calls the hooks. It writes the intent first, so that a crash repeats no call at once. A
// failed call is no error: the state of the instance shows what remains to do.
func (p *pass) call(ctx context.Context, do lifecycle.Verb) error {
	lifecycle.Note(p.update.Status().LifecycleHooks, do, p.now)
	if err := p.writer().Write(ctx, p.update); err != nil {
		return err
	}
	s := p.update.Status().LifecycleHooks
	errs := make([]error, len(s.Hooks))
	for i, h := range s.Hooks {
		action := cloud.Action{Group: s.Group, Hook: h.Name, InstanceID: p.in.Spec.InstanceID, Token: h.Token}
		if do == lifecycle.Complete {
			errs[i] = p.o.Hooks.Complete(ctx, action, cloud.Continue)
		} else {
			errs[i] = p.o.Hooks.Heartbeat(ctx, action)
		}
		if errs[i] != nil {
			log.FromContext(ctx).Info("a call for a lifecycle hook failed", "hook", h.Name, "call", do, "error", errs[i].Error())
		}
	}
	lifecycle.NoteResult(s, do, errs...)
	if do == lifecycle.Complete && s.Tries == 1 {
		p.update.Record(v1beta1.ReasonLifecycleActionSent, s.Message)
	}
	if do == lifecycle.Complete || errors.Join(errs...) != nil {
		p.o.Members.Groups.RequestRefresh(s.Group)
	}
	return nil
}

// record records the state of the hooks, and timeline entries for its changes.
func (p *pass) record(s *lifecycle.Status) {
	was := p.update.Status().LifecycleHooks
	p.update.Status().LifecycleHooks = s.DeepCopy()
	if s == nil {
		return
	}
	held, passed := s.WaitingSince != nil && (was == nil || was.WaitingSince == nil), s.CompletedTime != nil && (was == nil || was.CompletedTime == nil)
	switch {
	case passed:
		p.update.Record(v1beta1.ReasonLifecycleHookCompleted, s.Message)
	case held && (len(s.Hooks) == 0 || !record.Drains(p.in.Status.Decision.Action)):
		p.update.Record(v1beta1.ReasonLifecycleHookNotManaged, s.Message)
	case held:
		p.update.Record(v1beta1.ReasonLifecycleHookPending, s.Message)
	}
}
