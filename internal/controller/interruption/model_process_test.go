package interruption

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/groupcache"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/controller/lifecyclehook"
	"github.com/lifeboat-dev/lifeboat/internal/controller/nodecleanup"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/model"
)

// controllerProcess is one run of the controller process: the product's own controllers, with the queues and
// caches that a manager would provide.
type controllerProcess struct {
	*model.Process
	run     *modelRun
	loop    *Controller
	hooks   *lifecyclehook.Controller // nil: the cluster has no group
	orphans *nodecleanup.Controller
	// reads is what the controller's passes read their record with.
	reads    client.Client
	recorder *intake.Recorder
	skewed   *intake.Recorder // of another replica, with another clock
	nodes    *nodeindex.Index
	watches  map[string]*podWatch
	seen     groupcache.Group
	hinted   bool
	queue    map[string]*item
	leads    bool
	// left is when the watch showed that a pod leaves, and seenAsked when the record did.
	left      map[string]time.Time
	seenAsked map[types.UID]seenAsked
}

// begin starts a process whose caches show the current state. It works once they are synced.
func (r *modelRun) begin() *controllerProcess {
	r.lives++
	l := &controllerProcess{
		Process: model.NewProcess(fmt.Sprintf("life %d", r.lives), r.Server, r.c),
		run:     r, watches: map[string]*podWatch{}, queue: map[string]*item{},
		left: map[string]time.Time{}, seenAsked: map[types.UID]seenAsked{},
	}
	l.Lag = r.lag
	c := l.Client()
	var err error
	if l.nodes, err = nodeindex.New(l.Context, c, c); err != nil {
		panic(err)
	}
	l.wire(c)
	l.recorder = intake.NewRecorder(c, l.nodes, intake.Options{Live: l.Live(), Clock: r.c.Now})
	l.skewed = intake.NewRecorder(c, l.nodes, intake.Options{Live: l.Live(), Clock: func() time.Time { return r.c.Now().Add(r.chaos.skew) }})
	return l
}

// recorderOf returns who records a notice: another replica has its own clock.
func (l *controllerProcess) recorderOf(n notice.Notice) *intake.Recorder {
	if n.Source == notice.SourceIMDS {
		return l.skewed
	}
	return l.recorder
}

// reconcileAll reconciles everything once, as a controller does when its caches have synced.
func (l *controllerProcess) reconcileAll() {
	l.leads = true
	if l.run.group != nil {
		l.refreshPeriodically()
	}
	for _, o := range l.Cached("Interruption") {
		l.enqueueRecord(model.Change{Key: model.KeyOf(o), New: o})
	}
	for _, o := range l.Cached("Node") {
		l.nodeChanged(model.Change{Key: model.KeyOf(o), New: o})
	}
}

// item is an entry of a work queue; one worker handles it at a time.
type item struct {
	due     time.Time // zero: not queued
	turn    int       // distinguishes a later due time from this one
	running bool
	began   time.Time // start of the last pass
	dirty   bool
}

// add queues a key, at the earlier of this time and the time that it is queued for.
func (l *controllerProcess) add(key string, at time.Time) {
	if !l.leads {
		return // its caches are not synced yet
	}
	it := l.queue[key]
	if it == nil {
		it = &item{}
		l.queue[key] = it
	}
	if now := l.run.c.Now(); at.Before(now) {
		at = now
	}
	at = at.Add(l.run.tick())
	if !it.due.IsZero() && !at.Before(it.due) {
		return
	}
	it.due = at
	it.turn++
	turn := it.turn
	l.run.c.At(at, "queue "+key, func() {
		if l.Dead() || it.turn != turn {
			return
		}
		it.due = time.Time{}
		if it.running {
			it.dirty = true
			return
		}
		l.work(key, it)
	})
}

// work runs one pass.
func (l *controllerProcess) work(key string, it *item) {
	it.running, it.began = true, l.run.c.Now()
	var (
		result reconcile.Result
		err    error
		crash  string
	)
	l.run.c.Go(key, func() {
		defer func() {
			if p := recover(); p != nil {
				crash = fmt.Sprintf("%s panics: %v\n%s", key, p, debug.Stack())
			}
		}()
		result, err = l.pass(model.WithActor(l.Context, key), key)
	}, func() {
		it.running = false
		if crash != "" {
			l.run.fail("%s", crash)
		}
		if l.Dead() {
			return
		}
		l.run.checkPass(key, result, err)
		now := l.run.c.Now()
		switch {
		case err != nil:
			l.add(key, now.Add(l.loop.backoff.When(keyRequest(key))))
		case result.RequeueAfter > 0:
			l.loop.backoff.Forget(keyRequest(key))
			l.add(key, now.Add(result.RequeueAfter))
		default:
			l.loop.backoff.Forget(keyRequest(key))
		}
		if it.dirty {
			it.dirty = false
			l.add(key, now)
		}
	})
}

// keyRequest is what the backoff counts failures of. Only an Interruption has last calls.
func keyRequest(key string) reconcile.Request {
	name, isRecord := strings.CutPrefix(key, "record ")
	if !isRecord {
		name = key
	}
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

func (l *controllerProcess) pass(ctx context.Context, key string) (reconcile.Result, error) {
	var kind, name string
	if _, err := fmt.Sscan(key, &kind, &name); err != nil {
		return reconcile.Result{}, err
	}
	request := reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
	switch kind {
	case "orphan":
		return l.orphans.Reconcile(ctx, request)
	case "hooks":
		return reconcile.AsReconciler(l.Client(), l.hooks).Reconcile(ctx, request)
	}
	return reconcile.AsReconciler(l.reads, l.loop).Reconcile(ctx, request)
}

// seenAsked is when a process read in a record that a pod was asked to stop, and the time of the
// request in the record.
type seenAsked struct{ at, asked time.Time }

// leaving identifies a deletion with its grace.
func leaving(p *corev1.Pod) string {
	return fmt.Sprint(p.UID, p.DeletionTimestamp.Unix(), *p.DeletionGracePeriodSeconds)
}

// noteLeaving records when the process's watch has shown that pods leave.
func (l *controllerProcess) noteLeaving(pods ...*corev1.Pod) {
	for _, p := range pods {
		if p.DeletionTimestamp == nil {
			continue
		}
		if _, known := l.left[leaving(p)]; !known {
			l.left[leaving(p)] = l.run.c.Now()
		}
	}
}

// Terminate simulates the cloud.
func (l *controllerProcess) Terminate(ctx context.Context, instance string) error {
	err := l.Call(ctx, "terminate", model.Key{Kind: "Instance", Name: instance}, func() error {
		l.run.bookkeeping.terminated(instance)
		return nil
	})
	if apierrors.ReasonForError(err) != metav1.StatusReasonUnknown { // not one of EC2's
		return fmt.Errorf("%w: %w", cloud.ErrBusy, err)
	}
	return err
}

// Describe simulates EC2, which knows whether an instance runs and which node it is. It gives no
// name or address of an instance that terminates.
func (l *controllerProcess) Describe(_ context.Context, instance string) (*cloud.Instance, error) {
	i := l.run.bookkeeping.inst(instance)
	switch {
	case i.ended && i.off.IsZero():
		return &cloud.Instance{ID: instance, State: "shutting-down"}, nil
	case i.ended:
		return &cloud.Instance{ID: instance, State: "terminated"}, nil
	case !i.off.IsZero():
		return &cloud.Instance{ID: instance, State: "stopped", DNSName: i.node, SpotStatus: "marked-for-termination"}, nil
	}
	return &cloud.Instance{ID: instance, State: "running", DNSName: i.node, SpotStatus: "marked-for-termination"}, nil
}

// MayTerminate simulates the cloud; it always may.
func (l *controllerProcess) MayTerminate(ctx context.Context, instance string) error {
	return l.Call(ctx, "may-terminate", model.Key{Kind: "Instance", Name: instance}, func() error { return nil })
}

// recorderOfEvents counts the Events of a process.
type recorderOfEvents struct{ run *modelRun }

var _ events.EventRecorder = recorderOfEvents{}

// Eventf counts one Event.
func (e recorderOfEvents) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {
	e.run.mu.Lock()
	defer e.run.mu.Unlock()
	e.run.events++
}

// enqueueRecord delivers a change of a record to the controllers whose predicates match.
func (l *controllerProcess) enqueueRecord(c model.Change) {
	was, _ := c.Old.(*v1beta1.Interruption)
	is, _ := c.New.(*v1beta1.Interruption)
	switch {
	case is == nil:
		l.add("orphan "+was.Spec.NodeName, l.run.c.Now())
	case finished(is) && (was == nil || !finished(was)):
		l.add("orphan "+is.Spec.NodeName, l.run.c.Now())
	}
	if is != nil {
		for _, left := range record.Pending(record.Drain(&is.Status)) {
			switch known, ok := l.seenAsked[left.UID]; {
			case left.EvictionTime == nil:
				delete(l.seenAsked, left.UID)
			case !ok || !known.asked.Equal(left.EvictionTime.Time):
				l.seenAsked[left.UID] = seenAsked{l.run.c.Now(), left.EvictionTime.Time}
			}
		}
	}
	l.recordChanged(c)
}

func (l *controllerProcess) nodeChanged(c model.Change) {
	if isMarked(c.New) && !isMarked(c.Old) {
		l.add("orphan "+c.Key.Name, l.run.c.Now())
	}
	l.nodeIsOther(c)
}

func isMarked(o client.Object) bool {
	if o == nil {
		return false
	}
	_, marked := o.GetAnnotations()[v1beta1.AnnotationOriginalState]
	return marked
}
