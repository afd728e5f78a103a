package autoscaling

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Limits of hooks (Amazon EC2 Auto Scaling API Reference, PutLifecycleHook; User Guide,
// Quotas).
const (
	defaultHeartbeat = time.Hour
	minHeartbeat     = 30 * time.Second
	maxHeartbeat     = 2 * time.Hour
	maxHooks         = 50
	maxTotal         = 48 * time.Hour
	maxHeartbeats    = 100
)

// Result is how a lifecycle action ends.
type Result string

// The results of a lifecycle action.
const (
	Continue Result = "CONTINUE"
	Abandon  Result = "ABANDON"
)

// Hook is a lifecycle hook: it holds instances in a transition.
type Hook struct {
	Name, Group string
	Transition  LifecycleTransition
	// DefaultResult is the result of a timeout; default Abandon.
	DefaultResult Result
	// Heartbeat is the heartbeat timeout; default one hour. AWS accepts 30 s to two hours; tests
	// may set less.
	Heartbeat time.Duration
	// NotificationTarget is the ARN of a queue that gets a message in addition to the event, sent
	// with the role RoleARN; empty: none.
	NotificationTarget, RoleARN string
	Metadata                    string
}

// total is the longest duration of an action, with any number of heartbeats.
func (h Hook) total() time.Duration { return min(maxTotal, maxHeartbeats*h.Heartbeat) }

// PutHook creates a hook, or replaces the one of the same name; active actions do not change. A
// queue as target first gets a test message. Errors: ValidationError for an unknown group or
// transition, or an unreachable target; LimitExceeded.
func (s *State) PutHook(h Hook) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.groups[h.Group]
	if g == nil {
		return groupNotFound(h.Group)
	}
	return s.putHook(g, h)
}

// putHook needs the lock.
func (s *State) putHook(g *group, h Hook) error {
	i := slices.IndexFunc(g.hooks, func(o Hook) bool { return o.Name == h.Name })
	switch {
	case h.Transition != Launching && h.Transition != Leaving:
		return validation("Invalid Lifecycle Transition: %s", h.Transition)
	case i < 0 && len(g.hooks) >= maxHooks:
		return limitExceeded(g.Name)
	}
	h.Group = g.Name
	h.DefaultResult = cmp.Or(h.DefaultResult, Abandon)
	h.Heartbeat = cmp.Or(h.Heartbeat, defaultHeartbeat)
	if h.NotificationTarget != "" {
		if err := s.sendTest(g, h); err != nil {
			return validation("Unable to publish test message to notification target %s using IAM role %s. Please check your target and role configuration and try to put lifecycle hook again.", h.NotificationTarget, h.RoleARN)
		}
	}
	if i >= 0 {
		g.hooks[i] = h
		return nil
	}
	g.hooks = append(g.hooks, h)
	slices.SortFunc(g.hooks, func(a, b Hook) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// DeleteHook deletes a hook and first resolves its active actions: launches are abandoned,
// terminations continue (Amazon EC2 Auto Scaling API Reference, DeleteLifecycleHook). Errors:
// ValidationError for an unknown group or hook.
func (s *State) DeleteHook(groupName, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.groups[groupName]
	if g == nil {
		return groupNotFound(groupName)
	}
	i := slices.IndexFunc(g.hooks, func(h Hook) bool { return h.Name == name })
	if i < 0 {
		return validation("No Lifecycle Hook found: %s", name)
	}
	g.hooks = slices.Delete(g.hooks, i, i+1)
	for _, m := range s.of(g) {
		if t := m.transition; t != nil {
			s.release(m, t, name)
		}
	}
	return nil
}

// release resolves the action of a deleted hook. It needs the lock.
func (s *State) release(m *member, t *transition, hook string) {
	i := slices.IndexFunc(t.actions, func(a *action) bool { return a.hook.Name == hook })
	if i >= 0 {
		t.actions[i].execution.end("", ByDeletion)
	}
	switch {
	case i < 0:
	case t.hookTransition == Launching:
		s.resolve(m, t, t.actions[i], Abandon)
	default:
		s.resolve(m, t, t.actions[i], Continue)
	}
}

// Hooks lists the hooks of a group: all, or those named. The error is ValidationError
// for an unknown group.
func (s *State) Hooks(groupName string, names []string) ([]Hook, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.groups[groupName]
	if g == nil {
		return nil, groupNotFound(groupName)
	}
	hooks := slices.Clone(g.hooks)
	if len(names) > 0 {
		hooks = slices.DeleteFunc(hooks, func(h Hook) bool { return !slices.Contains(names, h.Name) })
	}
	return hooks, nil
}
