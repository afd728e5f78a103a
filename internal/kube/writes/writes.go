// Package writes notes which writes the API server accepts, and which it refuses for good: by an admission
// policy, a webhook, validation or RBAC. Such a write fails again until a person changes something.
package writes

import (
	"context"
	"reflect"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/kube/rejection"
)

// The kinds of objects that Lifeboat writes, in the order of what a refusal costs.
const (
	Node         = "node"
	Pod          = "pod"
	Interruption = "interruption"
	NodeClaim    = "nodeclaim"
	Job          = "job"
	// Instance is EC2's, and not an object of the API server.
	Instance = "instance"
)

// Kinds are the kinds of objects.
func Kinds() []string { return []string{Node, Pod, Interruption, NodeClaim, Job} }

// Note notes in the Log of the context what became of a request to something else than the API server.
func Note(ctx context.Context, kind, name string, err error) {
	if l, ok := ctx.Value(logKey{}).(*Log); ok {
		l.note(kind, name, err)
	}
}

// Refusal is a write that the API server refuses.
type Refusal struct {
	Kind, Name string
	Err        error
}

// Log is what became of the writes of a pass.
type Log struct {
	mu       sync.Mutex
	refused  map[string]Refusal // by kind: the first
	accepted map[string]bool
}

type logKey struct{}

// Collect returns a context whose writes are noted in the Log.
func Collect(ctx context.Context) (context.Context, *Log) {
	l := &Log{refused: map[string]Refusal{}, accepted: map[string]bool{}}
	return context.WithValue(ctx, logKey{}, l), l
}

// Refused returns the first refused write of each kind, in the order of Kinds.
func (l *Log) Refused() []Refusal {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []Refusal
	for _, kind := range append(Kinds(), Instance) {
		if r, ok := l.refused[kind]; ok {
			all = append(all, r)
		}
	}
	return all
}

// Accepted reports whether a write of a kind was accepted and none was refused.
func (l *Log) Accepted(kind string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, refused := l.refused[kind]
	return l.accepted[kind] && !refused
}

func (l *Log) note(kind, name string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.refused[kind]; err != nil && !known {
		l.refused[kind] = Refusal{kind, name, err}
	}
	l.accepted[kind] = l.accepted[kind] || err == nil
}

// Observe returns a client that notes its writes in the Log of their context, and reports each refused
// one. It leaves out evictions: a budget that refuses one is no fault, and the record says it for each pod.
func Observe(c client.Client, refused func(kind string)) client.Client {
	return &observed{Client: c, refused: refused}
}

type observed struct {
	client.Client
	refused func(kind string)
}

func (o *observed) note(ctx context.Context, to client.Object, err error) error {
	isRefused := rejection.Is(err) && !apierrors.IsNotFound(err) // else it is gone, or may succeed later
	if err != nil && !isRefused {
		return err
	}
	kind := kindOf(to)
	if isRefused {
		o.refused(kind)
	}
	Note(ctx, kind, to.GetName(), err)
	return err
}

// kindOf is the kind in lower case. A typed object need not name its kind, and is named as its type.
func kindOf(o client.Object) string {
	kind := o.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = reflect.TypeOf(o).Elem().Name()
	}
	return strings.ToLower(kind)
}

// Create creates an object.
func (o *observed) Create(ctx context.Context, to client.Object, opts ...client.CreateOption) error {
	return o.note(ctx, to, o.Client.Create(ctx, to, opts...))
}

// Patch patches an object.
func (o *observed) Patch(ctx context.Context, to client.Object, p client.Patch, opts ...client.PatchOption) error {
	return o.note(ctx, to, o.Client.Patch(ctx, to, p, opts...))
}

// Delete deletes an object.
func (o *observed) Delete(ctx context.Context, to client.Object, opts ...client.DeleteOption) error {
	return o.note(ctx, to, o.Client.Delete(ctx, to, opts...))
}

// Status returns the client of the status.
func (o *observed) Status() client.SubResourceWriter {
	return &observedStatus{SubResourceWriter: o.Client.Status(), of: o}
}

type observedStatus struct {
	client.SubResourceWriter
	of *observed
}

// Patch patches the status of an object.
func (s *observedStatus) Patch(ctx context.Context, to client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	return s.of.note(ctx, to, s.SubResourceWriter.Patch(ctx, to, p, opts...))
}
