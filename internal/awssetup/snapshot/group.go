package snapshot

import "time"

// Group is an Auto Scaling group of a template.
type Group struct {
	Name string `json:"name"`
	// From is its source: a file and a name in it.
	From string `json:"from,omitempty"`
	// Hooks are its lifecycle hooks.
	Hooks []Hook `json:"hooks,omitempty"`
	// HooksOpen is true if the template does not define which hooks the group has.
	HooksOpen bool `json:"hooksOpen,omitempty"`
	// Starts is true if the group launches instances as soon as it is created.
	Starts bool `json:"starts,omitempty"`
	// Pool is true if the group has a warm pool.
	Pool bool `json:"pool,omitempty"`
	// Retains is true if the group retains instances whose terminate hook was
	// abandoned.
	Retains bool `json:"retains,omitempty"`
}

// Hook is a lifecycle hook of a template.
type Hook struct {
	Name string `json:"name"`
	// From is its source: a file and a name in it.
	From string `json:"from,omitempty"`
	// Terminating is true for a terminate hook, and false for a launch hook.
	Terminating bool `json:"terminating,omitempty"`
	// Timeout is the heartbeat timeout.
	Timeout time.Duration `json:"timeout"`
	// Abandons is true if the default result is ABANDON, which is also AWS's default.
	Abandons bool `json:"abandons,omitempty"`
	// Target is the queue or topic that the hook notifies in addition to EventBridge;
	// empty if none.
	Target string `json:"target,omitempty"`
	// First is true if the hook exists before the group launches instances, and
	// BeforePool if it exists before the group's warm pool.
	First      bool `json:"first,omitempty"`
	BeforePool bool `json:"beforePool,omitempty"`
}

// Launching returns the launch hooks.
func (g Group) Launching() []Hook {
	var all []Hook
	for _, h := range g.Hooks {
		if !h.Terminating {
			all = append(all, h)
		}
	}
	return all
}

// DefaultHookTimeout is Auto Scaling's default (EC2 Auto Scaling API Reference,
// PutLifecycleHook).
const DefaultHookTimeout = time.Hour
