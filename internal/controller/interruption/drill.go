package interruption

import (
	"fmt"

	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// sparesInstance reports whether the notice that decides was sent as a test, and the person did
// not ask to end the instance, or whether a person asked for a drain and nothing more. Lifeboat
// then does nothing that cannot be undone: it deletes no NodeClaim, tells Karpenter nothing, and
// terminates no instance.
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
