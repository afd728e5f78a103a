package record

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

// MaxPause is the longest pause. It also bounds a Pause that the API server did not validate.
const MaxPause = 24 * time.Hour

// PauseInForce reports whether a pause is in force at a time.
func PauseInForce(p *v1beta1.Pause, at time.Time) bool {
	return !at.Before(p.Spec.StartTime.Time) && at.Before(PauseEnd(p))
}

// PauseEnd is when a pause ends.
func PauseEnd(p *v1beta1.Pause) time.Time {
	if last := p.Spec.StartTime.Add(MaxPause); last.Before(p.Spec.Until.Time) {
		return last
	}
	return p.Spec.Until.Time
}

// PauseOf returns the pause that is in force for a node, or nil. Of several, one that stops
// everything counts first, and then the one that ends last. node may be nil.
func PauseOf(all []v1beta1.Pause, node *corev1.Node, at time.Time) *v1beta1.Pause {
	var found *v1beta1.Pause
	for i := range all {
		p := &all[i]
		if !PauseInForce(p, at) || !pauses(p, node) {
			continue
		}
		if found == nil || StopsEverything(p) && !StopsEverything(found) ||
			StopsEverything(p) == StopsEverything(found) && PauseEnd(p).After(PauseEnd(found)) {
			found = p
		}
	}
	return found
}

func pauses(p *v1beta1.Pause, node *corev1.Node) bool {
	return p.Spec.NodePool == "" || node != nil && policy.NodePool(node) == p.Spec.NodePool
}

// StopsEverything reports whether a pause also stops what has a deadline that people cannot move.
func StopsEverything(p *v1beta1.Pause) bool { return p.Spec.Stops == v1beta1.PauseEverything }

// Decide decides about an Interruption under a pause, which may be nil. It returns the pause if
// that stops the action. A pause is a hold: Lifeboat sets no deadline of its own meanwhile.
// adjust changes the decision of policy.
func Decide(f policy.Facts, p *v1beta1.Pause, adjust func(policy.Decision) policy.Decision) (policy.Decision, *v1beta1.Pause, bool) {
	if p != nil {
		held := f
		held.Held = true
		d, ok := policy.Decide(held)
		if d = adjust(d); ok && stops(p, &d) {
			return d, p, true
		}
	}
	d, ok := policy.Decide(f)
	return adjust(d), nil, ok
}

// stops reports whether a pause stops an action.
func stops(p *v1beta1.Pause, d *policy.Decision) bool {
	return StopsEverything(p) || d.Deferrable()
}

// PauseGate is the gate of a pause.
func PauseGate(p *v1beta1.Pause) drain.Gate {
	until := PauseEnd(p)
	whole := "the cluster"
	if p.Spec.NodePool != "" {
		whole = "NodePool " + p.Spec.NodePool
	}
	g := drain.Gate{Why: fmt.Sprintf("%s paused %s", p.Spec.By, whole), Until: until}
	if p.Spec.Note != "" {
		g.Why += fmt.Sprintf(" (%s)", p.Spec.Note)
	}
	g.Why += " until " + until.UTC().Format(time.RFC3339)
	return g
}

// Resumed is when the last pause of an Interruption ended, as its status says; zero: there was
// none. If the status says that a pause stops it, that pause ends now.
func Resumed(s *v1beta1.InterruptionStatus, now time.Time) time.Time {
	c := meta.FindStatusCondition(s.Conditions, v1beta1.ConditionPaused)
	switch {
	case c == nil:
		return time.Time{}
	case c.Status == metav1.ConditionTrue:
		return now
	}
	return c.LastTransitionTime.Time
}

// OldestPause is the start of the longest pause that is in force; zero: there is none.
func OldestPause(all []v1beta1.Pause, now time.Time) (since time.Time) {
	for i := range all {
		if PauseInForce(&all[i], now) {
			earlier(&since, all[i].Spec.StartTime.Time)
		}
	}
	return since
}

// IsPaused reports whether a pause stops an Interruption, as its status says.
func IsPaused(in *v1beta1.Interruption) bool {
	return !notice.Finished(in) && meta.IsStatusConditionTrue(in.Status.Conditions, v1beta1.ConditionPaused)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// ResumeCommand is the command that ends a pause.
func ResumeCommand(p *v1beta1.Pause, program string) string {
	if p.Spec.NodePool != "" {
		return program + " resume --nodepool " + p.Spec.NodePool
	}
	return program + " resume"
}

// PauseNeeds returns what pauses that are in force need from a person.
func PauseNeeds(all []v1beta1.Pause, program string, now time.Time) []Need {
	needs := []Need{}
	for i := range all {
		if p := &all[i]; PauseInForce(p, now) {
			since := p.Spec.StartTime.UTC()
			needs = append(needs, Need{Why: PauseGate(p).Why, Since: &since, Command: ResumeCommand(p, program)})
		}
	}
	return needs
}

// CountPauses counts the pauses that are in force: those that stop everything, and the others.
func CountPauses(all []v1beta1.Pause, now time.Time) (everything, deferrable int) {
	for i := range all {
		switch {
		case !PauseInForce(&all[i], now):
		case StopsEverything(&all[i]):
			everything++
		default:
			deferrable++
		}
	}
	return everything, deferrable
}
