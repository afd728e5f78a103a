package lifecycle

import (
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/cloud"
)

// Verb is something to do.
type Verb string

// What is done about hooks.
const (
	Nothing Verb = ""
	// Complete sends each of the hooks a result.
	Complete Verb = "Complete"
	// Heartbeat extends each of the hooks by its timeout.
	Heartbeat Verb = "Heartbeat"
	// GiveUp ends the heartbeats: the hook's default result follows.
	GiveUp Verb = "GiveUp"
)

// Outcome is what came of a call to a hook.
type Outcome string

// The outcomes.
const (
	// Accepted: Auto Scaling took the call. The state tells whether it has an effect.
	Accepted Outcome = "ok"
	// NoAction: no lifecycle action of the hook is pending. It was completed, has timed
	// out, has not begun yet, or another hook holds the instance; the state tells which.
	NoAction Outcome = "noAction"
	// Denied: a permission is missing, and a retry is of no use before it is given.
	Denied Outcome = "denied"
	// Busy: Auto Scaling throttles.
	Busy Outcome = "busy"
	// Failed: any other error.
	Failed Outcome = "failed"
)

// OutcomeOf says what the error of a call means.
func OutcomeOf(err error) Outcome {
	switch {
	case err == nil:
		return Accepted
	case cloud.IsNoAction(err):
		return NoAction
	case cloud.IsDenied(err):
		return Denied
	case cloud.IsBusy(err):
		return Busy
	}
	return Failed
}

// Told is what a hook was last told about an instance in one phase, and the outcome.
type Told struct {
	// At is when the last call was made; zero: none was. Do says which call.
	At      time.Time
	Do      Verb
	Outcome Outcome
	// Error is that of the last call.
	Error string
	// Tries counts the results that were sent in a row, or the heartbeats that failed in
	// a row.
	Tries int
	// Extended is when a heartbeat was last accepted, and Completed when a result was;
	// zero: never.
	Extended, Completed time.Time
}

// After returns what is known once another call was made.
func (t Told) After(at time.Time, do Verb, err error) Told {
	if t.Do != do {
		t.Tries = 0
	}
	t.At, t.Do, t.Outcome, t.Error = at, do, OutcomeOf(err), ""
	t.Tries++
	switch {
	case err != nil:
		t.Error = err.Error()
	case do == Complete:
		t.Completed = at
	default:
		t.Extended, t.Tries = at, 0
	}
	return t
}
