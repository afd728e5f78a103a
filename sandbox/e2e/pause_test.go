//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/scrape"
)

// A pause stops a request for a drain, also after a restart of lifeboatd, and does not stop a
// reclaim. What it stopped goes on after the pause.
func TestPauseOutlivesRestart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	interrupted, pods := r.stage()
	r.mustCLI("pause", "--for", "1h", "--note", "incident 4711")
	r.mustCLI("drain", interrupted.PrivateDNSName)
	paused := func(want bool) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			in, err := r.record(ctx, interrupted.ID)
			if err != nil || in == nil {
				return false, err
			}
			return meta.IsStatusConditionTrue(in.Status.Conditions, v1beta1.ConditionPaused) == want, fmt.Errorf("conditions %+v", in.Status.Conditions)
		}
	}
	r.until("the request to be paused", time.Minute, paused(true))
	if out, code := r.cli("status"); code != 3 && code != 1 || !strings.Contains(out, "paused the cluster (incident 4711)") || !strings.Contains(out, "lifeboat resume") {
		t.Errorf("status does not show the pause: exit code %d", code)
	}

	last := r.lifeboatPID()
	if err := r.KillLifeboat(); err != nil {
		t.Fatal(err)
	}
	r.until("lifeboatd to be started again", time.Minute, func(context.Context) (bool, error) { return r.lifeboatPID() != last, nil })
	// The restarted process handles a reclaim, so it has also read the pause and the request.
	reclaimed := r.launch(1)[0]
	r.reclaim(reclaimed)
	r.reaches(reclaimed.ID, v1beta1.PhaseDrained, time.Minute)
	if node, err := r.node(t.Context(), interrupted); err != nil || node.Spec.Unschedulable || len(r.podsOn(interrupted)) != pods {
		t.Errorf("during the pause the node has %d of %d pods (%v)", len(r.podsOn(interrupted)), pods, err)
	}

	r.mustCLI("resume")
	r.until("the request to go on", time.Minute, paused(false))
	r.reaches(interrupted.ID, v1beta1.PhaseDrained, 2*time.Minute)
}

// A pause does not stop the clock: the alert about a near deadline fires for a node whose drain a
// pause stops.
func TestPausedDeadlineAlerts(t *testing.T) {
	t.Parallel()
	r := newRigWith(t, sandbox.Options{Agents: true})
	node := r.launch(1)[0]
	r.runOn(node, "web", 30)
	r.mustCLI("pause", "--all", "--for", "1h")
	recorder := scrape.Start(t.Context(), r.Sandbox)
	r.shortNotice(node)
	r.untilMetric("lifeboat_drained_pods_total", `"lost"`, 1)
	recorder.Rounds(t.Context(), 1)
	result := r.evaluate(recorder.Stop(), time.Hour)
	if _, fires := result.Firing["LifeboatDeadlineNear"]; !fires {
		t.Error("the pods are lost, and no alert said before that the deadline is near")
	}
}
