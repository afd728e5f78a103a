package interruption

import (
	"hash/maphash"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// takenFor is for how long a pod is not asked again, though it does not show it,
// once the API server has said that it is asked: in a storm watches begin late, and
// fall behind.
const takenFor = 2 * time.Minute

// taken knows which pods' evictions the API server has taken of late. Nothing hangs on
// it: who has forgotten asks once more, and the API server does nothing. Deletions are
// not among them: a deadline that comes nearer shortens a grace that was shortened a
// moment ago.
type taken struct {
	mu   sync.Mutex
	seed maphash.Seed
	// young and old are when it took those of this and of the last span of takenFor, in
	// nanoseconds since 1970, by a hash of the pod's UID: there may be many thousands.
	young, old map[uint64]int64
	turned     time.Time
}

// note notes that the API server has taken the eviction of a pod.
func (t *taken) note(pod types.UID, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.young == nil {
		t.seed = maphash.MakeSeed()
	}
	if t.young == nil || now.Sub(t.turned) > takenFor {
		t.old, t.young, t.turned = t.young, map[uint64]int64{}, now
	}
	t.young[maphash.String(t.seed, string(pod))] = now.UnixNano()
}

// until returns until when a pod is not asked again; a time that has passed, if none
// was taken of late.
func (t *taken) until(pod types.UID) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.young == nil {
		return time.Time{}
	}
	key := maphash.String(t.seed, string(pod))
	for _, known := range []map[uint64]int64{t.young, t.old} {
		if at, ok := known[key]; ok {
			return time.Unix(0, at).Add(takenFor)
		}
	}
	return time.Time{}
}
