package interruption

import (
	"slices"
	"sync"
	"time"
)

// staleFor is for how long a version that was replaced is not worked on. The
// watch has brought the next one long before.
const staleFor = 5 * time.Second

// written remembers which versions of records this process has replaced itself: a
// pass on one of them, read from a cache that is behind, would do its work for
// nothing, since the API server would not take what it writes. Nothing hangs on
// it: who has forgotten meets a conflict.
type written struct {
	mu       sync.Mutex
	replaced map[string]replaced // by record
}

type replaced struct {
	versions []string
	last     time.Time
}

// replace notes that a version of a record is no longer the last.
func (w *written) replace(record, version string, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.replaced == nil {
		w.replaced = map[string]replaced{}
	}
	w.replaced[record] = replaced{append(w.replaced[record].versions, version), now}
}

// isOld reports whether a version of a record was replaced a moment ago. One that
// was not makes the others history.
func (w *written) isOld(record, version string, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.replaced[record]
	if slices.Contains(known.versions, version) && now.Sub(known.last) < staleFor {
		return true
	}
	delete(w.replaced, record)
	return false
}
