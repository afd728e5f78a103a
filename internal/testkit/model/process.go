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

// ErrDead is the answer for goroutines of a killed process.
var ErrDead = errors.New("the process is dead")

// Request is a request of a process to the API server.
type Request struct {
	// Process is the name of the process, and Actor the part of it that made the request.
	Process *Process
	Actor   string
	// Verb is get, list, create, patch, delete or evict.
	Verb string
	Key  Key
	// Sub is the subresource, if any.
	Sub string
	// Stop has the deletion options, for delete and evict.
	Stop Stop
	// Wanted is the requested object, for create and patch.
	Wanted client.Object

	carryOut func() error
	answer   chan error
}

func (r *Request) String() string {
	return fmt.Sprintf("%s: %s %s %s", r.Actor, r.Verb, r.Key, r.Sub)
}

// CarryOut executes the request and returns its answer.
func (r *Request) CarryOut() error { return r.carryOut() }

// Answer ends the request.
func (r *Request) Answer(err error) { r.answer <- err }

// Writes reports whether the request may change anything.
func (r *Request) Writes() bool { return r.Verb != "get" && r.Verb != "list" }

// Process is one run of a program, with its own client and caches.
type Process struct {
	Name      string
	Server    *Server
	Scheduler *Scheduler
	// Lag returns how far the cache of a kind is behind.
	Lag func(kind string) time.Duration
	// Context ends with the process.
	Context context.Context //nolint:containedctx // it is the lifetime of the process

	die     context.CancelFunc
	dead    bool
	views   map[string]*view
	indexes map[string]client.IndexerFunc
}

// view is the cache of one kind.
type view struct {
	objects map[Key]client.Object
	notify  func(Change)
	next    time.Time // when the newest pending change arrives
}

// NewProcess starts a process.
func NewProcess(name string, s *Server, c *Scheduler) *Process {
	p := &Process{Name: name, Server: s, Scheduler: c, views: map[string]*view{}, indexes: map[string]client.IndexerFunc{}}
	p.Context, p.die = context.WithCancel(context.Background())
	s.Changed = append(s.Changed, p.changed)
	return p
}

// Kill kills the process: none of its later requests is executed.
func (p *Process) Kill() {
	p.dead = true
	p.die()
}

// Dead reports whether the process was killed.
func (p *Process) Dead() bool { return p.dead }

// Cache caches a kind from its current state on, and calls notify for each change once the cache
// shows it.
func (p *Process) Cache(kind string, notify func(Change)) {
	v := &view{objects: map[Key]client.Object{}, notify: notify}
	p.Server.Each(kind, func(o client.Object) { v.objects[KeyOf(o)] = o })
	p.views[kind] = v
}

// Cached returns the cached objects of a kind, by name; do not change them.
func (p *Process) Cached(kind string) []client.Object {
	return slices.SortedFunc(maps.Values(p.views[kind].objects), byName)
}

func (p *Process) changed(c Change) {
	v := p.views[c.Key.Kind]
	if p.dead || v == nil {
		return
	}
	at := p.Scheduler.Now().Add(p.Lag(c.Key.Kind))
	if at.Before(v.next) {
		at = v.next
	}
	v.next = at
	p.Scheduler.At(at, "cache "+p.Name, func() {
		if p.dead {
			return
		}
		seen := Change{Key: c.Key, Old: v.objects[c.Key], New: c.New}
		if c.New == nil {
			delete(v.objects, c.Key)
		} else {
			v.objects[c.Key] = c.New
		}
		if v.notify != nil && (seen.Old != nil || seen.New != nil) {
			v.notify(seen)
		}
	})
}

// Call submits a request to something else than the API server to the scheduler.
func (p *Process) Call(ctx context.Context, verb string, k Key, do func() error) error {
	return p.request(ctx, &Request{Verb: verb, Key: k, carryOut: do})
}

// request submits a request to the scheduler.
func (p *Process) request(ctx context.Context, r *Request) error {
	r.Process, r.Actor = p, p.Name+" "+actorOf(ctx)
	if p.Context.Err() != nil {
		return ErrDead
	}
	return p.Scheduler.Submit(r)
}
