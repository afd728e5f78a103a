//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
	"github.com/lifeboat-dev/lifeboat/sandbox/machines"
	"github.com/lifeboat-dev/lifeboat/sandbox/scrape"
)

// incident is a fault, and what the person on call must find.
type incident struct {
	name, alert string
	// cause are words that the output of one command of the alert's runbook contains.
	cause []string
}

// rehearsal is a cluster with five faults at the same time, each on a node of its own.
type rehearsal struct {
	*patient

	lost, mute, pool, search, payments ec2.Instance
}

// TestIncidentRehearsal goes the way of the person on call: from the alert to its runbook, and
// through the commands of its section Diagnosis to the cause, without code. The alerts are those of
// Prometheus over what lifeboatd and the agents really export.
func TestIncidentRehearsal(t *testing.T) {
	t.Parallel()
	r := newRehearsal(t)
	recorder := scrape.Start(t.Context(), r.Sandbox)
	r.breakAll()
	recorder.Rounds(t.Context(), 3)
	fires := r.evaluate(recorder.Stop(), 5*time.Hour).Firing
	for _, i := range []incident{
		{"rule misspelt", "LifeboatWiringDegraded", []string{"rule " + r.spotRule(), "EC2 Spot Interruption Warning", "EC2 Spot Instance Interruption Warning"}},
		{"agent dead", "LifeboatAgentsDown", []string{"agent", r.mute.PrivateDNSName, "not Ready"}},
		{"no capacity", "LifeboatReplacementStuck", []string{r.pool.PrivateDNSName, "replacement", "capacity"}},
		{"hook hangs", "LifeboatHookHangs", []string{r.search.PrivateDNSName, "hook flush runs"}},
		{"approval forgotten", "LifeboatApprovalForgotten", []string{r.payments.PrivateDNSName, "waits for an approval", "lifeboat approve " + r.payments.PrivateDNSName}},
	} {
		t.Run(i.name, func(t *testing.T) {
			if _, ok := fires[i.alert]; !ok {
				t.Errorf("the alert %s does not fire; those that do: %v", i.alert, fires)
			}
			delete(fires, i.alert)
			(&rehearsal{patient: r.of(t), lost: r.lost, mute: r.mute, pool: r.pool, search: r.search, payments: r.payments}).diagnose(i)
		})
	}
	if len(fires) > 0 {
		t.Errorf("alerts fire for no fault: %v", slices.Sorted(maps.Keys(fires)))
	}
}

func newRehearsal(t *testing.T) *rehearsal {
	t.Helper()
	r := &rehearsal{patient: newPatient(t, sandbox.Options{Karpenter: true})}
	if err := r.StartLifeboat(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.must(r.StartAgents())
	r.provision()
	r.lost, r.mute = r.EC2().Instances()[0], r.EC2().Instances()[1]
	labelled := func(team string) ec2.Instance {
		return r.launchAll(ec2.LaunchInput{ImageID: "ami-0123456789abcdef0", Type: "m5.large", Min: 1, Max: 1, Tags: map[string]string{machines.TagNodeLabels: "team=" + team}})[0]
	}
	r.search, r.payments = labelled("search"), labelled("payments")
	for _, spec := range []string{
		"{name: payments}\nspec: {nodes: {matchLabels: {team: payments}}, rules: [{kinds: ['*'], action: Drain, approval: Required}]}",
		"{name: capacity-first}\nspec: {nodes: {nodePools: [default]}, rules: [{kinds: ['*'], action: Drain, replacement: Before}]}",
		"{name: search}\nspec: {nodes: {matchLabels: {team: search}}, rules: [{kinds: ['*'], action: Drain}], hooks: [{name: flush, when: BeforeDrain, timeout: 12h, " +
			"job: {namespace: node-hooks, template: {spec: {template: {spec: {restartPolicy: Never, nodeSelector: {team: payments}, containers: [{name: flush, image: flush}]}}}}}}]}",
	} {
		r.apply(object(t, []byte("apiVersion: lifeboat.dev/v1beta1\nkind: InterruptionPolicy\nmetadata: "+spec)))
	}
	r.runWith("team", "search") // without a pod that must leave, no hook runs
	r.agentsUp()
	return r
}

// provision lets Karpenter launch a node for a workload.
func (r *rehearsal) provision() {
	r.t.Helper()
	r.applyPool()
	r.runWith("karpenter.sh/nodepool", "default")
	for _, in := range r.EC2().Instances() {
		if in.Tags["karpenter.sh/nodepool"] != "" {
			r.pool = in
		}
	}
	r.until("the node to be initialised", time.Minute, func(ctx context.Context) (bool, error) { return r.initialised(ctx, r.pool) })
}

// runWith runs a pod on the nodes with a label.
func (r *rehearsal) runWith(key, value string) {
	r.t.Helper()
	d := deployment(value, 1, 0)
	d.Spec.Template.Spec.NodeSelector = map[string]string{key: value}
	d.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	r.apply(d)
	r.untilRunning(value, 1)
}

// breakAll injects the five faults, and waits until Lifeboat has noticed them.
func (r *rehearsal) breakAll() {
	r.t.Helper()
	pattern, name := `{"source":["aws.ec2"],"detail-type":["EC2 Spot Interruption Warning"]}`, r.spotRule()
	_, err := r.events.PutRule(r.t.Context(), &eventbridge.PutRuleInput{Name: &name, EventPattern: &pattern})
	r.must(err)
	r.reclaim(r.lost)
	r.stopAgent(r.mute)
	r.EC2().SetCapacity(ec2.Offering{}, 0)
	for _, in := range []ec2.Instance{r.pool, r.search, r.payments} {
		r.lifeboat("drain", in.PrivateDNSName, "--note", "rehearsal")
	}
	r.reaches(r.payments.ID, v1beta1.PhaseAwaitingApproval, 30*time.Second)
	r.untilDrain(r.search, "its hook to run", func(d v1beta1.DrainStatus) bool {
		return len(d.Hooks) == 1 && d.Hooks[0].State == v1beta1.HookRunning
	})
	r.untilDrain(r.pool, "its replacement to find no capacity", func(d v1beta1.DrainStatus) bool {
		return d.Replacement != nil && strings.Contains(d.Replacement.Message, "capacity")
	})
	r.checkWiringDegraded(r.lost.ID, []string{"EC2 Spot Interruption Warning"})
}

// untilDrain waits for a state of a drain.
func (r *rehearsal) untilDrain(in ec2.Instance, what string, holds func(v1beta1.DrainStatus) bool) {
	r.t.Helper()
	r.until(what, time.Minute, func(ctx context.Context) (bool, error) {
		record, err := r.record(ctx, in.ID)
		if err != nil || record == nil {
			return false, err
		}
		return holds(drainOf(record)), fmt.Errorf("%+v", drainOf(record))
	})
}

// stopAgent lets the agent of a node hang. Its pod says what a kubelet would say.
func (r *rehearsal) stopAgent(in ec2.Instance) {
	r.t.Helper()
	for _, part := range r.State().Parts {
		if part.Name == "agent-"+in.PrivateDNSName {
			r.must(syscall.Kill(part.PID, syscall.SIGSTOP))
			r.t.Cleanup(func() { _ = syscall.Kill(part.PID, syscall.SIGCONT) })
		}
	}
	var pods corev1.PodList
	r.must(r.client.List(r.t.Context(), &pods, client.InNamespace(chart.Namespace), client.MatchingLabels{"app.kubernetes.io/component": "agent"}))
	for _, pod := range pods.Items {
		if pod.Spec.NodeName != in.PrivateDNSName {
			continue
		}
		for i := range pod.Status.Conditions {
			if pod.Status.Conditions[i].Type == corev1.PodReady {
				pod.Status.Conditions[i].Status = corev1.ConditionFalse
			}
		}
		pod.Status.ContainerStatuses[0].Ready = false
		r.must(r.client.Status().Update(r.t.Context(), &pod))
		return
	}
	r.t.Fatalf("there is no agent's pod on %s", in.PrivateDNSName)
}

// diagnose runs the commands of the runbook until one names the cause.
func (r *rehearsal) diagnose(i incident) {
	r.t.Helper()
	var outputs []string
	for _, command := range diagnosis(r.t, i.alert) {
		out := r.onCall(command)
		if !slices.ContainsFunc(i.cause, func(word string) bool { return !strings.Contains(out, word) }) {
			r.t.Logf("%s leads to the cause by: %s", i.alert, command)
			return
		}
		outputs = append(outputs, "$ "+command+"\n"+out)
	}
	r.t.Errorf("no command of the runbook says %q:\n%s", i.cause, strings.Join(outputs, "\n"))
}

var diagnosisBlock = regexp.MustCompile("(?s)\n## Diagnosis\n.*?```sh\n(.*?)```")

// diagnosis are the commands of the section Diagnosis of a runbook.
func diagnosis(t *testing.T, alert string) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "runbooks", alert+".md"))
	if err != nil {
		t.Fatal(err)
	}
	block := diagnosisBlock.FindSubmatch(page)
	if block == nil {
		t.Fatalf("the runbook of %s has no commands", alert)
	}
	return strings.Split(strings.TrimSpace(string(block[1])), "\n")
}

// onCall runs a command of a runbook. Where it names a NODE, the person tries all nodes with an
// interruption. lifeboatd and its agents are no pods here, so their logs are files.
func (r *rehearsal) onCall(command string) string {
	r.t.Helper()
	switch {
	case strings.Contains(command, " logs "):
		log, err := os.ReadFile(r.LifeboatLog())
		r.must(err)
		return string(tail(log, 10000))
	case strings.Contains(command, "NODE"):
		var out strings.Builder
		for _, in := range []ec2.Instance{r.lost, r.pool, r.search, r.payments} {
			out.WriteString(r.output(strings.ReplaceAll(command, "NODE", in.PrivateDNSName)))
		}
		return out.String()
	default:
		return r.output(command)
	}
}

// output runs a command, and returns what it writes. The exit code of doctor and status says that
// something is wrong, which is so.
func (r *rehearsal) output(command string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "sh", "-c", command)
	cmd.Dir, cmd.Env = filepath.Join("..", ".."), r.env
	out, err := cmd.CombinedOutput()
	r.t.Logf("$ %s\n%s", command, out)
	if cmd.ProcessState == nil {
		r.t.Fatal(err)
	}
	return string(out)
}
