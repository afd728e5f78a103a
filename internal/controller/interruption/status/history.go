package status

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// maxHistory bounds status.history; the CRD has the same bound.
const maxHistory = 16

// complete notes that nothing is left to do about any notice that this pass has read.
func (u *Update) complete() {
	s := &u.after.Status
	handled := notice.Handled(s)
	var keys []string
	for i := range u.before.Spec.Notices {
		if n := &u.before.Spec.Notices[i]; !notice.IsHandled(n, handled) {
			keys = append(keys, notice.Key(n))
		}
	}
	outcome := v1beta1.OutcomeCompleted
	if s.Phase == v1beta1.PhaseCancelled {
		outcome = v1beta1.OutcomeCancelled
	}
	u.addHistory(u.ended(outcome), keys...)
}

// ended is the entry of the drain that ends now, or of the notice that decides where no drain has begun.
func (u *Update) ended(outcome v1beta1.Outcome) v1beta1.HistoryEntry {
	s := &u.after.Status
	e := v1beta1.HistoryEntry{Kind: s.Kind, Outcome: outcome, EndTime: MicroTime(u.now)}
	if d := s.Drain; d != nil && d.Subject != "" {
		e.Kind, e.Subject = d.Kind, d.Subject
		if begun := record.SubjectTime(s); !begun.IsZero() {
			at := MicroTime(begun)
			e.StartTime, e.PodsTotal, e.PodsMoved, e.PodsLost = &at, d.PodCounts.Total, d.PodCounts.Moved, d.PodCounts.Lost
		}
	}
	return e
}

// addHistory adds an entry. A full list loses its oldest one, but neither when the last interruption ended
// nor which notices were handled.
func (u *Update) addHistory(e v1beta1.HistoryEntry, handled ...string) {
	s := &u.after.Status
	if n := len(s.History); n > 0 && len(handled) == 0 && sameEnd(&s.History[n-1], &e) {
		return
	}
	e.HandledNotices = handled
	s.History = append(slices.Clone(s.History), e)
	u.pruneHandled()
	if len(s.History) <= maxHistory {
		return
	}
	victim := 0
	if notice.EndsAll(s.History[0].Outcome) && !slices.ContainsFunc(s.History[1:], func(e v1beta1.HistoryEntry) bool { return notice.EndsAll(e.Outcome) }) {
		victim = 1
	}
	next := &s.History[victim+1]
	next.HandledNotices = append(slices.Clone(next.HandledNotices), s.History[victim].HandledNotices...)
	s.History = slices.Delete(s.History, victim, victim+1)
}

// sameEnd reports whether two entries are about the end of the same drain, which a later pass has repeated.
func sameEnd(a, b *v1beta1.HistoryEntry) bool {
	return a.Kind == b.Kind && a.Subject == b.Subject && a.Outcome == b.Outcome && a.StartTime.Equal(b.StartTime)
}

// pruneHandled keeps of the handled notices those that the spec still has, which bounds the lists as the
// CRD does.
func (u *Update) pruneHandled() {
	history := slices.Clone(u.after.Status.History)
	for i := range history {
		history[i].HandledNotices = slices.DeleteFunc(slices.Clone(history[i].HandledNotices), func(key string) bool {
			return !slices.ContainsFunc(u.before.Spec.Notices, func(n v1beta1.Notice) bool { return n.ID == key || notice.Key(&n) == key })
		})
	}
	u.after.Status.History = history
}

// departedOnly are the entries of pods that have left, without those that the plan lists again: after a change of
// the leader, or of the Node, the cache may show a pod whose end was written. The API server refuses a list with
// two entries of one pod.
func departedOnly(departed, planned []v1beta1.PodStatus) []v1beta1.PodStatus {
	again := map[types.UID]bool{}
	for i := range planned {
		again[planned[i].UID] = true
	}
	return slices.DeleteFunc(departed, func(p v1beta1.PodStatus) bool { return again[p.UID] })
}

// instant is a time of the API with whole seconds; nil: zero.
func instant(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	at := metav1.NewTime(t)
	return &at
}
