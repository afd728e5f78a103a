//go:build skew

package skew

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
	"github.com/lifeboat-dev/lifeboat/sandbox/process"
)

func (r release) lifeboatd() string { return filepath.Join(r.bin, "lifeboatd") }

// values are those of a user, except that no node accepts the pods: controllers and agents run as
// processes.
func (w *world) values() string {
	nowhere := map[string]any{"nodeSelector": map[string]any{"nowhere": "true"}}
	st := w.State()
	return w.file("values.json", map[string]any{
		"image": map[string]any{"repository": "lifeboatd"},
		"aws":   map[string]any{"queueURL": st.QueueURL, "account": st.Account, "region": st.Region},
		"hooks": map[string]any{"namespaces": []any{hookNamespace}},
		"agent": nowhere, "controller": nowhere,
	})
}

const hookNamespace = "node-hooks"

func (w *world) install() {
	hooks := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hookNamespace}}
	if err := w.client.Create(w.t.Context(), hooks); err != nil {
		w.t.Fatal(err)
	}
	w.helm("install", chart.Release, w.older.chart, "--namespace", chart.Namespace, "--create-namespace", "--values", w.values())
	w.replaceController(w.older)
	w.replaceAgents(w.older)
}

// applyCRDs does what the guide says about an upgrade.
func (w *world) applyCRDs(r release) {
	w.kubectl("apply", "--server-side", "--force-conflicts", "-f", r.crds())
	w.kubectl("wait", "--for=condition=Established", "-f", r.crds())
}

// replaceController does what a Deployment does: the next process starts and becomes ready, then the
// previous one stops.
func (w *world) replaceController(r release) {
	w.t.Helper()
	next := w.startController(r)
	leader := ""
	if w.controller != nil {
		leader = w.leader("")
		if err := w.controller.Stop(); err != nil {
			w.t.Fatal(err)
		}
	}
	w.controller = next
	w.t.Logf("the controller is %s: %s leads", r.name, w.leader(leader))
}

// startController starts a controller with the arguments of the Deployment in the cluster.
func (w *world) startController(r release) *process.Process {
	w.t.Helper()
	ctx := w.t.Context()
	d := &appsv1.Deployment{}
	if err := w.client.Get(ctx, types.NamespacedName{Namespace: chart.Namespace, Name: chart.ControllerAccount}, d); err != nil {
		w.t.Fatal(err)
	}
	kubeconfig, err := w.ControllerKubeconfig(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	health, err := process.FreeAddress()
	if err != nil {
		w.t.Fatal(err)
	}
	env := append(os.Environ(), "AWS_EC2_METADATA_DISABLED=true")
	for _, v := range w.State().Env() {
		env = append(env, v.Name+"="+v.Value)
	}
	log := filepath.Join(w.dir, fmt.Sprintf("controller-%d-%s.log", len(w.logs), r.name))
	w.logs = append(w.logs, log)
	p, err := process.Start(ctx, process.Options{
		Name: "the controller of the " + r.name + " release", Path: r.lifeboatd(), LogFile: log, Env: env,
		// If a flag is repeated, the last one is used.
		Args: append(d.Spec.Template.Spec.Containers[0].Args,
			"--kubeconfig="+kubeconfig, "--health-probe-bind-address="+health, "--metrics-bind-address=0"),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.until("the controller to be ready", 30*time.Second, func(ctx context.Context) (bool, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+health+"/readyz", http.NoBody)
		if err != nil {
			return false, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false, err
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK, errors.Join(fmt.Errorf("it answers %s", resp.Status), p.Err())
	})
	return p
}

// leader waits until a controller other than not holds the lease, and returns its identity.
func (w *world) leader(not string) string {
	w.t.Helper()
	var holder string
	w.until("a leader", time.Minute, func(ctx context.Context) (bool, error) {
		lease := &coordinationv1.Lease{}
		if err := w.client.Get(ctx, types.NamespacedName{Namespace: chart.Namespace, Name: chart.ControllerAccount}, lease); err != nil {
			return false, err
		}
		if lease.Spec.HolderIdentity != nil {
			holder = *lease.Spec.HolderIdentity
		}
		return holder != "" && holder != not, fmt.Errorf("the holder is %q", holder)
	})
	return holder
}

// replaceAgents starts the agents of a release on all nodes, instead of those that run.
func (w *world) replaceAgents(r release) {
	w.t.Helper()
	if err := w.StopAgents(); err != nil {
		w.t.Fatal(err)
	}
	w.UseLifeboatd(r.lifeboatd())
	if err := w.StartAgents(); err != nil {
		w.t.Fatal(err)
	}
	w.agentsRun(r)
}

// agentsRun waits until every node has an agent of a release.
func (w *world) agentsRun(r release) {
	w.t.Helper()
	w.until("the agents of the "+r.name+" release", 2*time.Minute, func(ctx context.Context) (bool, error) {
		var nodes corev1.NodeList
		if err := w.client.List(ctx, &nodes); err != nil {
			return false, err
		}
		agents := map[string]string{}
		for _, part := range w.State().Parts {
			if node, ok := strings.CutPrefix(part.Name, "agent-"); ok {
				agents[node], _ = os.Readlink(fmt.Sprintf("/proc/%d/exe", part.PID)) // none: it has ended
			}
		}
		for _, node := range nodes.Items {
			if agents[node.Name] != r.lifeboatd() {
				return false, fmt.Errorf("the agent of %s is %q", node.Name, agents[node.Name])
			}
		}
		return true, nil
	})
}
