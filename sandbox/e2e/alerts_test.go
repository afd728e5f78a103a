//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/program"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/scenario"
	"github.com/lifeboat-dev/lifeboat/sandbox/scrape"
)

// replay evaluates alerts; it is built when a test first needs it.
var replay = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "lifeboat-replay-")
	if err != nil {
		return "", err
	}
	return program.Replay(context.Background(), dir)
})

const alertsFile = "../../charts/lifeboat/alerts/lifeboat.yaml"

// evaluate evaluates the chart's alerts over a recording.
func (r *rig) evaluate(recording []scrape.Scrape, hold time.Duration) scrape.Result {
	r.t.Helper()
	path, err := replay()
	if err != nil {
		r.t.Fatal(err)
	}
	result, err := scrape.Evaluate(r.t.Context(), path, alertsFile, recording, hold)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Logf("alerts, by the time after the start: %v", result.Firing)
	return result
}

// TestAlertsFireOnTheirFaults breaks what no scenario and no incident of the rehearsal breaks. The
// faults of the first recording do not disturb each other, so they exist at the same time.
func TestAlertsFireOnTheirFaults(t *testing.T) {
	t.Parallel()
	r := newRigWith(t, sandbox.Options{NoLifeboat: true, Agents: true})
	r.apply(object(t, []byte("apiVersion: lifeboat.dev/v1beta1\nkind: InterruptionPolicy\nmetadata: {name: chat}\n"+
		"spec: {rules: [{kinds: ['*'], action: Terminate}], notifications: [{name: chat, reasons: [Decided], webhook: {url: 'http://127.0.0.1:9/'}}]}")))
	r.apply(object(t, []byte("apiVersion: lifeboat.dev/v1beta1\nkind: NodeGroup\nmetadata: {name: web}\nspec: {autoScalingGroup: web}")))
	nodes := r.launch(3)
	r.runOn(nodes[0], "tight", 5)
	r.apply(budget("tight", 1))
	r.runOn(nodes[1], "web", 30)
	slow := func() time.Duration { return 3 * time.Second } // the counters are scraped before the first probe
	r.AWS().Gate.Slow("events", "PutEvents", slow)
	recorder := scrape.Start(t.Context(), r.Sandbox)
	if err := r.RestartLifeboat(t.Context(), "--canary-interval=1m", "--cluster-name="+r.Wiring().Cluster); err != nil {
		t.Fatal(err)
	}
	r.breakAtOnce(nodes)
	recorder.Rounds(t.Context(), 2)
	empty := r.checkFires(recorder, "LifeboatAWSRequestsFailing", "LifeboatAnswersRefused", "LifeboatCanaryFailing", "LifeboatDeadlineNear", "LifeboatLaunchStuck",
		"LifeboatNotificationsFailing", "LifeboatPauseForgotten", "LifeboatPodsLost", "LifeboatSourceDown", "LifeboatUncorroborated",
		"LifeboatUnreadableMessages")
	for _, panel := range []string{"lifeboat-sources: Unreadable messages", "lifeboat-sources: Probes that failed", "lifeboat-sources: Time of probes"} {
		if slices.Contains(empty, panel) {
			t.Errorf("the panel %s has no data", panel)
		}
	}

	r.StartAWS()
	recorder = scrape.Start(t.Context(), r.Sandbox)
	if err := r.StopLifeboat(); err != nil {
		t.Fatal(err)
	}
	recorder.Rounds(t.Context(), 3)
	r.checkFires(recorder, "LifeboatNoLeader")
}

// runOn runs a pod on a node.
func (r *rig) runOn(in ec2.Instance, name string, grace int64) {
	r.t.Helper()
	d := deployment(name, 1, 0)
	d.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: in.PrivateDNSName}
	d.Spec.Template.Spec.TerminationGracePeriodSeconds = &grace
	r.apply(d)
	r.waitPods(in, 1)
}

// shortNotice reclaims an instance with little time. Its metadata have the time, the event has none.
func (r *rig) shortNotice(in ec2.Instance) {
	r.t.Helper()
	if err := r.EC2().Interrupt([]string{in.ID}, ec2.InterruptOptions{Notice: 35 * time.Second}); err != nil {
		r.t.Fatal(err)
	}
}

// breakAtOnce injects faults, and waits until lifeboatd has met each of them. A budget holds the pod of
// the first node until its last call. A pause of everything leaves the pod of the second node on it
// until the end of its instance. The third node is reclaimed by a forged notice only.
func (r *rig) breakAtOnce(nodes []ec2.Instance) {
	r.t.Helper()
	rules := float64(len(r.Wiring().Rules))
	r.untilMetric("lifeboat_canary_seconds_count", "", rules)
	r.AWS().Gate.Lift("events", "PutEvents")
	r.AWS().Gate.Fail("events", "PutEvents")
	if err := scenario.MakeGroup(r.AWS().States, scenario.GroupStatement{
		Name: "web", Max: 1, Desired: 1, Type: "m5.large", Hooks: scenario.HooksBoth, Agent: scenario.AgentSilent, LaunchTime: time.Hour, Boot: time.Hour,
	}); err != nil {
		r.t.Fatal(err)
	}
	r.AWS().States.CloudTrail.StartLogging()
	r.refuseAnswer("web", nodes[2])
	r.untilMetric("lifeboat_recorded_notices_total", `"LifecycleActionFailure"`, 1)
	r.shortNotice(nodes[0])
	r.say("evt-forged", spotWarning, nodes[2], map[string]string{"instance-action": "terminate"})
	r.send("no event")
	r.untilMetric("lifeboat_unreadable_messages_total", "", 2) // the message comes back
	r.untilMetric("lifeboat_nodegroup_pending_actions", `"web"`, 1)
	r.until("the forged notice to be doubted", time.Minute, func(ctx context.Context) (bool, error) {
		return r.doubt(ctx, nodes[2].ID) != "", nil
	})
	r.reaches(nodes[0].ID, v1beta1.PhaseDrained, time.Minute)
	r.mustCLI("pause", "--all", "--for", "1h")
	r.shortNotice(nodes[1])
	r.untilMetric("lifeboat_drained_pods_total", `"lost"`, 1)
	r.untilMetric("lifeboat_notifications_total", `"failed"`, 3)
	r.untilMetric("lifeboat_canary_failed_total", "", 2*rules) // one failure of each rule is no alert
	r.StopAWS()
	r.until("the queue to be away", time.Minute, func(context.Context) (bool, error) { return r.metric("lifeboat_source_up", `"sqs"`) == 0, nil })
}

// untilMetric waits until the sum of a metric of lifeboatd is large enough.
func (r *rig) untilMetric(name, labels string, least float64) {
	r.t.Helper()
	r.until(name, 2*time.Minute, func(context.Context) (bool, error) {
		n := r.metric(name, labels)
		return n >= least, fmt.Errorf("%v", n)
	})
}

// checkFires ends a recording, and checks that these alerts fire over it, and no others. It returns the
// panels without data.
func (r *rig) checkFires(recorder *scrape.Recorder, want ...string) (empty []string) {
	r.t.Helper()
	result := r.evaluate(recorder.Stop(), 5*time.Hour)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(result.Firing))); diff != "" {
		r.t.Errorf("the alerts that fire (-want +got):\n%s", diff)
	}
	return result.Empty
}
