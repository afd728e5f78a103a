package model

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrDead is what a process that was killed gets for an answer, if that still
// runs which asked.
var ErrDead = errors.New("the process is dead")

// Request is something that a process asks the API server for.
type Request struct {
	// Process asks, by the name of an actor in it.
	Process *Process
	Actor   string
	// Verb is get, list, create, patch, delete or evict.
	Verb string
	Key  Key
	// Sub is the subresource, if any.
	Sub string
	// Stop is how a pod is to be stopped, for delete and evict.
	Stop Stop
	// Wanted is the object as the process wants it, for create and patch.
	Wanted client.Object

	carryOut func() error
	answer   chan error
}

func (r *Request) String() string {
	return fmt.Sprintf("%s: %s %s %s", r.Actor, r.Verb, r.Key, r.Sub)
}

// CarryOut does what is asked for and returns what is to be answered.
func (r *Request) CarryOut() error { return r.carryOut() }

// Answer ends the request.
func (r *Request) Answer(err error) { r.answer <- err }

// Writes reports whether the request may change anything.
func (r *Request) Writes() bool { return r.Verb != "get" && r.Verb != "list" }

// Process is one life of a program: a client, and caches of its own.
type Process struct {
	Name      string
	Server    *Server
	Conductor *Conductor
	// Lag says how long the cache of a kind is behind.
	Lag func(kind string) time.Duration
	// Context is done once the process is.
	Context context.Context //nolint:containedctx // it is the life itself

	die     context.CancelFunc
	dead    bool
	views   map[string]*view
	indexes map[string]client.IndexerFunc
}

// view is the cache of one kind.
type view struct {
	objects map[Key]client.Object
	tell    func(Change)
	next    time.Time // when the newest change that is under way arrives
}

// NewProcess begins a life.
func NewProcess(name string, s *Server, c *Conductor) *Process {
	p := &Process{Name: name, Server: s, Conductor: c, views: map[string]*view{}, indexes: map[string]client.IndexerFunc{}}
	p.Context, p.die = context.WithCancel(context.Background())
	s.Changed = append(s.Changed, p.changed)
	return p
}

// Kill ends it: nothing that it asks for from now on is carried out.
func (p *Process) Kill() {
	p.dead = true
	p.die()
}

// Dead reports whether it was killed.
func (p *Process) Dead() bool { return p.dead }

// Cache has a kind cached, as it is now and with all changes from here on, each
// of which is told once the cache shows it.
func (p *Process) Cache(kind string, tell func(Change)) {
	v := &view{objects: map[Key]client.Object{}, tell: tell}
	p.Server.Each(kind, func(o client.Object) { v.objects[KeyOf(o)] = o })
	p.views[kind] = v
}

// Cached returns what the cache shows of a kind, by name; do not change it.
func (p *Process) Cached(kind string) []client.Object {
	return slices.SortedFunc(maps.Values(p.views[kind].objects), byName)
}

func (p *Process) changed(c Change) {
	v := p.views[c.Key.Kind]
	if p.dead || v == nil {
		return
	}
	at := p.Conductor.Now().Add(p.Lag(c.Key.Kind))
	if at.Before(v.next) {
		at = v.next
	}
	v.next = at
	p.Conductor.At(at, "cache "+p.Name, func() {
		if p.dead {
			return
		}
		seen := Change{Key: c.Key, Old: v.objects[c.Key], New: c.New}
		if c.New == nil {
			delete(v.objects, c.Key)
		} else {
			v.objects[c.Key] = c.New
		}
		if v.tell != nil && (seen.Old != nil || seen.New != nil) {
			v.tell(seen)
		}
	})
}

// Call has the conductor decide what becomes of a request to somebody else than
// the API server.
func (p *Process) Call(ctx context.Context, verb string, k Key, do func() error) error {
	return p.request(ctx, &Request{Verb: verb, Key: k, carryOut: do})
}

// request has the conductor decide what becomes of a request.
func (p *Process) request(ctx context.Context, r *Request) error {
	r.Process, r.Actor = p, p.Name+" "+actorOf(ctx)
	if p.Context.Err() != nil {
		return ErrDead
	}
	return p.Conductor.Submit(r)
}
