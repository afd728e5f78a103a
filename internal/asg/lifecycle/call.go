package lifecycle

import (
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/cloud"
)

// Verb is an action.
type Verb string

// The actions for hooks.
const (
	Nothing Verb = ""
	// Complete sends each of the hooks a result.
	Complete Verb = "Complete"
	// Heartbeat extends each of the hooks by its timeout.
	Heartbeat Verb = "Heartbeat"
	// GiveUp ends the heartbeats: the hook's default result follows.
	GiveUp Verb = "GiveUp"
)

// Outcome is the result of a call for a hook.
type Outcome string

// The outcomes.
const (
	// Accepted: Auto Scaling accepted the call. The state shows whether it has an effect.
	Accepted Outcome = "ok"
	// NoAction: no lifecycle action of the hook is pending. It was completed, has timed
	// out, has not begun yet, or another hook holds the instance; the state tells which.
	NoAction Outcome = "noAction"
	// Denied: a permission is missing, and a retry is useless until it is granted.
	Denied Outcome = "denied"
	// Busy: Auto Scaling throttles.
	Busy Outcome = "busy"
	// Failed: any other error.
	Failed Outcome = "failed"
)

// Outcomes are all outcomes, for tables of metrics.
func Outcomes() []Outcome { return []Outcome{Accepted, NoAction, Denied, Busy, Failed} }

// OutcomeOf classifies the error of a call.
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

// CallRecord is the last call for a hook about an instance in one phase, and its outcome.
type CallRecord struct {
	// At is when the last call was made; zero: none was. Do is the call.
	At      time.Time
	Do      Verb
	Outcome Outcome
	// Error is the error of the last call.
	Error string
	// Tries counts the consecutive results that were sent, or the consecutive heartbeats that
	// failed.
	Tries int
	// Extended is when a heartbeat was last accepted, and Completed when a result was;
	// zero: never.
	Extended, Completed time.Time
}

// After returns the state after another call.
func (t CallRecord) After(at time.Time, do Verb, err error) CallRecord {
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
