package lifecycle

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// The first heartbeat must come within a third of the hook's timeout after the hold began, also
// if it was seen late. There must be at most three within a timeout, none that is not needed,
// and they must be spread over the instances.
func TestHeartbeats(t *testing.T) {
	t.Parallel()
	dice := rand.New(rand.NewPCG(1, 2))
	firsts := map[time.Duration]bool{}
	for run := range 300 {
		timeout := []time.Duration{30 * time.Second, time.Minute, 5 * time.Minute, 2 * time.Hour}[dice.IntN(4)]
		budget := time.Duration(1+dice.IntN(300)) * time.Minute
		f := facts("Terminating:Wait", 0, newNotice("a"))
		f.InstanceID = fmt.Sprint("i-", run)
		f.Seen.Hooks[0].Timeout, f.Seen.Hooks[0].Global = timeout, min(100*timeout, 48*time.Hour)
		f.Deadline = notice.At(start.Add(budget), v1beta1.DeadlineHard)
		expires, beats := start.Add(timeout), []time.Time(nil)
		for f.Now = start; ; {
			f.Due = f.Now
			d := DecideTermination(f)
			f.Was = d.Status
			if d.Do == Complete {
				break
			}
			if d.Do == Heartbeat {
				beats = append(beats, f.Now)
				Note(f.Was, Heartbeat, f.Now)
				var err error
				if dice.IntN(6) == 0 && f.Was.FailedHeartbeats < 2 {
					err = errors.New("throttled")
				} else {
					expires = f.Now.Add(timeout)
				}
				NoteResult(f.Was, Heartbeat, err)
				continue
			}
			if !d.Wake.After(f.Now) {
				t.Fatalf("run %d: it wakes at %s, and it is %s: %+v", run, d.Wake, f.Now, d.Status)
			}
			f.Now = d.Wake.Add(time.Duration(dice.IntN(2000)) * time.Millisecond)
			f.Seen.Time = f.Now
			if f.Now.After(expires) {
				t.Fatalf("run %d: the hook of %s runs out at %s: %+v", run, timeout, f.Now.Sub(start), d.Status)
			}
		}
		if late := f.Now.Sub(start.Add(min(budget, 100*timeout))); late > 3*time.Second {
			t.Errorf("run %d: answered %s late", run, late)
		}
		if len(beats) > 0 {
			if first := beats[0].Sub(start); first > timeout/3+2*time.Second {
				t.Errorf("run %d: the first heartbeat comes after %s of %s", run, first, timeout)
			} else {
				firsts[first] = true
			}
		}
	}
	if len(firsts) < 100 {
		t.Errorf("the first heartbeats come at %d moments only", len(firsts))
	}
}

// There must be few heartbeats after the own hook was completed, or was created during the hold,
// while another hook holds the instance.
func TestHeartbeatsThatFail(t *testing.T) {
	t.Parallel()
	for _, timeout := range []time.Duration{30 * time.Second, time.Minute, 5 * time.Minute, 2 * time.Hour} {
		f := facts("Terminating:Wait", 0, newNotice("a"))
		f.Seen.Hooks[0].Timeout = timeout
		f.Seen.Hooks = append(f.Seen.Hooks, Hook{Name: "nth", Terminating: true, Timeout: time.Hour, Global: 48 * time.Hour})
		f.Deadline = notice.At(start.Add(time.Hour), v1beta1.DeadlineHard)
		var late []time.Time // those that come after the timeout for certain
		for f.Now = start; f.Now.Before(start.Add(55 * time.Minute)); f.Now = f.Now.Add(time.Second) {
			f.Seen.Time = f.Now
			d := DecideTermination(f)
			if f.Was = d.Status; d.Do != Heartbeat {
				continue
			}
			if f.Now.After(f.Was.ExpiryTime.Add(lookEvery)) {
				late = append(late, f.Now)
			}
			Note(f.Was, Heartbeat, f.Now)
			NoteResult(f.Was, Heartbeat, fmt.Errorf("extending: %w", cloud.ErrNoAction))
		}
		for i := range len(late) - 1 {
			if apart := late[i+1].Sub(late[i]); apart < max(30*time.Second, timeout/3) {
				t.Errorf("%s: heartbeats that are late are %s apart", timeout, apart)
			}
		}
		if f.Was.Heartbeats > 60*60/30+20 || timeout < time.Hour && len(late) < 5 {
			t.Errorf("%s: %d heartbeats, %d of them late", timeout, f.Was.Heartbeats, len(late))
		}
	}
}

// The heartbeat must be repeated soon if the start of the hold is unknown.
func TestHeartbeatWhoseTimeIsNotCertain(t *testing.T) {
	t.Parallel()
	f := facts("Terminating:Wait", 0, newNotice(""))
	f.Seen.Hooks[0].Timeout = 30 * time.Second
	d := DecideTermination(f)
	if d.Do != Heartbeat || d.Status.ExpiryTime.Time.After(start) {
		t.Fatalf("%s; %+v", d.Do, d.Status)
	}
	Note(d.Status, Heartbeat, start)
	NoteResult(d.Status, Heartbeat, errors.New("throttled"))
	f.Was = d.Status
	if d := DecideTermination(f); d.Wake.After(start.Add(firstRetry)) {
		t.Errorf("sent again at %s", d.Wake)
	}
}

// The completion of one hook says nothing about the other.
func TestHeartbeatsOfTwoHooks(t *testing.T) {
	t.Parallel()
	gone, busy := fmt.Errorf("extending: %w", cloud.ErrNoAction), errors.New("throttled")
	for name, test := range map[string]struct {
		errs   []error
		misses int32
		says   string
	}{
		"both accept":                      {[]error{nil, nil}, 0, ""},
		"one has let go":                   {[]error{gone, nil}, 0, ""},
		"the other has":                    {[]error{nil, gone}, 0, ""},
		"both have":                        {[]error{gone, gone}, 1, gone.Error()},
		"one has, the other is not called": {[]error{busy, gone}, 1, "throttled"},
		"one accepts, the other is busy":   {[]error{nil, busy}, 1, "throttled"},
	} {
		f := facts("Terminating:Wait", 0, newNotice("a"))
		f.Seen.Hooks = append(f.Seen.Hooks, Hook{Name: "db", Own: true, Terminating: true, Timeout: time.Hour})
		s := DecideTermination(f).Status
		expires := s.ExpiryTime.Time
		Note(s, Heartbeat, start.Add(time.Minute))
		NoteResult(s, Heartbeat, test.errs...)
		if s.FailedHeartbeats != test.misses || !strings.Contains(s.Message, test.says) || s.ExpiryTime.Time.After(expires) != (test.misses == 0) {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// The time of a person's request is an estimate, and ends no wait: the hook is extended beyond it, also where its group
// retains what is not drained in time.
func TestEstimateBoundsNoHook(t *testing.T) {
	t.Parallel()
	for _, retain := range []bool{false, true} {
		f := facts("Terminating:Wait", 0, newNotice("a"))
		f.Retain, f.Seen.Hooks[0].Abandons = retain, true
		f.Deadline = notice.At(start.Add(time.Minute), v1beta1.DeadlineEstimated)
		f.Was = DecideTermination(f).Status
		for _, at := range []time.Duration{2 * time.Minute, 4 * time.Minute} {
			f.Now = start.Add(at)
			f.Seen.Time = f.Now
			if d := DecideTermination(f); d.Do != Heartbeat {
				t.Errorf("retain %t, after %s: %q, want a heartbeat: %s", retain, at, d.Do, d.Status.Message)
			}
		}
	}
}

// A person can grant a missing permission at any time, and Auto Scaling can recover. So heartbeats that fail are repeated
// until the hook is completed, although the running timeout is the deadline meanwhile. A denied one is repeated seldom.
func TestHeartbeatsAreRepeatedAfterFailures(t *testing.T) {
	t.Parallel()
	denied := &cloud.DeniedError{Err: errors.New("AccessDenied"), Fix: "allow autoscaling:RecordLifecycleActionHeartbeat"}
	for _, timeout := range []time.Duration{time.Minute, 5 * time.Minute, 2 * time.Hour} {
		for fails, most := range map[error]int{denied: 20, errors.New("throttled"): 20} {
			f := facts("Terminating:Wait", 0, newNotice("a"))
			f.Seen.Hooks[0].Timeout, f.Seen.Hooks[0].Global = timeout, 48*time.Hour
			err, tries, ends := fails, 0, time.Time{}
			for f.Now = start; f.Now.Before(start.Add(timeout)); f.Now = f.Now.Add(time.Second) {
				f.Seen.Time, f.Deadline = f.Now, notice.At(start.Add(24*time.Hour), v1beta1.DeadlineHard)
				if s := f.Was; s != nil && s.FailedHeartbeats > 0 && (errors.Is(err, denied) || s.FailedHeartbeats > 2) { // as package record says
					f.Deadline = notice.At(s.ExpiryTime.Add(-early).Truncate(time.Second), v1beta1.DeadlineHard)
				}
				d := DecideTermination(f)
				if f.Was = d.Status; d.Do != Heartbeat {
					continue
				}
				if f.Now.After(start.Add(timeout/2)) && (errors.Is(err, denied) || f.Was.FailedHeartbeats > 2) {
					err = nil // it is repaired
				}
				tries++
				Note(f.Was, Heartbeat, f.Now)
				NoteResult(f.Was, Heartbeat, err)
				if err == nil {
					ends = f.Was.ExpiryTime.Time
					break
				}
			}
			if !ends.After(start.Add(timeout)) || tries > most {
				t.Errorf("%s, %v: after %d heartbeats the hook ends at %s: %+v", timeout, fails, tries, ends, f.Was)
			}
		}
	}
}
