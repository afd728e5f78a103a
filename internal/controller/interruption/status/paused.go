package status

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// setPaused sets the condition Paused, and adds a timeline entry when a pause begins or ends to
// stop the action.
func (u *Update) setPaused(o Outcome) {
	was := meta.IsStatusConditionTrue(u.before.Status.Conditions, v1beta1.ConditionPaused)
	switch text := Clip(o.Paused); {
	case text != "":
		if u.setCondition(v1beta1.ConditionPaused, true, v1beta1.ReasonPaused, text) {
			u.Record(v1beta1.ReasonPaused, text)
		}
	case was:
		text = "the pause does not stop it any more"
		u.setCondition(v1beta1.ConditionPaused, false, v1beta1.ReasonResumed, text)
		u.Record(v1beta1.ReasonResumed, text)
	}
}
