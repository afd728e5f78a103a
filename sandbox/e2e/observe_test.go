//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
)

// allWritesPolicy makes the API server log every write.
const allWritesPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, verbs: [get, list, watch]}
- {level: Metadata}
`

// The controller cordons a node before it writes the decision. So once the decision is there, the
// audit log shows whether it acted.
func TestObserveModeWritesOnlyOwnObjects(t *testing.T) {
	t.Parallel()
	args, log := auditArgs(t, allWritesPolicy)
	r := newRigWith(t, sandbox.Options{LifeboatdArgs: []string{"--mode=Observe"}, APIServerArgs: args})
	interrupted, pods := r.stage()
	before := r.settled(interrupted)
	r.reclaim(interrupted)
	r.until("the decision", 30*time.Second, func(ctx context.Context) (bool, error) {
		in, err := r.record(ctx, interrupted.ID)
		if err != nil || in == nil {
			return false, err
		}
		if in.Status.Decision == nil {
			return false, errors.New("there is no decision yet")
		}
		message := in.Status.Decision.Message
		return strings.Contains(message, "mode Observe; with mode Act: Drain"), fmt.Errorf("decision %q", message)
	})
	wrote := 0
	for _, q := range readAudit(t, log)[chart.ControllerAccount] {
		wrote++
		switch q.ObjectRef.APIGroup {
		case "lifeboat.dev", "events.k8s.io", "coordination.k8s.io":
		default:
			t.Errorf("lifeboatd wrote: %s %s", q, q.ObjectRef.Name)
		}
	}
	if wrote == 0 {
		t.Error("the audit log has no write of lifeboatd: the test sees nothing")
	}
	r.waitRestored(interrupted, before) // nothing was changed
	if left := r.podsOn(interrupted); len(left) < pods {
		t.Errorf("%d of %d pods are left on the node", len(left), pods)
	}
}
