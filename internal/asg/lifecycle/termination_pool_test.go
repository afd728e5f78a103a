package lifecycle

import (
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// An instance returns to its warm pool, and is terminated there while its node is drained. The
// hook holds it again, for another firing than the event's: it gets heartbeats by its own
// timeout, and is completed without the event's token.
func TestLeavesPoolWhileEntering(t *testing.T) {
	t.Parallel()
	returns := func(n *v1beta1.Notice) { n.InstanceAction = notice.ActionReturn }
	f := facts("Warmed:Pending:Wait", 0, newNotice("a", returns))
	at := func(state string, after time.Duration) TerminationDecision {
		f.Seen.State, f.Now, f.Seen.Time, f.Due = state, start.Add(after), start.Add(after), start.Add(after)
		d := DecideTermination(f)
		if d.Do == Heartbeat {
			Note(d.Status, Heartbeat, f.Now)
			NoteResult(d.Status, Heartbeat, nil)
		}
		f.Was = d.Status
		return d
	}
	if d := at("Warmed:Pending:Wait", 2*time.Minute); d.Do != Heartbeat || d.Status.Hooks[0].Token != "a" || !d.Status.ReturnsToWarmPool {
		t.Errorf("on its way back: %q, %+v", d.Do, d.Status)
	}
	if d := at("Warmed:Terminating", 10*time.Minute); !d.Pending || d.Do != Nothing {
		t.Errorf("not held yet: %q, %+v", d.Do, d.Status)
	}
	d := at("Warmed:Terminating:Wait", 11*time.Minute)
	if !d.Pending || d.Status.ReturnsToWarmPool || d.Status.Hooks[0].Token != "" || d.Status.WaitingSince.Time.Before(start.Add(10*time.Minute)) || !d.Status.ExpiryTime.Time.After(f.Now) {
		t.Errorf("held again: %+v", d.Status)
	}
	if d := at("Warmed:Terminating:Wait", 13*time.Minute); d.Do != Heartbeat {
		t.Errorf("a third of the hook's time later: %q, %+v", d.Do, d.Status)
	}
	f.Drained = true
	if d := at("Warmed:Terminating:Wait", 14*time.Minute); d.Do != Complete || d.Status.Hooks[0].Token != "" || Returns(f) {
		t.Errorf("drained: %q, %+v", d.Do, d.Status)
	}
	if d := at("Warmed:Terminating:Proceed", 15*time.Minute); d.Pending || d.Status.CompletedTime == nil {
		t.Errorf("let go: %+v", d.Status)
	}
}

// For any hold on the way out of an instance that an Interruption drains, one controller calls
// the hook and the other does not.
func TestOneOfTwoAnswers(t *testing.T) {
	t.Parallel()
	returns := func(n *v1beta1.Notice) { n.InstanceAction = notice.ActionReturn }
	for _, state := range []string{"Terminating:Wait", "Warmed:Pending:Wait", "Warmed:Terminating:Wait"} {
		for _, isDrained := range []bool{false, true} {
			f := facts(state, 4*time.Minute, newNotice("a", returns))
			f.Drained, f.Due = isDrained, f.Now
			sweep := Facts{
				Now: f.Now, InstanceID: instance, State: state, At: Read(state), Seen: f.Now, Pool: true, HooksKnown: true,
				Hooks:    []Hook{{Name: "lifeboat-terminate", Own: true, Terminating: true, Timeout: 5 * time.Minute}},
				Patience: time.Hour, Interrupted: true,
			}
			memory := Memory{}.See(start, sweep.At, false).WithNode(start, false)
			interruption, other := DecideTermination(f), Decide(sweep, memory)
			if !interruption.Pending || interruption.Do == Nothing && state != "Warmed:Terminating:Wait" || other.Do != Nothing {
				t.Errorf("%s, drained %t: the Interruption %q (pending %t), the sweep %q", state, isDrained, interruption.Do, interruption.Pending, other.Do)
			}
		}
	}
}
