package interruption

import (
	"slices"
	"sync"
	"time"
)

// expectationTimeout is how long a version that this process replaced counts as
// stale. The watch delivers the next version long before.
const expectationTimeout = 5 * time.Second

// expectations remembers which versions of objects this process has replaced. A
// pass against such a version would repeat its work: the cache is stale. Best
// effort: after a restart the worst case is one conflict error.
type expectations struct {
	mu      sync.Mutex
	objects map[string]replacedVersions // by name
}

type replacedVersions struct {
	versions []string
	last     time.Time // when the latest of them was replaced
}

// Replaced notes that this process has replaced a version of an object.
func (e *expectations) Replaced(name, version string, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	known := e.objects[name]
	set(&e.objects, name, replacedVersions{append(known.versions, version), now})
}

// isStale reports whether this process has replaced a version. A version that it
// has not replaced makes the earlier ones irrelevant.
func (e *expectations) isStale(name, version string, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	known, ok := e.objects[name]
	if !ok {
		return false
	}
	if slices.Contains(known.versions, version) && now.Sub(known.last) < expectationTimeout {
		return true
	}
	known.versions = nil
	e.objects[name] = known
	return false
}

// LastWrite is when this process last replaced a version of an object; zero: never.
func (e *expectations) LastWrite(name string) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.objects[name].last
}

func (e *expectations) forget(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.objects, name)
}

// set writes to a map and makes it first where that is necessary.
func set[V any](m *map[string]V, key string, value V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = value
}
