package bootagent

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
)

const (
	// freshState is the maximum age of the state for sending a result.
	freshState = 5 * time.Second
	// freshHooks is the maximum age of the list of hooks.
	freshHooks = 10 * time.Minute
	// settleAfter is how long a permanent state does not count as the end of a leg in which no
	// result was sent: the read state may be stale.
	settleAfter = 15 * time.Second
)

// answer completes the hooks that hold the machine once it is ready, and sends heartbeats until
// then. It is done when the state has left :Wait, not when a call has returned.
func answer(f Facts, ready bool, waits string, now time.Time) Step {
	if ready {
		waits = "is ready, and answers"
	}
	return answerWith(f, cloud.Continue, ready, waits, now)
}

func answerWith(f Facts, result cloud.Result, ready bool, waits string, now time.Time) Step {
	leg := f.Journal.Leg
	sent, _ := f.hold(now).Last(lifecycle.Complete)
	switch {
	case leg.Answered != "":
		return Step{Do: DoWait, Reason: leg.Answered}
	case !f.Rules.Answer && ready:
		return Step{Do: DoWait, Reason: "is ready; the controller answers (--answer=false)"}
	case !f.Rules.Answer:
		return Step{Do: DoWait, Reason: waits}
	case now.Before(f.Talk.Due):
		return Step{Do: DoWait, At: f.Talk.Due, Reason: lastAnswer(f, waits)}
	case f.State.At.IsZero(), !f.State.At.After(sent.At):
		return look(f, f.Talk.Look, lastAnswer(f, waits), now)
	}
	way, end := leg.Goal.phases()
	switch f.State.Position.On(way, end) {
	case lifecycle.Past:
		if settles := leg.At.Add(settleAfter); sent.At.IsZero() && f.State.At.Before(settles) {
			return look(f, settles, "nothing seems to hold the machine: reads the state once more", now)
		}
		return Step{Do: DoSettle, Reason: "nothing holds the machine (state " + f.State.Value + ")"}
	case lifecycle.Held:
		return held(f, result, ready, waits, now)
	case lifecycle.Before:
		return look(f, f.Talk.Look, "the state is "+f.State.Value+": waits until its hooks are asked", now)
	}
	return look(f, f.State.At.Add(slowLook), "the state is "+describeState(f.State)+", which does not match the target in instance metadata: nothing is answered", now)
}

// hold is the machine as its hooks hold it. A heartbeat that was sent before a crash counts.
func (f Facts) hold(now time.Time) lifecycle.Hold {
	leg := f.Journal.Leg
	h := lifecycle.Hold{Now: now, InstanceID: f.Instance, Since: leg.At, Calls: map[string]lifecycle.CallRecord{}}
	h.Own, h.Others = lifecycle.Split(f.Hooks.All, leg.Goal == Return)
	for _, hook := range h.Own {
		calls := f.Talk.Calls[hook.Name]
		if leg.Beat.After(calls.Extended) && calls.Do != lifecycle.Heartbeat {
			calls.Extended = leg.Beat
		}
		h.Calls[hook.Name] = calls
	}
	return h
}

// look reads the state, from a time on.
func look(f Facts, from time.Time, why string, now time.Time) Step {
	if from.Before(f.Talk.Look) {
		from = f.Talk.Look
	}
	if now.Before(from) {
		return Step{Do: DoWait, At: from, Reason: why}
	}
	return Step{Do: DoDescribe, Reason: why}
}

// held decides about a machine that hooks hold.
func held(f Facts, result cloud.Result, ready bool, waits string, now time.Time) Step {
	h := f.hold(now)
	switch {
	case f.Hooks.At.IsZero() || now.Sub(f.Hooks.At) > freshHooks:
		return Step{Do: DoHooks, Reason: "asks for the hooks of group " + f.State.Group}
	case len(h.Own) == 0 && now.Sub(f.Hooks.At) > lifecycle.OthersRetry:
		return Step{Do: DoHooks, Reason: "asks again for the hooks of group " + f.State.Group}
	case len(h.Own) == 0:
		return look(f, f.State.At.Add(lifecycle.OthersRetry), "held by "+names(h.Others)+
			", which --hooks does not name: its owner answers", now)
	case !ready:
		return beat(f, h, waits, now)
	}
	call := h.Complete()
	switch {
	case call.Do == lifecycle.Nothing && call.Wake.IsZero():
		return look(f, f.State.At.Add(lifecycle.OthersRetry), lastAnswer(f, waits), now)
	case call.Do == lifecycle.Nothing:
		return look(f, call.Wake, lastAnswer(f, waits), now)
	case now.Sub(f.State.At) > freshState:
		return look(f, f.Talk.Look, lastAnswer(f, waits), now)
	}
	return Step{Do: DoComplete, Hooks: call.Hooks, Result: result, Reason: fmt.Sprintf("answers %s to %s", result, strings.Join(call.Hooks, ", "))}
}

// beat sends heartbeats while there is progress and patience.
func beat(f Facts, h lifecycle.Hold, waits string, now time.Time) Step {
	timeout, _ := lifecycle.Limits(h.Own)
	patience := h.Patience(f.Rules.Patience)
	call := h.Heartbeat()
	switch {
	case timeout == 0:
		return Step{Do: DoWait, Reason: waits}
	case now.Sub(h.Since) >= patience:
		return Step{Do: DoWait, Reason: fmt.Sprintf("%s; %s is not extended any more: %s have passed", waits, names(h.Own), patience)}
	case now.Sub(f.Progress) >= f.Rules.Stall:
		return Step{Do: DoWait, Reason: fmt.Sprintf("%s; %s is not extended: there was no progress for %s", waits, names(h.Own), f.Rules.Stall)}
	case call.Do == lifecycle.Nothing:
		return Step{Do: DoWait, At: call.Wake, Reason: waits}
	}
	return Step{Do: DoHeartbeat, Hooks: call.Hooks, Reason: waits + "; extends " + strings.Join(call.Hooks, ", ")}
}

// lastAnswer adds the last answer of Auto Scaling.
func lastAnswer(f Facts, text string) string {
	h := f.hold(time.Time{})
	sent, accepted := h.Last(lifecycle.Complete)
	others := ""
	if len(h.Others) > 0 {
		others = ": " + names(h.Others) + " may hold it as well, which --hooks does not name"
	}
	switch {
	case f.Talk.Denied != "" && f.Journal.Leg.Goal == Serve:
		return text + "; " + f.Talk.Denied + ": the controller answers in its place"
	case f.Talk.Denied != "":
		return text + "; " + f.Talk.Denied + ": only another answer, or the hook's timeout, releases the machine"
	case accepted && others != "":
		return text + "; the state is still " + f.State.Value + others
	case f.Talk.Trouble != "":
		return text + "; " + f.Talk.Trouble
	case f.State.Position.Held() && !sent.At.IsZero():
		return text + "; the state is still " + f.State.Value + others
	}
	return text
}

func describeState(s State) string {
	if s.Group == "" {
		return "not known to any group"
	}
	return s.Value
}

func names(hooks []lifecycle.Hook) string {
	return cmp.Or(lifecycle.Names(hooks), "no hook that is known")
}
