package record

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Need is something that waits for a person.
type Need struct {
	Interruption string     `json:"interruption,omitempty"`
	Node         string     `json:"node,omitempty"`
	Why          string     `json:"why"`
	Since        *time.Time `json:"since,omitempty"`
	Command      string     `json:"command"`
}

// DegradedFor is for how long an Interruption needs a person because the queue did not
// deliver its notice.
const DegradedFor = 24 * time.Hour

// Needs returns what an Interruption needs from a person, without what a person has acknowledged.
// program is the name that the user calls the CLI by.
func Needs(in *v1beta1.Interruption, program string, now time.Time) []Need {
	seen := Acknowledged(in, now)
	return slices.DeleteFunc(allNeeds(in, program, now), func(n Need) bool {
		return !seen.IsZero() && (n.Since == nil || !n.Since.After(seen))
	})
}

// Acknowledged is when a person acknowledged what the Interruption needed until then; zero: no person did.
// A time that cannot be read or is in the future counts for nothing.
func Acknowledged(in *v1beta1.Interruption, now time.Time) time.Time {
	at, err := time.Parse(time.RFC3339, in.Annotations[v1beta1.AnnotationAcknowledged])
	if err != nil || at.After(now) {
		return time.Time{}
	}
	return at
}

// allNeeds returns also what is acknowledged.
func allNeeds(in *v1beta1.Interruption, program string, now time.Time) []Need {
	all := wiringNeeds(in, program, now)
	add := func(since time.Time, why, command string) {
		n := Need{Interruption: in.Name, Node: NodeName(in), Why: why, Command: program + " " + command + " " + argument(in)}
		if !since.IsZero() {
			at := since.UTC()
			n.Since = &at
		}
		all = append(all, n)
	}
	if notice.Finished(in) {
		return all
	}
	if since, awaits := AwaitsApproval(in); awaits {
		add(since, "waits for an approval: "+decision(in), "approve")
	}
	if hold := Hold(in, now); hold != nil {
		add(hold.Time.Time, HoldGate(hold).Why, "release")
	}
	for _, typ := range []string{v1beta1.ConditionCorroborated, v1beta1.ConditionRequestsAccepted} {
		if c := meta.FindStatusCondition(in.Status.Conditions, typ); c != nil && c.Status != "True" {
			add(c.LastTransitionTime.Time, c.Message, "explain")
		}
	}
	if since, why := Blocked(in, now); !since.IsZero() {
		add(since, why, "plan")
	}
	for _, h := range failedHooks(in, now) {
		add(h.CompletionTime.Time, fmt.Sprintf("hook %s failed: %s", h.Name, h.Message), "explain")
	}
	if in.Status.Kind == notice.KindRequested && in.Status.Phase == v1beta1.PhaseDrained {
		add(time.Time{}, "is drained, as a person requested", "uncordon")
	}
	return all
}

// failedHooks returns the hooks that failed for good and that a person has not approved since.
func failedHooks(in *v1beta1.Interruption, now time.Time) (failed []v1beta1.HookStatus) {
	for _, h := range Drain(&in.Status).Hooks {
		if h.State == v1beta1.HookFailed && h.CompletionTime != nil && GoAhead(in, now).Before(h.CompletionTime.Time) {
			failed = append(failed, h)
		}
	}
	return failed
}

// wiringNeeds returns that the queue did not deliver a notice about the instance.
func wiringNeeds(in *v1beta1.Interruption, program string, now time.Time) []Need {
	c := meta.FindStatusCondition(in.Status.Conditions, v1beta1.ConditionWiringDegraded)
	if c == nil || c.Status != "True" || now.Sub(c.LastTransitionTime.Time) > DegradedFor {
		return nil
	}
	at := c.LastTransitionTime.UTC()
	return []Need{{Interruption: in.Name, Node: NodeName(in), Why: c.Message, Since: &at, Command: program + " doctor --probe"}}
}

// argument returns what a command about an Interruption takes. The API server does not check the
// name of the node in it, and a person pastes the command into a shell.
func argument(in *v1beta1.Interruption) string {
	if name := NodeName(in); nodeArgument.MatchString(name) {
		return name
	}
	return in.Name
}

var nodeArgument = regexp.MustCompile(`^[a-z0-9][-a-z0-9.]*$`)

// SortNeeds sorts needs by their start, the oldest first.
func SortNeeds(all []Need) {
	slices.SortStableFunc(all, func(a, b Need) int {
		if a.Since == nil || b.Since == nil {
			return 0
		}
		return a.Since.Compare(*b.Since)
	})
}

func decision(in *v1beta1.Interruption) string {
	if in.Status.Decision == nil {
		return ""
	}
	return string(in.Status.Decision.Action) + " for " + in.Status.Kind
}
