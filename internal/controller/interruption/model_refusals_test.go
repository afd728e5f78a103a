package interruption

import (
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/lifeboat-dev/lifeboat/internal/testkit/model"
)

// refusedWrite makes the API server, an admission policy or a webhook refuse a kind of write.
type refusedWrite struct {
	write string // what is refused, as writeOf names it
	on    string // the only node that it is about; empty: all
	from  time.Time
	until time.Time // zero: it never ends
	once  bool
	err   error
}

// The writes that can be refused.
const (
	writeNode      = "node patch"
	writeRecord    = "status of a record"
	writeSurge     = "pod patch"
	writePodStatus = "pod status patch"
	writeEvict     = "eviction"
	writeDelete    = "pod deletion"
	writeTerminate = "termination"
	writeHook      = "hook"
)

// drawRefusals draws which writes are refused.
func (r *modelRun) drawRefusals() {
	if !r.c.Chance(.5) {
		return
	}
	for range pick(r, 1, 1, 2) {
		what := pick(r, writeNode, writeNode, writeRecord, writeRecord, writeSurge, writePodStatus, writeEvict, writeDelete, writeTerminate, writeHook)
		f := &refusedWrite{write: what, from: r.c.Now().Add(pick(r, 0, r.c.Between(0, 5*time.Minute)))}
		if r.c.Chance(.6) {
			f.on = pick(r, r.nodeNames()[2:]...)
		}
		switch r.c.Rand.IntN(3) {
		case 0:
			f.once = true
		case 1:
			f.until = f.from.Add(r.c.Between(30*time.Second, 8*time.Minute))
		}
		f.err = r.refusalError(what)
		r.note("%s of %q is refused from %s until %s, once %v: %v", f.write, f.on, r.bookkeeping.at(f.from), r.bookkeeping.at(f.until), f.once, f.err)
		r.refusals = append(r.refusals, f)
	}
}

func (r *modelRun) refusalError(what string) error {
	if what == writeTerminate {
		return errors.New("UnauthorizedOperation: you are not authorized to perform this operation")
	}
	resource := schema.GroupResource{Resource: what}
	return pick[error](r,
		apierrors.NewForbidden(resource, "x", errors.New("ValidatingAdmissionPolicy 'platform' denied request")),
		apierrors.NewInvalid(schema.GroupKind{Kind: what}, "x", field.ErrorList{field.TooLong(field.NewPath("status"), "", 10)}),
		apierrors.NewInternalError(errors.New(`failed calling webhook "policy.example.com": context deadline exceeded`)),
	)
}

// writeOf names the write of a request, and the node that it is about.
func (r *modelRun) writeOf(q *model.Request) (write, node string) {
	switch {
	case !q.Writes():
		return "", ""
	case q.Verb == "terminate":
		return writeTerminate, r.bookkeeping.inst(q.Key.Name).node
	case q.Key.Kind == "Member":
		return q.Verb, r.group.member(q.Key.Name).node
	case q.Verb == "hook":
		return writeHook, r.bookkeeping.inst(q.Key.Name).node
	case q.Key.Kind == "Node" && q.Verb == "patch":
		return writeNode, q.Key.Name
	case q.Key.Kind == "Interruption" && q.Sub == "status":
		return writeRecord, r.bookkeeping.inst(q.Key.Name).node
	case q.Key.Kind != "Pod":
		return "", ""
	}
	if pod, ok := r.Get(q.Key).(*corev1.Pod); ok {
		node = pod.Spec.NodeName
	}
	switch {
	case q.Verb == "evict":
		return writeEvict, node
	case q.Verb == "delete":
		return writeDelete, node
	case q.Sub == "status":
		return writePodStatus, node
	}
	return writeSurge, node
}

// refuses returns the error of a request that is refused now, else nil.
func (r *modelRun) refuses(q *model.Request) error {
	write, node := r.writeOf(q)
	if write == "" {
		return nil
	}
	for _, f := range r.refusals {
		if f.write == write && f.covers(node, r.c.Now()) {
			if f.once {
				f.until = r.c.Now()
			}
			return f.err
		}
	}
	return nil
}

func (f *refusedWrite) covers(node string, at time.Time) bool {
	return (f.on == "" || f.on == node) && !at.Before(f.from) && (f.until.IsZero() || at.Before(f.until))
}

// refused reports whether any of these writes about a node is refused at some time in a span, and
// writes that follow it may be late.
func (r *modelRun) refused(node string, from time.Time, writes ...string) bool {
	return slices.ContainsFunc(r.refusals, func(f *refusedWrite) bool {
		return (f.on == "" || f.on == node) && slices.Contains(writes, f.write) && f.from.Before(r.c.Now()) &&
			(f.until.IsZero() || f.until.Add(time.Minute).After(from))
	})
}

// noteRefused answers a refused request, and checks how often it is repeated.
func (r *modelRun) noteRefused(q *model.Request, err error) {
	r.note("%s: refused: %v", q, err)
	now := r.c.Now()
	r.bookkeeping.refusals++
	if q.Key.Kind == "Member" {
		r.group.noteRefused(q, err)
	}
	if q.Key.Kind == "Pod" && (q.Verb == "evict" || q.Verb == "delete") {
		if pod, ok := r.Get(q.Key).(*corev1.Pod); ok {
			r.bookkeeping.tried(pod)
		}
	}
	key := q.String() // it names the process
	i := r.bookkeeping.inst(q.Actor[strings.LastIndexByte(q.Actor, ' ')+1:])
	if q.Key.Kind == "Pod" {
		i.refusedPods++
	}
	noticed := i.changed
	hour := slices.DeleteFunc(r.repeats[key], func(at time.Time) bool { return now.Sub(at) > time.Hour || at.Before(noticed) })
	r.repeats[key] = append(hour, now)
	if len(hour) > maxRepeats {
		r.halted = true
		r.broken(backsOff, "%s was refused %d times within an hour: %v", q, len(hour), err)
	}
}
