package interruption

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// expectationTimeout is how long a version that this process replaced counts as
// stale. The watch delivers the next version long before.
const expectationTimeout = 5 * time.Second

// writesKept is how long a replaced version is remembered. It is longer than
// expectationTimeout and status.FlushInterval, so nothing asks for older ones.
const writesKept = time.Minute

// expectations remembers which versions of objects this process has replaced. A
// pass against such a version would repeat its work: the cache is stale. Best
// effort: after a restart the worst case is one conflict error.
type expectations struct {
	mu      sync.Mutex
	objects map[string]replacedVersions // by name
	pruned  time.Time                   // when old entries were last removed
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
	if now.Sub(e.pruned) >= writesKept {
		maps.DeleteFunc(e.objects, func(_ string, r replacedVersions) bool { return now.Sub(r.last) >= writesKept })
		e.pruned = now
	}
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

// LastWrite is when this process last replaced a version of an object; zero: not in the last minute.
func (e *expectations) LastWrite(name string) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.objects[name].last
}

// set writes to a map and makes it first where that is necessary.
func set[V any](m *map[string]V, key string, value V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = value
}

// newRecord is for how long an Interruption is new. The replica that recorded it knew its node, and
// the cache of this one may be older.
const newRecord = 10 * time.Second

// lacksNode reports whether the node of a new Interruption exists, although the cache lacks it. Without
// this, the Interruption would be completed as that of a node that is gone.
func (c *Controller) lacksNode(ctx context.Context, in *v1beta1.Interruption, now time.Time) (bool, error) {
	if in.Spec.NodeUID == "" || c.Live == nil || now.Sub(in.CreationTimestamp.Time) >= newRecord {
		return false, nil
	}
	var node corev1.Node
	err := c.Live.Get(ctx, client.ObjectKey{Name: in.Spec.NodeName}, &node)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading the node past the cache: %w", err)
	}
	return err == nil && node.UID == in.Spec.NodeUID, nil
}
