package interruption

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/status"
	"github.com/lifeboat-dev/lifeboat/internal/kube/writes"
)

// refusals remembers which kinds of writes are refused for each Interruption, so that Events are emitted
// once. It is best effort.
type refusals struct {
	mu    sync.Mutex
	known map[string]map[string]bool // by Interruption and kind
}

// begins returns the refusals that are new, and forgets those that are over.
func (r *refusals) begins(name string, written *writes.Log) []writes.Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	var begun []writes.Refusal
	for _, refused := range written.Refused() {
		if r.known[name][refused.Kind] {
			continue
		}
		if r.known[name] == nil {
			set(&r.known, name, map[string]bool{})
		}
		r.known[name][refused.Kind] = true
		begun = append(begun, refused)
	}
	for kind := range r.known[name] {
		if written.Accepted(kind) {
			delete(r.known[name], kind)
		}
	}
	return begun
}

func (r *refusals) forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, name)
}

// reportRefused emits an Event about the node and one about the Interruption for each kind of write
// that begins to be refused. It does not need the status, whose own write may be what is refused.
func (c *Controller) reportRefused(u *status.Update, written *writes.Log) {
	for _, refused := range c.refusals.begins(u.Name(), written) {
		reason, message := status.RefusedReason(refused.Kind), status.RefusedMessage(refused)
		about := []runtime.Object{u.Object()}
		if node := u.Node(); node != nil {
			about = append(about, node)
		}
		for _, o := range about {
			c.Events.Eventf(o, nil, corev1.EventTypeWarning, reason, reason, "%s", message)
		}
	}
}
