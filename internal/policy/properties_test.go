package policy_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/netresearch/go-cron"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

// dice generates random worlds.
type dice struct{ *rand.Rand }

func pick[T any](d dice, from ...T) T { return from[d.IntN(len(from))] }

func (d dice) rule() v1beta1.Rule {
	r := v1beta1.Rule{
		Kinds: []string{pick(d, append(notice.Kinds(), "*", "*", "*", notice.KindScheduledChange)...)},
		Action: pick(d, v1beta1.ActionIgnore, v1beta1.ActionNotify, v1beta1.ActionCordon,
			v1beta1.ActionDrain, v1beta1.ActionDrain, v1beta1.ActionTerminate),
		EventTypeCodes: pick(d, nil, nil, nil, []string{"*stop*"}),
	}
	if r.Action == v1beta1.ActionIgnore || r.Action == v1beta1.ActionNotify {
		return r
	}
	if d.IntN(3) == 0 {
		r.Approval = v1beta1.ApprovalRequired
		r.IfUnanswered = pick(d, "", v1beta1.UnansweredWait, v1beta1.UnansweredProceed)
	}
	if d.IntN(2) == 0 {
		r.NotBefore = after(pick(d, time.Minute, 20*time.Minute, time.Hour, 61*time.Minute, 5*time.Hour, 48*time.Hour))
	}
	if d.IntN(2) == 0 {
		r.Window = window(pick(d, "0 2 * * *", "*/7 * * * *", "30 1 29 2 *", "0 12 * * MON", "15 2 * * *"),
			pick(d, time.Minute, time.Hour, 26*time.Hour), pick(d, "", "Europe/Berlin", "America/New_York"))
	}
	return r
}

func (d dice) notice(i int) v1beta1.Notice {
	n := build(fmt.Sprint("n", i), pick(d, append(notice.Kinds(), "SolarFlare", notice.KindScheduledChange, notice.KindScheduledChange)...))
	n.EventTypeCode = pick(d, "", "instance-stop", "instance-reboot")
	n.InstanceAction = pick(d, "", notice.ActionStop, notice.ActionReboot, notice.ActionMaintain)
	n.InstanceState = pick(d, "", notice.StateStopping, notice.StateTerminated)
	n.Subject = pick(d, "", "a", "b")
	if d.IntN(3) > 0 {
		due(noon.Add(time.Duration(d.Int64N(int64(pick(d, 3*time.Minute, 3*time.Hour, 90*time.Hour))))),
			pick(d, v1beta1.DeadlineHard, v1beta1.DeadlineSoft, v1beta1.DeadlineSoft, v1beta1.DeadlineSoft))(&n)
	}
	return n
}

func (d dice) facts() policy.Facts {
	f := policy.Facts{Now: noon.Add(time.Duration(d.IntN(7200)) * time.Second), Node: pick(d, node(nil), ofPool("db"), ofPool("web"), nil)}
	for i := range 1 + d.IntN(3) {
		f.Notices = append(f.Notices, d.notice(i))
	}
	for i := range d.IntN(5) {
		p := named(fmt.Sprint("p", i), d.Int32N(3))
		p.Spec.Rules = []v1beta1.Rule{d.rule(), d.rule()}
		p.Spec.Nodes.NodePools = pick(d, nil, nil, []string{"db"})
		if d.IntN(8) == 0 {
			p.Spec.Rules[0].Kinds = []string{"Nonsense"}
		}
		f.Policies = append(f.Policies, p)
	}
	if d.IntN(3) == 0 {
		f.Approval = say(pick(d, "ScheduledChange a", "ScheduledChange", "SpotInterruption"), noon)
	}
	if d.IntN(4) == 0 {
		f.Begun = noon
	}
	return f
}

// worlds runs a check on many random worlds and reports the seed of a failure.
func worlds(t *testing.T, check func(t *testing.T, d dice, f policy.Facts, decided policy.Decision)) {
	t.Helper()
	for seed := range uint64(4000) {
		d := dice{rand.New(rand.NewPCG(seed, 1))}
		f := d.facts()
		decided, ok := policy.Decide(f)
		if !ok {
			t.Fatalf("seed %d: no notice counts", seed)
		}
		check(t, d, f, decided)
		if t.Failed() {
			t.Fatalf("seed %d: %s", seed, decided.Message)
		}
	}
}

// ruling returns the rule that applies; nil for a default.
func ruling(f policy.Facts, d policy.Decision) *v1beta1.Rule {
	for i := range f.Policies {
		for j := range f.Policies[i].Spec.Rules {
			if f.Policies[i].Name == d.Policy && d.Rule == fmt.Sprintf("rule %d", j+1) {
				return &f.Policies[i].Spec.Rules[j]
			}
		}
	}
	return nil
}

// begins is when the action begins without any further approval; the zero time: never.
func begins(f policy.Facts, d policy.Decision) time.Time {
	at := f.Now
	if d.AwaitsApproval {
		at = d.ProceedsAt
	}
	if !at.IsZero() && d.NotBefore.After(at) {
		at = d.NotBefore
	}
	return at
}

func TestDecisionInvariants(t *testing.T) {
	worlds(t, func(t *testing.T, _ dice, f policy.Facts, d policy.Decision) { keepsPromises(t, f, d) })
}

func TestPolicyOrderIsIrrelevant(t *testing.T) {
	worlds(t, func(t *testing.T, d dice, f policy.Facts, decided policy.Decision) {
		d.Shuffle(len(f.Policies), func(i, j int) { f.Policies[i], f.Policies[j] = f.Policies[j], f.Policies[i] })
		again, _ := policy.Decide(f)
		if diff := cmp.Diff(decided, again); diff != "" {
			t.Errorf("(-first +shuffled)\n%s", diff)
		}
	})
}

// As time passes, NotBefore must not change, and the action must begin then. Only another notice
// may change that, and not before Next.
func TestStartTimeIsKept(t *testing.T) {
	worlds(t, func(t *testing.T, d dice, f policy.Facts, decided policy.Decision) {
		if decided.NotBefore.IsZero() {
			return
		}
		promised := decided.NotBefore
		f.Now = f.Now.Add(time.Duration(d.Int64N(int64(promised.Sub(f.Now)))))
		then, _ := policy.Decide(f)
		if then.Notice.ID != decided.Notice.ID {
			if decided.Next.IsZero() || f.Now.Before(decided.Next) {
				t.Errorf("at %s %s rules and not %s, which was to be until %s", f.Now, then.Notice.ID, decided.Notice.ID, decided.Next)
			}
			return
		}
		if !then.NotBefore.Equal(promised) {
			t.Errorf("at %s it says %s and not %s any more", f.Now, then.NotBefore, promised)
		}
		f.Now = promised
		if then, _ := policy.Decide(f); !then.NotBefore.IsZero() {
			t.Errorf("when it has come it says %s", then.NotBefore)
		}
	})
}

// A window either opens in time, or the action begins at the lead time before the deadline.
func TestDrainStartsInWindow(t *testing.T) {
	inWindow := 0
	worlds(t, func(t *testing.T, _ dice, f policy.Facts, d policy.Decision) {
		r := ruling(f, d)
		if r == nil || r.Window == nil || d.NotBefore.IsZero() {
			return
		}
		if isOpen(t, r.Window, d.NotBefore) {
			inWindow++
			return
		}
		early := time.Hour
		if r.NotBefore != nil {
			early = min(early, r.NotBefore.Duration)
		}
		if d.Deadline == nil || !d.NotBefore.Equal(d.Deadline.Time.Add(-early)) {
			t.Errorf("it begins at %s, which lies in no window, with deadline %v", d.NotBefore, d.Deadline)
		}
		from := f.Now
		if r.NotBefore != nil && d.Deadline.Time.Add(-r.NotBefore.Duration).After(from) {
			from = d.Deadline.Time.Add(-r.NotBefore.Duration)
		}
		for at := from.Truncate(time.Minute).Add(time.Minute); at.Before(d.NotBefore); at = at.Add(time.Minute) {
			if isOpen(t, r.Window, at) {
				t.Fatalf("it begins at %s, although its window is open at %s", d.NotBefore, at)
			}
		}
	})
	if inWindow < 40 {
		t.Errorf("only %d worlds wait for a window", inWindow)
	}
}

func isOpen(t *testing.T, w *v1beta1.Window, at time.Time) bool {
	t.Helper()
	zone, err := time.LoadLocation(w.TimeZone)
	if err != nil {
		t.Fatal(err)
	}
	schedule, err := cron.ParseStandard(w.Schedule)
	if err != nil {
		t.Fatal(err)
	}
	opening := schedule.Next(at.In(zone).Add(-w.Duration.Duration))
	return !opening.IsZero() && !opening.After(at)
}

// Under a soft deadline no action begins before notBefore, unless the group already terminates
// the instance.
func TestNoStartBeforeNotBefore(t *testing.T) {
	worlds(t, func(t *testing.T, _ dice, f policy.Facts, d policy.Decision) {
		r := ruling(f, d)
		if r == nil || r.NotBefore == nil || d.Deadline == nil || d.Deadline.Type == v1beta1.DeadlineHard ||
			d.Notice.Kind == notice.KindAutoScalingTermination {
			return
		}
		if at := d.Deadline.Time.Add(-r.NotBefore.Duration); f.Now.Before(at) && d.NotBefore.Before(at) {
			t.Errorf("it begins at %s, before %s", d.NotBefore, at)
		}
	})
}

// With a valid approval nothing is awaited, and nothing begins later than without.
func TestApprovalNeverDelays(t *testing.T) {
	awaited := 0
	worlds(t, func(t *testing.T, _ dice, f policy.Facts, without policy.Decision) {
		f.Approval = say(without.About, f.Now)
		with, _ := policy.Decide(f)
		if with.AwaitsApproval || !with.ProceedsAt.IsZero() {
			t.Errorf("an approval about %q does not count", without.About)
		}
		if without.AwaitsApproval {
			awaited++
			r := ruling(f, without)
			if r == nil && strings.Contains(without.Message, "is not valid") {
				if !without.ProceedsAt.IsZero() {
					t.Errorf("in place of an invalid policy, it proceeds at %s", without.ProceedsAt)
				}
			} else if r == nil || r.Approval != v1beta1.ApprovalRequired {
				t.Error("approval is awaited that no rule wants")
			} else if (r.IfUnanswered == v1beta1.UnansweredProceed) == without.ProceedsAt.IsZero() {
				t.Errorf("%q, and it proceeds at %s", r.IfUnanswered, without.ProceedsAt)
			}
		}
		if late := begins(f, without); !late.IsZero() && begins(f, with).After(late) {
			t.Errorf("with approval it begins at %s, without at %s", begins(f, with), late)
		}
	})
	if awaited < 100 {
		t.Errorf("only %d worlds await approval", awaited)
	}
}
