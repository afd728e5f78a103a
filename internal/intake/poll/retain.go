package poll

import (
	"maps"

	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Retain forgets everything except what is about the subjects of the notices.
func (l *Deduper) Retain(notices []notice.Notice) {
	keep := make(map[key]bool, len(notices))
	for i := range notices {
		keep[keyOf(&notices[i])] = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	forgotten := func(k key) bool { return !keep[k] }
	maps.DeleteFunc(l.pending, func(k key, _ notice.Notice) bool { return forgotten(k) })
	maps.DeleteFunc(l.settled, func(k key, _ observation) bool { return forgotten(k) })
}

// Remembered returns how many subjects the Deduper remembers.
func (l *Deduper) Remembered() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.settled)
}
