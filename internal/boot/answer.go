package boot

import (
	"fmt"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/lifecycle"
)

const (
	// freshState is how old the state may be that an answer is given on.
	freshState = 5 * time.Second
	// freshHooks is how old the list of hooks may be.
	freshHooks = 10 * time.Minute
	// settleAfter is for how long a lasting state is not believed to be the end of
	// a leg on which nothing was answered: what is described may be as it was before.
	settleAfter = 15 * time.Second
	// firstPause and longestPause are between two calls about the same thing.
	firstPause   = 2 * time.Second
	longestPause = 30 * time.Second
	// deniedPause is after what was not permitted.
	deniedPause = 5 * time.Minute
	// othersPause is while hooks hold the machine that are not answered here.
	othersPause = time.Minute
	// beatsInTimeout is how often a hook is extended in its timeout.
	beatsInTimeout = 3
)

// pause is the time after a number of tries, varied by a fifth; dice is in [0, 1).
func pause(tries int, dice float64) time.Duration {
	d := longestPause
	if tries < 4 {
		d = firstPause << max(0, tries)
	}
	return time.Duration(float64(d) * (0.8 + 0.4*dice))
}

// answer lets what holds the machine go on once it is ready, and keeps it waiting until
// then. It is done when the state has left :Wait, not when a call has returned.
func answer(f Facts, ready bool, waits string, now time.Time) Step {
	if ready {
		waits = "is ready, and answers"
	}
	return answerWith(f, cloud.Continue, ready, waits, now)
}

func answerWith(f Facts, result cloud.Result, ready bool, waits string, now time.Time) Step {
	leg := f.Journal.Leg
	switch {
	case leg.Answered != "":
		return Step{Do: DoWait, Reason: leg.Answered}
	case !f.Rules.Answer && ready:
		return Step{Do: DoWait, Reason: "is ready; the controller answers (--answer=false)"}
	case !f.Rules.Answer:
		return Step{Do: DoWait, Reason: waits}
	case now.Before(f.Talk.Due):
		return Step{Do: DoWait, At: f.Talk.Due, Reason: talking(f, waits)}
	case f.State.At.IsZero(), !f.State.At.After(f.Talk.Sent):
		return look(f, f.Talk.Look, talking(f, waits), now)
	}
	return byState(f, result, ready, waits, now)
}

// byState is what follows from the state, which was asked for on this leg.
func byState(f Facts, result cloud.Result, ready bool, waits string, now time.Time) Step {
	leg := f.Journal.Leg
	way, end := leg.Goal.phases()
	at := f.State.Position
	switch {
	case at.Phase == end, at.Phase == way && at.Step == lifecycle.Proceeding:
		if settles := leg.At.Add(settleAfter); f.Talk.Sent.IsZero() && f.State.At.Before(settles) {
			return look(f, settles, "nothing seems to hold the machine: looks once more", now)
		}
		return Step{Do: DoSettle, Reason: "nothing holds the machine (state " + f.State.Value + ")"}
	case at.Phase == way && at.Step == lifecycle.Waiting:
		return held(f, result, ready, waits, now)
	case at.Phase == way:
		return look(f, f.Talk.Look, "the state is "+f.State.Value+": waits until its hooks are asked", now)
	}
	return look(f, f.State.At.Add(slowLook), "the state is "+said(f.State)+", which is not on the way that instance metadata tells: nothing is answered", now)
}

// look asks for the state, from a moment on.
func look(f Facts, from time.Time, why string, now time.Time) Step {
	if from.Before(f.Talk.Look) {
		from = f.Talk.Look
	}
	if now.Before(from) {
		return Step{Do: DoWait, At: from, Reason: why}
	}
	return Step{Do: DoDescribe, Reason: why}
}

// held is for a machine that hooks hold on its way.
func held(f Facts, result cloud.Result, ready bool, waits string, now time.Time) Step {
	if f.Hooks.At.IsZero() || now.Sub(f.Hooks.At) > freshHooks {
		return Step{Do: DoHooks, Reason: "asks for the hooks of group " + f.State.Group}
	}
	launching := f.Journal.Leg.Goal.launching()
	own := only(f.Hooks.Own, launching)
	way, _ := f.Journal.Leg.Goal.phases()
	switch {
	case len(own) == 0 && now.Sub(f.Hooks.At) > othersPause:
		return Step{Do: DoHooks, Reason: "asks again for the hooks of group " + f.State.Group}
	case len(own) == 0:
		return look(f, f.State.At.Add(othersPause), "held by "+names(only(f.Hooks.Others, launching))+
			", which --hooks does not name: whoever put it answers", now)
	case !ready:
		return beat(f, own, waits, now)
	case f.Talk.Taken && len(only(f.Hooks.Others, launching)) > 0 && now.Sub(f.Talk.Sent) < othersPause:
		return look(f, f.Talk.Sent.Add(othersPause), talking(f, waits), now)
	case now.Sub(f.State.At) > freshState:
		return look(f, f.Talk.Look, talking(f, waits), now)
	}
	return Step{Do: DoComplete, Hooks: own, Phase: way, Result: result, Reason: fmt.Sprintf("answers %s to %s", result, names(own))}
}

// beat extends the hooks while there is progress and patience.
func beat(f Facts, own []Hook, waits string, now time.Time) Step {
	leg := f.Journal.Leg
	timeout, budget := shortest(own, f.Rules.Patience)
	last := leg.At
	if leg.Beat.After(last) {
		last = leg.Beat
	}
	due := last.Add(timeout / beatsInTimeout)
	switch {
	case timeout == 0:
		return Step{Do: DoWait, Reason: waits}
	case now.Sub(leg.At) >= budget:
		return Step{Do: DoWait, Reason: fmt.Sprintf("%s; %s is not extended any more: %s have passed", waits, names(own), budget)}
	case now.Sub(f.Progress) >= f.Rules.Stall:
		return Step{Do: DoWait, Reason: fmt.Sprintf("%s; %s is not extended: there was no progress for %s", waits, names(own), f.Rules.Stall)}
	case now.Before(due):
		return Step{Do: DoWait, At: due, Reason: waits}
	}
	return Step{Do: DoHeartbeat, Hooks: own, Reason: waits + "; extends " + names(own)}
}

// shortest is the shortest timeout of hooks, and the budget for extending them.
func shortest(hooks []Hook, patience time.Duration) (timeout, budget time.Duration) {
	budget = patience
	for _, h := range hooks {
		if h.Timeout > 0 && (timeout == 0 || h.Timeout < timeout) {
			timeout = h.Timeout
		}
		if h.Global > 0 {
			budget = min(budget, h.Global)
		}
	}
	return timeout, budget
}

// talking says how the conversation stands.
func talking(f Facts, text string) string {
	switch {
	case f.Talk.Denied != "" && f.Journal.Leg.Goal == Serve:
		return text + "; " + f.Talk.Denied + ": the controller answers in its place"
	case f.Talk.Denied != "":
		return text + "; " + f.Talk.Denied + ": only an answer of somebody else, or the hook's timeout, lets the machine go on"
	case f.Talk.Taken && others(f) != "":
		return text + "; the state is still " + f.State.Value + others(f)
	case f.Talk.Trouble != "":
		return text + "; " + f.Talk.Trouble
	case !f.State.At.IsZero() && f.State.Position.Held() && !f.Talk.Sent.IsZero():
		return text + "; the state is still " + f.State.Value + others(f)
	}
	return text
}

// others says who else may hold the machine.
func others(f Facts) string {
	list := only(f.Hooks.Others, f.Journal.Leg.Goal.launching())
	if len(list) == 0 {
		return ""
	}
	return ": " + names(list) + " may hold it as well, which --hooks does not name"
}

func said(s State) string {
	if s.Group == "" {
		return "not known to any group"
	}
	return s.Value
}

func only(hooks []Hook, launching bool) []Hook {
	var out []Hook
	for _, h := range hooks {
		if h.Launching == launching {
			out = append(out, h)
		}
	}
	return out
}

func names(hooks []Hook) string {
	if len(hooks) == 0 {
		return "no hook that is known"
	}
	list := make([]string, len(hooks))
	for i, h := range hooks {
		list[i] = h.Name
	}
	return strings.Join(list, ", ")
}
