package record

import (
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// later is more seconds than lie between any two deadlines: a soft deadline ranks
// behind each hard one.
const later = 1 << 40

// Priority ranks Interruptions; higher goes first. The earliest hard deadline goes
// first, then the earliest soft one, then what has none.
func Priority(in *v1alpha1.Interruption) int {
	if notice.Finished(in) {
		return -3 * later
	}
	deadline := notice.Deadline(notice.Unanswered(in.Spec.Notices, in.Status.Answered), time.Time{})
	switch {
	case deadline == nil:
		return -2 * later
	case deadline.Type == v1alpha1.DeadlineSoft:
		return -later - int(deadline.Time.Unix())
	}
	return -int(deadline.Time.Unix())
}
