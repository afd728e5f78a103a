//go:build skew

package skew

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
	"github.com/lifeboat-dev/lifeboat/sandbox/kwok"
)

func (w *world) upgradeCRDs() {
	w.mute()
	w.applyCRDs(w.newer)
	w.stored()
	w.applyManifests()
	w.reclaim(0)
	w.kept()
}

// upgradeController upgrades the release. Helm changes permissions and admission policies at once,
// while the agents are still the older ones.
func (w *world) upgradeController() {
	w.helm("upgrade", chart.Release, w.newer.chart, "--namespace", chart.Namespace, "--values", w.values())
	w.replaceController(w.newer)
	w.kept()
	w.reclaim(1)
	w.goOn(0, w.older)
	w.applyManifests()
}

func (w *world) upgradeAgents() {
	w.replaceAgents(w.newer)
	w.reclaim(2)
	w.kept(w.moved(1)...)
	w.stored()
	w.fit()
}

func (w *world) rollBackController() {
	w.helm("rollback", chart.Release, "--namespace", chart.Namespace)
	w.replaceController(w.older)
	w.kept(w.moved(1)...)
	w.reclaim(3)
	w.goOn(1, w.newer)
}

func (w *world) rollBackAgents() {
	w.replaceAgents(w.older)
	w.reclaim(4)
	w.kept(w.moved(2)...)
	w.stored()
	w.fit()
}

func (w *world) rollBackCRDs() {
	w.applyCRDs(w.older)
	w.stored()
	w.applyManifests()
	w.kept(w.moved(2)...)
	w.goOn(2, w.older)
}

// complete lets everything go on that waits, and ends the instances.
func (w *world) complete() {
	f := w.fleet
	w.open()
	for i := 3; i < hooks; i++ {
		w.goOn(i, w.older)
	}
	ends := slices.Concat(f.draining, f.approvals, f.hooks)
	w.inPhase(ends, v1beta1.PhaseDrained)
	if _, err := w.EC2().Terminate(ids(ends)); err != nil {
		w.t.Fatal(err)
	}
	w.EC2().RestoreCapacity()
	if err := w.KillKarpenter(); err != nil { // it remembers missing capacity for three minutes
		w.t.Fatal(err)
	}
	w.inPhase(slices.Concat(ends, f.replacing, f.steps), v1beta1.PhaseCompleted)
	w.inPhase(f.plans, v1beta1.PhaseCancelled)
	for id, r := range w.mustRecords() {
		if d := r.Status.Drain; d != nil && d.PodCounts.Lost > 0 {
			w.t.Errorf("%s lost pods: %+v", id, d.Pods)
		}
	}
	w.unmarked()
}

// open lets the budget allow disruptions.
func (w *world) open() {
	b := &policyv1.PodDisruptionBudget{}
	if err := w.client.Get(w.t.Context(), types.NamespacedName{Namespace: "default", Name: "held"}, b); err != nil {
		w.t.Fatal(err)
	}
	b.Spec.MaxUnavailable.IntVal = draining
	if err := w.client.Update(w.t.Context(), b); err != nil {
		w.t.Fatal(err)
	}
}

// judge checks that the API server refused no write of Lifeboat, and what Lifeboat promises.
func (w *world) judge() {
	requests, err := w.seen.Requests()
	if err != nil {
		w.t.Fatal(err)
	}
	writes := 0
	for _, r := range requests {
		if !strings.HasPrefix(r.User, "system:serviceaccount:"+chart.Namespace+":") {
			continue
		}
		writes++
		switch r.Code {
		case http.StatusBadRequest, http.StatusForbidden, http.StatusUnprocessableEntity:
			w.t.Errorf("%s %s %s %s was refused: %d %s", r.User, r.Verb, r.Resource, r.Name, r.Code, r.Object)
		}
	}
	history, err := w.seen.History(time.Duration(w.slow * float64(10*time.Second)))
	if err != nil {
		w.t.Fatal(err)
	}
	all, pods, asks, records := history.Size()
	w.t.Logf("FIGURES judged %d writes, %d of Lifeboat: %d pods, %d requests to stop, %d Interruptions", all, writes, pods, asks, records)
	if want := len(w.fleet.twenty()) + reclaimed; records != want || writes == 0 {
		w.t.Errorf("%d Interruptions, want %d", records, want)
	}
	for _, v := range history.Judge() {
		w.t.Errorf("broken promise: %s", v)
	}
}

// mute removes the queue from the rule of spot interruptions. From then on agents report them, and
// later the poll of EC2.
func (w *world) mute() {
	c := eventbridge.NewFromConfig(w.AWSConfig())
	for _, rule := range w.Wiring().Rules {
		if !strings.HasSuffix(rule.Name, "spot-interruption") {
			continue
		}
		targets, err := c.ListTargetsByRule(w.t.Context(), &eventbridge.ListTargetsByRuleInput{Rule: &rule.Name})
		if err != nil {
			w.t.Fatal(err)
		}
		for _, target := range targets.Targets {
			if _, err := c.RemoveTargets(w.t.Context(), &eventbridge.RemoveTargetsInput{Rule: &rule.Name, Ids: []string{*target.Id}}); err != nil {
				w.t.Fatal(err)
			}
		}
		return
	}
	w.t.Fatal("there is no rule of spot interruptions")
}

// reclaim lets EC2 reclaim the node of a step. Its agent must report that, and the controller drain the node.
func (w *world) reclaim(step int) {
	w.t.Helper()
	in := w.fleet.steps[step]
	if err := w.EC2().Interrupt([]string{in.ID}, ec2.InterruptOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.until("the notice by the agent of "+in.PrivateDNSName+", and the drain", 2*time.Minute, func(ctx context.Context) (bool, error) {
		all, err := w.records(ctx)
		if err != nil {
			return false, err
		}
		r := all[in.ID]
		reported := slices.ContainsFunc(r.Spec.Notices, func(n v1beta1.Notice) bool {
			return n.Kind == notice.KindSpotInterruption && n.Source == notice.SourceIMDS
		})
		drained := r.Status.Phase == v1beta1.PhaseDrained || r.Status.Phase == v1beta1.PhaseCompleted
		return reported && drained, fmt.Errorf("reported %t, phase %s", reported, r.Status.Phase)
	})
}

// moved are the instances for which goOn was called n times.
func (w *world) moved(n int) []ec2.Instance {
	f := w.fleet
	return slices.Concat(f.approvals[:n], f.hooks[:n], f.plans[:n])
}

// goOn approves one drain with the CLI of a release, completes one hook, and cancels one plan of AWS.
func (w *world) goOn(i int, r release) {
	w.t.Helper()
	f := w.fleet
	w.run(r.bin, "lifeboat", "approve", f.approvals[i].PrivateDNSName)
	w.completeHook(f.hooks[i])
	if err := w.EC2().EndMaintenance(f.plans[i].ID, f.planned[f.plans[i].ID], false); err != nil {
		w.t.Fatal(err)
	}
	w.inPhase([]ec2.Instance{f.approvals[i], f.hooks[i]}, v1beta1.PhaseDrained)
	w.inPhase([]ec2.Instance{f.plans[i]}, v1beta1.PhaseCancelled)
}

// completeHook lets the pod of a hook's Job complete.
func (w *world) completeHook(in ec2.Instance) {
	w.t.Helper()
	var jobs batchv1.JobList
	err := w.client.List(w.t.Context(), &jobs, client.InNamespace(hookNamespace), client.MatchingLabels{v1beta1.LabelInterruption: in.ID})
	if err != nil || len(jobs.Items) != 1 {
		w.t.Fatalf("%d Jobs of %s (%v), want one", len(jobs.Items), in.ID, err)
	}
	var pods corev1.PodList
	err = w.client.List(w.t.Context(), &pods, client.InNamespace(hookNamespace), client.MatchingLabels{batchv1.JobNameLabel: jobs.Items[0].Name})
	if err != nil || len(pods.Items) != 1 {
		w.t.Fatalf("%d pods of Job %s (%v), want one", len(pods.Items), jobs.Items[0].Name, err)
	}
	w.kubectl("annotate", "-n", hookNamespace, "pod", pods.Items[0].Name, kwok.RunSecondsAnnotation+"=1")
}

// applyManifests applies manifests of users, which name the older version.
func (w *world) applyManifests() {
	w.t.Helper()
	w.kubectl("apply", "-f", root(w.t, "sandbox/e2e/skew/testdata/policies.yaml"))
}

// unmarked checks that nothing of Lifeboat is left on a node that lives.
func (w *world) unmarked() {
	w.t.Helper()
	w.until("nodes to be as they were", time.Minute, func(ctx context.Context) (bool, error) {
		var nodes corev1.NodeList
		if err := w.client.List(ctx, &nodes); err != nil {
			return false, err
		}
		var errs []error
		for _, n := range nodes.Items {
			errs = append(errs, marks(&n)...)
		}
		return len(errs) == 0, errors.Join(errs...)
	})
}

// marks are the marks of Lifeboat on a node.
func marks(n *corev1.Node) (found []error) {
	if n.Spec.Unschedulable {
		found = append(found, fmt.Errorf("%s is cordoned", n.Name))
	}
	for _, taint := range n.Spec.Taints {
		if strings.HasPrefix(taint.Key, "lifeboat.dev/") {
			found = append(found, fmt.Errorf("%s has the taint %s", n.Name, taint.Key))
		}
	}
	for _, all := range []map[string]string{n.Labels, n.Annotations} {
		for key := range all {
			if strings.HasPrefix(key, "lifeboat.dev/") || key == v1beta1.LabelExcludeBalancers {
				found = append(found, fmt.Errorf("%s has %s", n.Name, key))
			}
		}
	}
	return found
}
