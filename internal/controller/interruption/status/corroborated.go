package status

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/corroborate"
)

// SetUncorroborated notes that something irreversible, or everything, waits because facts about
// the instance do not agree. It adds a timeline entry when that begins.
func (u *Update) SetUncorroborated(v corroborate.Verdict) {
	u.setDoubt(reasonOf(v), v.Why)
}

// SetConflict notes that nothing is done, because several Ready nodes state the instance.
func (u *Update) SetConflict(err *corroborate.ConflictError) {
	u.setDoubt(v1beta1.ReasonNodeConflict, err.Error())
	u.setCondition(v1beta1.ConditionReady, false, v1beta1.ReasonWaiting, Clip("waits: "+err.Error()))
}

// SetUnconfirmed notes that nothing is done, because the only notice says that the instance is
// gone, and nothing confirms it.
func (u *Update) SetUnconfirmed(v corroborate.Verdict) {
	u.SetUncorroborated(v)
	u.setCondition(v1beta1.ConditionReady, false, v1beta1.ReasonWaiting, Clip("waits: "+v.Why))
}

func (u *Update) setDoubt(reason, why string) {
	why = Clip(why)
	if u.setCondition(v1beta1.ConditionCorroborated, false, reason, why) {
		u.Record(reason, why)
	}
}

// setCorroborated notes why something irreversible waits, or that nothing does. A doubt that
// lasts keeps its condition: a new one would have a new time, and every pass would write it.
func (u *Update) setCorroborated(o Outcome) {
	if o.Uncorroborated == nil || o.Completed {
		meta.RemoveStatusCondition(&u.after.Status.Conditions, v1beta1.ConditionCorroborated)
		return
	}
	u.SetUncorroborated(*o.Uncorroborated)
}

func reasonOf(v corroborate.Verdict) string {
	if v.Answer == corroborate.Differ {
		return v1beta1.ReasonContradicted
	}
	return v1beta1.ReasonUnconfirmed
}

// isDoubt reports whether a timeline entry says that facts do not agree.
func isDoubt(reason string) bool {
	return slices.Contains([]string{v1beta1.ReasonNodeConflict, v1beta1.ReasonContradicted, v1beta1.ReasonUnconfirmed}, reason)
}
