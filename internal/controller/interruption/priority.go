package interruption

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// later is more seconds than lie between any two moments that count here: what
// has a soft deadline comes after what has a hard one, whenever that is.
const later = 1 << 40

// priorityOf ranks records in the queue: the higher, the sooner. The earliest
// hard deadline goes first, then the earliest soft one, then what has none.
func priorityOf(in *v1alpha1.Interruption) int {
	if notice.Finished(in) {
		return -3 * later
	}
	deadline := notice.Deadline(notice.Unanswered(in.Spec.Notices, in.Status.Answered), time.Time{})
	switch {
	case deadline == nil:
		return -2 * later
	case deadline.Type == v1alpha1.DeadlineSoft:
		return -later - int(deadline.Time.Unix())
	}
	return -int(deadline.Time.Unix())
}

// requests are records to look at, with their rank in the queue.
type requests map[string]int

// enqueue hands a queue the records that an object concerns.
func enqueue[O any](concerned func(context.Context, O) requests) handler.TypedFuncs[O, reconcile.Request] {
	add := func(ctx context.Context, o O, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		for name, rank := range concerned(ctx, o) {
			request := reconcile.Request{NamespacedName: client.ObjectKey{Name: name}}
			if ranked, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
				ranked.AddWithOpts(priorityqueue.AddOpts{Priority: &rank}, request)
				continue
			}
			q.Add(request)
		}
	}
	return handler.TypedFuncs[O, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[O], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(ctx, e.Object, q)
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[O], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(ctx, e.ObjectNew, q)
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[O], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(ctx, e.Object, q)
		},
		GenericFunc: func(ctx context.Context, e event.TypedGenericEvent[O], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(ctx, e.Object, q)
		},
	}
}
