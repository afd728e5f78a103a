package snapshot

import "time"

// Group is an Auto Scaling group of a template.
type Group struct {
	Name string `json:"name"`
	// From is where it is written: a file and a name in it.
	From string `json:"from,omitempty"`
	// Hooks are its lifecycle hooks.
	Hooks []Hook `json:"hooks,omitempty"`
	// HooksOpen is true where the template leaves open which hooks it has.
	HooksOpen bool `json:"hooksOpen,omitempty"`
	// Starts is true where it launches instances as soon as it is made.
	Starts bool `json:"starts,omitempty"`
	// Pool is true where it has a warm pool.
	Pool bool `json:"pool,omitempty"`
	// Retains is true where it keeps instances whose terminate hook was abandoned.
	Retains bool `json:"retains,omitempty"`
}

// Hook is a lifecycle hook of a template.
type Hook struct {
	Name string `json:"name"`
	// From is where it is written.
	From string `json:"from,omitempty"`
	// Terminating tells a hook of terminations from one of launches.
	Terminating bool `json:"terminating,omitempty"`
	// Timeout is how long it waits for an answer or a heartbeat.
	Timeout time.Duration `json:"timeout"`
	// Abandons is true where no answer means ABANDON, which is what it means
	// where the template does not say.
	Abandons bool `json:"abandons,omitempty"`
	// Target is the queue or topic that is told besides; empty: none.
	Target string `json:"target,omitempty"`
	// First is true where the hook is there before the group launches anything,
	// BeforePool where it is there before the group's warm pool.
	First      bool `json:"first,omitempty"`
	BeforePool bool `json:"beforePool,omitempty"`
}

// Launching are the hooks that hold what is launched.
func (g Group) Launching() []Hook {
	var all []Hook
	for _, h := range g.Hooks {
		if !h.Terminating {
			all = append(all, h)
		}
	}
	return all
}

// DefaultHookTimeout is what Auto Scaling gives a hook whose template says nothing
// (EC2 Auto Scaling API Reference, PutLifecycleHook).
const DefaultHookTimeout = time.Hour
