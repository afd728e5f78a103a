//go:build e2e

package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
	"github.com/lifeboat-dev/lifeboat/sandbox/instances"
)

// The steps need each other, in this order.
func TestInstallation(t *testing.T) {
	w := newWorld(t)
	for _, step := range []struct {
		name string
		run  func(*world)
	}{
		{"Install", (*world).install},
		{"HelmTest", (*world).helmTest},
		{"LateNodeGetsAgent", (*world).lateNode},
		{"WorkerIsReclaimed", (*world).reclaimWorker},
		{"LeaderIsReclaimed", (*world).reclaimLeader},
		{"ControllerNodesAreDrained", (*world).drainControllers},
		{"Guide", (*world).guide},
		{"WebIdentityIsRenewed", func(w *world) { w.identity.renewed(irsaAudience) }},
		{"Upgrade", (*world).upgrade},
		{"PodIdentityIsRenewed", func(w *world) { w.identity.renewed(podIdentityAudience) }},
		{"Rollback", (*world).rollback},
		{"Uninstall", (*world).uninstall},
	} {
		passed := t.Run(step.name, func(t *testing.T) {
			w.t = t
			began := time.Now()
			step.run(w)
			t.Logf("FIGURES %s: %.1f s", step.name, time.Since(began).Seconds())
		})
		w.t = t
		if !passed {
			w.explain()
			t.FailNow()
		}
	}
}

// install installs the chart as users do.
func (w *world) install() {
	for _, name := range []string{"c1", "c2"} {
		w.boot(name, "")
	}
	w.boot("w1", workerPool)
	w.waitReady("c1", "c2", "w1")
	w.writeValues()
	w.helm("install", chart.Release, "oci://"+w.registry+"/charts/lifeboat", "--version", "0.1.0", "--plain-http",
		"--namespace", chart.Namespace, "--create-namespace", "--values", irsaValues, "--wait", "--timeout", "5m")

	controllers := w.pods("controller")
	if len(controllers) != 2 || controllers[0].Spec.NodeName == controllers[1].Spec.NodeName {
		w.t.Errorf("want two controllers on two nodes, got %s", placed(controllers))
	}
	agents := w.pods("agent")
	if len(agents) != 3 {
		w.t.Errorf("want an agent on each of three nodes, got %s", placed(agents))
	}
	for _, p := range append(controllers, agents...) {
		if err := w.checkPod(&p); err != nil {
			w.t.Errorf("%s: %v", p.Name, err)
		}
	}
	if !strings.HasPrefix(w.leader(), controllers[0].Name) && !strings.HasPrefix(w.leader(), controllers[1].Name) {
		w.t.Errorf("the lease is held by %q, want one of %s", w.leader(), placed(controllers))
	}
	w.checkAdmission()
	w.checkFlows()
}

// checkPod checks that a pod is Ready, never restarted, and has the image and identity that the
// chart is to give it.
func (w *world) checkPod(p *corev1.Pod) error {
	var errs []error
	if !isReady(p) {
		errs = append(errs, fmt.Errorf("it is not Ready: %+v", p.Status.Conditions))
	}
	for _, c := range p.Status.ContainerStatuses {
		if c.RestartCount > 0 {
			errs = append(errs, fmt.Errorf("its container %s restarted %d times; last: %+v", c.Name, c.RestartCount, c.LastTerminationState.Terminated))
		}
		if want := instances.Registry + "/lifeboatd@" + w.digest; c.ImageID != want {
			errs = append(errs, fmt.Errorf("its image is %s, want %s", c.ImageID, want))
		}
	}
	if *p.Spec.Priority < 2_000_000_000 {
		errs = append(errs, fmt.Errorf("its priority is %d", *p.Spec.Priority))
	}
	if !slices.ContainsFunc(p.Spec.Volumes, projectsToken) {
		errs = append(errs, errors.New("it has no projected token"))
	}
	return errors.Join(errs...)
}

func projectsToken(v corev1.Volume) bool {
	return v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool {
		return s.ServiceAccountToken != nil
	})
}

// checkAdmission checks that the API server understood every expression of the chart's policies. It
// checks the types after it has accepted a policy.
func (w *world) checkAdmission() {
	var policies admissionv1.ValidatingAdmissionPolicyList
	w.until("policies to be type-checked", func(ctx context.Context) (bool, error) {
		if err := w.client.List(ctx, &policies); err != nil {
			return false, err
		}
		for i := range policies.Items {
			if p := &policies.Items[i]; p.Status.ObservedGeneration != p.Generation {
				return false, fmt.Errorf("%s is not", p.Name)
			}
		}
		return len(policies.Items) > 0, errors.New("there is none")
	})
	for i := range policies.Items {
		p := &policies.Items[i]
		if p.Status.TypeChecking != nil && len(p.Status.TypeChecking.ExpressionWarnings) > 0 {
			w.t.Errorf("policy %s: %+v", p.Name, p.Status.TypeChecking.ExpressionWarnings)
		}
	}
}

func (w *world) checkFlows() {
	var flows flowcontrolv1.FlowSchemaList
	if err := w.client.List(w.t.Context(), &flows, client.MatchingLabels{"app.kubernetes.io/name": "lifeboat"}); err != nil {
		w.t.Fatal(err)
	}
	if len(flows.Items) == 0 {
		w.t.Error("the release has no FlowSchema")
	}
	for _, f := range flows.Items {
		for _, c := range f.Status.Conditions {
			if c.Type == flowcontrolv1.FlowSchemaConditionDangling && c.Status != flowcontrolv1.ConditionFalse {
				w.t.Errorf("FlowSchema %s: %s", f.Name, c.Message)
			}
		}
	}
}

func (w *world) helmTest() {
	if out := w.helm("test", chart.Release, "--namespace", chart.Namespace, "--timeout", "60s"); !strings.Contains(out, "Succeeded") {
		w.t.Error("the test did not succeed")
	}
}

// lateNode boots a node after the installation. Its agent must become Ready.
func (w *world) lateNode() {
	w.boot("w2", workerPool)
	w.waitReady("w2")
	w.until("the agent of the new node to be Ready", func(ctx context.Context) (bool, error) {
		set := &appsv1.DaemonSet{}
		err := w.client.Get(ctx, types.NamespacedName{Namespace: chart.Namespace, Name: chart.AgentAccount}, set)
		return set.Status.NumberReady == 4, errors.Join(err, fmt.Errorf("%d of %d are", set.Status.NumberReady, set.Status.DesiredNumberScheduled))
	})
}
