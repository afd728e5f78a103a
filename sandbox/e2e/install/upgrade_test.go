//go:build e2e

package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
	"github.com/lifeboat-dev/lifeboat/sandbox/instances"
)

// nextChart is the file of the next release, whose CRD of Interruptions has another column.
const nextChart = "lifeboat-0.2.0.tgz"

// agentNamespace is the namespace of the agents in the next release.
const agentNamespace = "lifeboat-agents"

// packNext makes the next release: the chart with a changed CRD, and the same image by another tag.
func (w *world) packNext() error {
	dir := filepath.Join(w.dir, "next")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "charts/lifeboat"))); err != nil {
		return err
	}
	crd := filepath.Join(dir, "crds/lifeboat.dev_interruptions.yaml")
	text, err := os.ReadFile(crd)
	if err != nil {
		return err
	}
	const columns = "  - additionalPrinterColumns:\n"
	changed := bytes.Replace(text, []byte(columns), []byte(columns+"    - {jsonPath: .metadata.uid, name: Next, type: string, priority: 1}\n"), 1)
	if bytes.Equal(text, changed) {
		return errors.New("the CRD has no columns")
	}
	if err := os.WriteFile(crd, changed, 0o600); err != nil {
		return err
	}
	w.helm("package", dir, "--version", "0.2.0", "--app-version", "0.2.0")
	return w.retag("lifeboatd", "0.1.0", "0.2.0")
}

// retag gives an image of the registry a second tag.
func (w *world) retag(image, from, to string) error {
	url := "http://" + w.registry + "/v2/" + image + "/manifests/"
	get, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, url+from, http.NoBody)
	if err != nil {
		return err
	}
	got, err := http.DefaultClient.Do(get)
	if err != nil {
		return err
	}
	defer got.Body.Close()
	manifest, err := io.ReadAll(got.Body)
	if err != nil {
		return err
	}
	put, err := http.NewRequestWithContext(w.t.Context(), http.MethodPut, url+to, bytes.NewReader(manifest))
	if err != nil {
		return err
	}
	put.Header.Set("Content-Type", got.Header.Get("Content-Type"))
	answer, err := http.DefaultClient.Do(put)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		return fmt.Errorf("tagging %s: %s", to, answer.Status)
	}
	return nil
}

// upgrade upgrades while a node is drained, and gives the agents a namespace of their own. Without
// the new CRDs it must change nothing.
func (w *world) upgrade() {
	if err := w.packNext(); err != nil {
		w.t.Fatal(err)
	}
	upgrade := []string{
		"upgrade", chart.Release, nextChart, "--namespace", chart.Namespace, "--values", podIdentityValues, "--wait", "--timeout", "5m",
		"--set", "agent.namespace=" + agentNamespace,
	}
	out, err := w.try("helm", upgrade...)
	if err == nil || !strings.Contains(out, "helm show crds") {
		w.t.Errorf("an upgrade without the CRDs: %v\n%s", err, out)
	}
	w.runs("0.1.0", chart.Namespace)
	crds, err := w.try("helm", "show", "crds", nextChart)
	if err != nil {
		w.t.Fatal(crds)
	}
	if err := os.WriteFile(filepath.Join(w.dir, "crds.yaml"), []byte(crds), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.kubectl("apply", "--server-side", "--force-conflicts", "-f", "crds.yaml")

	w.boot("w3", workerPool)
	w.waitReady("w3")
	pod := w.running("web", "")
	node := w.instanceOf(pod.Spec.NodeName)
	if err := w.EC2().Interrupt([]string{node.ID}, ec2.InterruptOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.until("the drain to begin", func(context.Context) (bool, error) {
		events, err := w.journal(pod.Name)
		return slices.Contains(events, "hook-begin"), err
	})
	w.kubectl("create", "namespace", agentNamespace)
	w.kubectl("label", "namespace", agentNamespace, "pod-security.kubernetes.io/enforce=privileged")
	w.kubectl("label", "namespace", chart.Namespace, "pod-security.kubernetes.io/enforce=restricted")
	w.helm(upgrade...)
	w.runs("0.2.0", agentNamespace)
	w.until("the drain that began before the upgrade to be complete", func(ctx context.Context) (bool, error) {
		r := &v1beta1.Interruption{}
		err := w.client.Get(ctx, types.NamespacedName{Name: node.ID}, r)
		return r.Status.Phase == v1beta1.PhaseDrained && r.Status.Drain.PodCounts.Lost == 0, errors.Join(err, fmt.Errorf("it is %s", r.Status.Phase))
	})
	w.wholeHook(pod.Name)
}

// rollback moves the agents back, where the Pod Security level must admit them.
func (w *world) rollback() {
	w.kubectl("label", "--overwrite", "namespace", chart.Namespace, "pod-security.kubernetes.io/enforce=privileged")
	w.helm("rollback", chart.Release, "--namespace", chart.Namespace, "--wait", "--timeout", "5m")
	w.runs("0.1.0", chart.Namespace)
}

// runs checks that all pods of the release are Ready and of that version, on nodes that can run
// them, and that the agents are in a namespace.
func (w *world) runs(version, agents string) {
	w.t.Helper()
	image := instances.Registry + "/lifeboatd:" + version
	w.until("all pods to be of "+version, func(context.Context) (bool, error) {
		controllers := w.pods("controller")
		agentPods := slices.DeleteFunc(w.pods("agent"), func(p corev1.Pod) bool {
			return p.Namespace != agents && !p.DeletionTimestamp.IsZero() // of the DaemonSet that Helm deleted
		})
		for _, p := range append(controllers, agentPods...) {
			if p.Spec.Containers[0].Image != image {
				return false, fmt.Errorf("%s has %s", p.Name, p.Spec.Containers[0].Image)
			}
		}
		for _, p := range agentPods {
			if p.Namespace != agents {
				return false, fmt.Errorf("%s is in %s", p.Name, p.Namespace)
			}
		}
		ready := len(slices.DeleteFunc(agentPods, func(p corev1.Pod) bool { return !isReady(&p) }))
		return w.controllersReady("") == 2 && ready > 0, fmt.Errorf("%s; %d agents are Ready", placed(controllers), ready)
	})
}

// uninstall removes the release. The guide lists what remains.
func (w *world) uninstall() {
	w.helm("uninstall", chart.Release, "--namespace", chart.Namespace, "--wait")
	want := []string{
		"apiservice.apiregistration.k8s.io/v1beta1.lifeboat.dev",
		"lease.coordination.k8s.io/lifeboat-controller",
		"lease.coordination.k8s.io/lifeboat-probe",
		"namespace/" + agentNamespace,
		"namespace/lifeboat-system",
	}
	crds, err := filepath.Glob(filepath.Join(root, "charts/lifeboat/crds/*.yaml"))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, file := range crds {
		kind := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "lifeboat.dev_"), ".yaml")
		want = append(want, "customresourcedefinition.apiextensions.k8s.io/"+kind+".lifeboat.dev")
	}
	slices.Sort(want)
	if left := w.left(); !slices.Equal(left, want) {
		w.t.Errorf("uninstall left\n%s\nwant\n%s", strings.Join(left, "\n"), strings.Join(want, "\n"))
	}
}

// left lists what is named after Lifeboat, except the objects of its CRDs, Events, and pods that are
// being deleted: those on a reclaimed node remain until its Node is gone.
func (w *world) left() []string {
	w.t.Helper()
	for _, p := range append(w.pods("controller"), w.pods("agent")...) {
		if p.DeletionTimestamp.IsZero() {
			w.t.Errorf("pod %s is left", p.Name)
		}
	}
	kinds, err := w.try("kubectl", "api-resources", "--verbs=list", "-o", "name")
	if err != nil {
		w.t.Fatal(kinds)
	}
	wanted := slices.DeleteFunc(strings.Fields(kinds), func(kind string) bool {
		return kind == "pods" || strings.HasPrefix(kind, "events") || strings.HasSuffix(kind, ".lifeboat.dev")
	})
	all, err := w.try("kubectl", "get", strings.Join(wanted, ","), "--all-namespaces", "--ignore-not-found", "-o", "name")
	if err != nil {
		w.t.Fatal(all)
	}
	var left []string
	for line := range strings.Lines(all) {
		name := strings.TrimSpace(line)
		if strings.Contains(name, "lifeboat") && !strings.HasPrefix(name, "Warning") {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	return slices.Compact(left)
}
