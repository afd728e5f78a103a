package bootagent

import (
	"fmt"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
)

const (
	// freshTarget is the maximum age of metadata for opening the gate.
	freshTarget = 30 * time.Second
	// freshMember is the maximum age of Auto Scaling's answer if metadata has no target.
	freshMember = time.Minute
	// slowLook is the interval of reads while hooks of others hold the machine.
	slowLook = 30 * time.Second
)

// Decide returns the next action. Unknown facts never open the gate.
func Decide(f Facts, now time.Time) Step {
	goal, step := aim(f, now)
	if goal == "" {
		return step
	}
	if leg := f.Journal.Leg; leg.Goal != goal || leg.Boot != f.Boot {
		return Step{Do: DoBegin, Goal: goal, Reason: begins(f, goal)}
	}
	switch goal {
	case Serve, Alone:
		return serve(f, now)
	case Warm:
		return warm(f, now)
	case Return:
		return returnToPool(f, now)
	case End:
		return Step{Do: DoStop, Reason: "its group terminates the machine: the gate is not opened, and nothing is extended"}
	}
	return Step{Do: DoWait, Reason: "its group has the machine in standby: the gate stays as it is until it is sent into service again"}
}

func begins(f Facts, goal Goal) string {
	switch goal {
	case Serve:
		return "its group sends the machine into service"
	case Alone:
		return "the machine is in no Auto Scaling group"
	case Warm:
		return "its group sends the machine into the warm pool"
	case Return:
		return "its group sends the machine back into the warm pool"
	case End:
		return "its group terminates the machine"
	}
	return "its group puts the machine aside (" + f.Target.Value + ")"
}

// aim returns the goal of the machine, or the action that finds it out.
func aim(f Facts, now time.Time) (Goal, Step) {
	t := f.Target
	switch {
	case f.Instance == "", !t.Read && t.Trouble != "":
		return "", Step{Do: DoAsk, Reason: "instance metadata does not answer, and nothing is begun before it does: " + t.Trouble}
	case !t.Read:
		return "", Step{Do: DoAsk, Reason: "instance metadata was not read yet"}
	case t.Value == "":
		return goalWithoutTarget(f, now, "instance metadata names no target lifecycle state")
	}
	switch lifecycle.Read(t.Value).Lasting() {
	case lifecycle.Serving:
		return Serve, Step{}
	case lifecycle.Warm:
		return pooled(f), Step{}
	case lifecycle.Gone:
		return End, Step{}
	case lifecycle.Aside:
		if t.Value == "Detached" {
			return goalWithoutTarget(f, now, "instance metadata says Detached")
		}
		return Aside, Step{}
	}
	return "", Step{Do: DoAsk, Reason: fmt.Sprintf("instance metadata says %q, which this release does not know: nothing is begun", t.Value)}
}

// pooled tells a machine on its first way into the pool from one that returns. Auto Scaling's
// state does not: it is Warmed:Pending for both, but different hooks hold it. A machine that has
// begun to return does so until it has arrived.
func pooled(f Facts) Goal {
	leg := f.Journal.Leg
	if f.Journal.Served || leg.Goal == Return && (leg.Boot == f.Boot || leg.Answered == "") {
		return Return
	}
	return Warm
}

// goalWithoutTarget uses other sources if metadata has no target: a machine without a group gets 404,
// and so does one whose group has not published anything yet.
func goalWithoutTarget(f Facts, now time.Time, says string) (Goal, Step) {
	if until := f.Target.Since.Add(f.Rules.AbsentFor); now.Before(until) && f.Journal.Leg.Goal != Alone {
		return "", Step{Do: DoAsk, Reason: says + ": it is asked until " + clock(until) + ", then others are", At: until}
	}
	switch f.Member {
	case MemberOfNone:
		return Alone, Step{}
	case MemberUnknown:
		if now.Before(f.Talk.Due) {
			return "", Step{Do: DoWait, At: f.Talk.Due, Reason: says + ", and whether the machine is in a group is not known: " + f.Talk.problem()}
		}
		return "", Step{Do: DoCorroborate, Reason: says + ": finds out whether the machine is in a group"}
	}
	return aimByState(f, now, says)
}

// aimByState uses the state of a machine that is in a group.
func aimByState(f Facts, now time.Time, says string) (Goal, Step) {
	says += ", and the machine is in a group"
	switch {
	case f.State.At.IsZero() || now.Sub(f.State.At) > freshMember:
		if now.Before(f.Talk.Due) {
			return "", Step{Do: DoWait, At: f.Talk.Due, Reason: says + ": waits for either to say where it goes; " + f.Talk.problem()}
		}
		return "", Step{Do: DoDescribe, Reason: says + ": asks Auto Scaling where it goes"}
	}
	switch f.State.Position.Phase {
	case lifecycle.Joining, lifecycle.Serving:
		return Serve, Step{}
	case lifecycle.Warming, lifecycle.Warm:
		return pooled(f), Step{}
	case lifecycle.Leaving, lifecycle.LeavingPool, lifecycle.Gone, lifecycle.Retained:
		return End, Step{}
	}
	return "", Step{Do: DoWait, At: f.State.At.Add(freshMember), Reason: says + ", in the state " + f.State.Value + ": nothing is begun"}
}

// clock formats a time of day for people.
func clock(at time.Time) string { return at.UTC().Format("15:04:05 UTC") }
