package interruption

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// departures remembers when the pods of each Interruption were first missed. The status may be written
// seconds later. It is best effort: pods that went while no controller ran have no time.
type departures struct {
	mu sync.Mutex
	of map[string]map[types.UID]time.Time // by Interruption; its pods are watched
}

// watch returns a function that returns when a pod was first missed: now, or earlier; zero: before
// this process has watched the pods.
func (d *departures) watch(name string, now time.Time) func(types.UID) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, watched := d.of[name]
	if !watched {
		set(&d.of, name, map[types.UID]time.Time{})
	}
	return func(pod types.UID) time.Time {
		d.mu.Lock()
		defer d.mu.Unlock()
		missed := d.of[name]
		if missed == nil { // it was forgotten in the meantime
			return now
		}
		if _, known := missed[pod]; !known {
			missed[pod] = time.Time{}
			if watched {
				missed[pod] = now
			}
		}
		return missed[pod]
	}
}

// forget frees the memory for an Interruption.
func (d *departures) forget(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.of, name)
}
