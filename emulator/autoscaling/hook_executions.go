package autoscaling

import "time"

// HookExecution is one execution of a hook: the time that it holds one instance.
type HookExecution struct {
	InstanceID, Group, Hook string
	// Token is that of its lifecycle action.
	Token       string
	Transition  LifecycleTransition
	Held, Ended time.Time // Ended is zero while the hook holds the instance
	Result      Result    // empty while the hook holds the instance, and if the instance was terminated
	By          HookExecutionEnd
}

// HookExecutionEnd is what ended an execution.
type HookExecutionEnd string

// The causes.
const (
	ByAnswer  HookExecutionEnd = "answer"
	ByTimeout HookExecutionEnd = "timeout"
	// ByDeletion is the deletion of the hook.
	ByDeletion HookExecutionEnd = "deletion"
	// ByLoss: the instance was terminated, another hook abandoned it, or another transition
	// replaced this one.
	ByLoss HookExecutionEnd = "gone"
)

// Firings lists the executions of hooks so far, oldest first. AWS has no such call.
func (s *State) Firings() []HookExecution {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]HookExecution, len(s.firings))
	for i, f := range s.firings {
		out[i] = *f
	}
	return out
}

// recordExecution records that a hook starts to hold an instance. It needs the lock.
func (s *State) recordExecution(m *member, h Hook, token string) *HookExecution {
	f := &HookExecution{InstanceID: m.InstanceID, Group: m.Group, Hook: h.Name, Token: token, Transition: h.Transition, Held: time.Now()}
	s.firings = append(s.firings, f)
	if len(s.firings) > maxTrace {
		s.firings = s.firings[maxTrace/10:]
	}
	return f
}

// end records what ended an execution. Later calls have no effect.
func (f *HookExecution) end(r Result, by HookExecutionEnd) {
	if f.Ended.IsZero() {
		f.Ended, f.Result, f.By = time.Now(), r, by
	}
}

// endExecutions ends the executions of a transition's actions that stay without an answer.
func (t *transition) endExecutions() {
	for _, a := range t.actions {
		a.execution.end("", ByLoss)
	}
}
