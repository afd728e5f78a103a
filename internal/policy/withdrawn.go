package policy

import (
	"fmt"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// withdrawn is the decision if no notice is valid but there were some.
func withdrawn(f Facts) (Decision, bool) {
	standing := counting(f)
	if !notice.AllWithdrawn(standing, time.Time{}) {
		return Decision{}, false
	}
	last := standing[len(standing)-1]
	q := &matchContext{node: f.Node, notice: last}
	q.match(f.Policies)
	d := Decision{
		Decision: v1beta1.Decision{
			Action:  v1beta1.ActionIgnore,
			Message: fmt.Sprintf("%s: %s", v1beta1.ActionIgnore, whyWithdrawn(f, last)),
		},
		Notice: last, Withdrawn: true,
	}
	d.governedBy(q.effectivePolicy()) // whose notifications are sent
	return d, true
}

func whyWithdrawn(f Facts, last v1beta1.Notice) string {
	if last.Kind == notice.KindInstanceStateChange && !notice.Lived(f.Notices, f.Node).IsZero() {
		return "the instance was started again after it was stopped"
	}
	if isRequested(last) {
		return "the request is withdrawn"
	}
	return "AWS has taken back " + subject(last)
}
