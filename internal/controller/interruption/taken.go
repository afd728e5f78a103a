package interruption

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// takenFor is for how long a pod is not asked again, though it does not show it,
// once the API server has said that it is asked: in a storm watches fall behind by
// seconds.
const takenFor = 30 * time.Second

// taken knows which requests to stop a pod the API server has taken of late. Nothing
// hangs on it: who has forgotten asks once more, and the API server does nothing.
type taken struct {
	mu sync.Mutex
	// young and old are the pods of this and of the last span of takenFor.
	young, old map[request]time.Time
	turned     time.Time
}

// request is what was asked for a pod: an eviction that is on its way does not stand
// in the way of a deletion with less grace.
type request struct {
	pod  types.UID
	step drain.Step
}

// note notes that the API server has taken a request.
func (t *taken) note(r request, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.young == nil || now.Sub(t.turned) > takenFor {
		t.old, t.young, t.turned = t.young, map[request]time.Time{}, now
	}
	t.young[r] = now
}

// lately reports whether it took one a moment ago.
func (t *taken) lately(r request, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, known := range []map[request]time.Time{t.young, t.old} {
		if at, ok := known[r]; ok && now.Sub(at) < takenFor {
			return true
		}
	}
	return false
}
