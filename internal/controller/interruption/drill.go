package interruption

import (
	"fmt"

	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// sparesInstance reports whether the notice that decides forbids irreversible acts. It does if a
// person asked only for a drain, or if it is a drill without endInstance. Lifeboat then deletes no
// NodeClaim, sends Karpenter no message, and terminates no instance.
func (p *pass) sparesInstance() bool {
	n := &p.decision.Notice
	return n.Drill && !n.EndInstance || p.isRequested()
}

// isRequested reports whether a person asked for the drain. The node then stays cordoned until a
// person says otherwise.
func (p *pass) isRequested() bool { return p.decision.Notice.Kind == notice.KindRequested }

// awaitUncordon waits for that person.
func (p *pass) awaitUncordon() (bool, error) {
	p.outcome.Waits = fmt.Sprintf("waits until a person runs `lifeboat uncordon %s`, or until the instance goes", p.facts.nodeName)
	return false, nil
}
