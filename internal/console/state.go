package console

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/console/view"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// state is the copy of Lifeboat's objects, and the pages that follow it. It is safe for
// concurrent use. Objects in it are not changed.
type state struct {
	o Options

	mu            sync.Mutex
	interruptions map[string]*v1beta1.Interruption
	groups        map[string]*v1beta1.NodeGroup
	policies      map[string]*v1beta1.InterruptionPolicy
	health        view.Health
	// listed is true after the first list of interruptions.
	listed bool
	// failures are the errors of the watches, by what they watch.
	failures map[string]string
	pages    map[*page]bool
}

// page is an open page. It gets what changed since its last update.
type page struct {
	changed map[string]bool // names of interruptions
	all     bool
	wake    chan struct{}
}

func newState(o Options) *state {
	return &state{
		o: o, interruptions: map[string]*v1beta1.Interruption{}, groups: map[string]*v1beta1.NodeGroup{},
		policies: map[string]*v1beta1.InterruptionPolicy{}, failures: map[string]string{}, pages: map[*page]bool{},
		health: view.Health{Problems: []finding.Finding{}},
	}
}

// open adds a page, which first gets everything.
func (s *state) open() *page {
	p := &page{changed: map[string]bool{}, all: true, wake: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages[p] = true
	p.notify()
	return p
}

func (s *state) close(p *page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pages, p)
}

func (s *state) watched() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pages) > 0
}

func (p *page) notify() {
	select {
	case p.wake <- struct{}{}:
	default: // it is awake already
	}
}

// change changes the state and wakes the pages. name is an interruption, or empty.
func (s *state) change(name string, change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	for p := range s.pages {
		if name != "" {
			p.changed[name] = true
		}
		p.notify()
	}
}

func (s *state) setInterruption(object any, deleted bool) {
	slim, _ := record.Slim(object)
	in, ok := slim.(*v1beta1.Interruption)
	if !ok {
		return
	}
	s.change(in.Name, func() {
		s.interruptions[in.Name] = in
		if deleted {
			delete(s.interruptions, in.Name)
		}
	})
}

func (s *state) replaceInterruptions(objects []any) {
	all := map[string]*v1beta1.Interruption{}
	for _, object := range objects {
		slim, _ := record.Slim(object)
		if in, ok := slim.(*v1beta1.Interruption); ok {
			all[in.Name] = in
		}
	}
	s.change("", func() {
		s.interruptions, s.listed = all, true
		for p := range s.pages {
			p.all = true
		}
	})
}

func (s *state) setGroup(object any, deleted bool) {
	if g, ok := object.(*v1beta1.NodeGroup); ok {
		s.change("", func() { put(s.groups, g.Name, g, deleted) })
	}
}

func (s *state) replaceGroups(objects []any) {
	s.change("", func() {
		clear(s.groups)
		for _, object := range objects {
			if g, ok := object.(*v1beta1.NodeGroup); ok {
				s.groups[g.Name] = g
			}
		}
	})
}

func (s *state) setPolicy(object any, deleted bool) {
	if p, ok := object.(*v1beta1.InterruptionPolicy); ok {
		s.change("", func() { put(s.policies, p.Name, p, deleted) })
	}
}

func (s *state) replacePolicies(objects []any) {
	s.change("", func() {
		clear(s.policies)
		for _, object := range objects {
			if p, ok := object.(*v1beta1.InterruptionPolicy); ok {
				s.policies[p.Name] = p
			}
		}
	})
}

func put[T any](all map[string]T, name string, object T, deleted bool) {
	all[name] = object
	if deleted {
		delete(all, name)
	}
}

func (s *state) setHealth(h view.Health) { s.change("", func() { s.health = h }) }

// answered notes whether the API server answered a request about what.
func (s *state) answered(what string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	s.mu.Lock()
	same := s.failures[what] == text
	s.mu.Unlock()
	if !same {
		s.change("", func() { s.failures[what] = text })
	}
}

// detail returns an interruption, by its name.
func (s *state) detail(name string) (view.Detail, bool) {
	s.mu.Lock()
	in := s.interruptions[name]
	s.mu.Unlock()
	if in == nil {
		return view.Detail{}, false
	}
	return view.NewDetail(in, s.o.Program, s.o.Now()), true
}

// sorted returns the interruptions, the oldest first.
func (s *state) sorted() []*v1beta1.Interruption {
	return slices.SortedFunc(maps.Values(s.interruptions), func(a, b *v1beta1.Interruption) int {
		return cmp.Or(record.FirstNotice(a).Compare(record.FirstNotice(b)), cmp.Compare(a.Name, b.Name))
	})
}
