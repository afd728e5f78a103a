//go:build e2e

package install

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
	"github.com/lifeboat-dev/lifeboat/sandbox/instances"
	"github.com/lifeboat-dev/lifeboat/sandbox/machines"
)

// workerPool are nodes without controllers.
const workerPool = "worker"

// boot launches a spot instance, whose node is in a pool if that is not empty.
func (w *world) boot(name, pool string) ec2.Instance {
	w.t.Helper()
	tags := map[string]string{"Name": name}
	if pool != "" {
		tags[machines.TagNodeLabels], tags[machines.TagNodeTaints] = "pool="+pool, "pool="+pool+":NoSchedule"
	}
	in, err := w.EC2().Launch(ec2.LaunchInput{
		ImageID: "ami-0123456789abcdef0", Type: "m5.large", Min: 1, Max: 1, Spot: &ec2.SpotOptions{}, Tags: tags,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.instances[name] = in[0]
	return in[0]
}

// writeValues writes a user's values file.
func (w *world) writeValues(name string) {
	w.t.Helper()
	st := w.State()
	values := map[string]any{
		"image": map[string]any{"repository": instances.Registry + "/lifeboatd"},
		"aws":   map[string]any{"queueURL": st.QueueURL, "account": st.Account, "region": st.Region, "clusterName": "sandbox"},
		"controller": map[string]any{"extraEnv": []any{
			map[string]any{"name": "AWS_ENDPOINT_URL", "value": w.PodAWSEndpoint()},
			map[string]any{"name": "AWS_ACCESS_KEY_ID", "value": st.AccessKeyID},
			map[string]any{"name": "AWS_SECRET_ACCESS_KEY", "value": st.SecretAccessKey},
		}},
	}
	text, err := yaml.Marshal(values)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, name), text, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// until waits at most two minutes; on a quiet machine each wait takes seconds.
func (w *world) until(what string, ok func(context.Context) (bool, error)) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	for {
		done, err := ok(ctx)
		if done {
			return
		}
		if ctx.Err() != nil {
			w.t.Fatalf("waited too long for %s; last: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// waitReady waits until the nodes of these instances are Ready, and pods can be scheduled to them.
func (w *world) waitReady(names ...string) {
	w.t.Helper()
	for _, name := range names {
		node := &corev1.Node{}
		w.until("node "+name+" to be Ready", func(ctx context.Context) (bool, error) {
			if err := w.client.Get(ctx, types.NamespacedName{Name: w.instances[name].PrivateDNSName}, node); err != nil {
				return false, err
			}
			ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
			})
			tainted := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady })
			return ready && !tainted, fmt.Errorf("its conditions are %+v, its taints %+v", node.Status.Conditions, node.Spec.Taints)
		})
	}
}

// pods are the pods of a part of the chart.
func (w *world) pods(part string) []corev1.Pod {
	w.t.Helper()
	var list corev1.PodList
	err := w.client.List(w.t.Context(), &list, client.InNamespace(chart.Namespace), client.MatchingLabels{"app.kubernetes.io/component": part})
	if err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

func isReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// placed describes where pods are.
func placed(pods []corev1.Pod) string {
	var all []string
	for i := range pods {
		p := &pods[i]
		all = append(all, fmt.Sprintf("%s on %s (%s, Ready: %t)", p.Name, p.Spec.NodeName, p.Status.Phase, isReady(p)))
	}
	return strings.Join(all, ", ")
}

// leader returns the holder of the controllers' lease; empty if there is none.
func (w *world) leader() string {
	w.t.Helper()
	_, holder, err := w.lease(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return holder
}

func (w *world) lease(ctx context.Context) (lease *coordinationv1.Lease, holder string, err error) {
	lease = &coordinationv1.Lease{}
	err = w.client.Get(ctx, types.NamespacedName{Namespace: chart.Namespace, Name: chart.ControllerAccount}, lease)
	if lease.Spec.HolderIdentity != nil {
		holder = *lease.Spec.HolderIdentity
	}
	return lease, holder, err
}

// explain logs what an operator would look at after a failure.
func (w *world) explain() {
	for _, args := range []string{
		"get nodes,pods --all-namespaces -o wide",
		"get events -n lifeboat-system --sort-by=.lastTimestamp",
		"get interruptions -o yaml",
		"logs -n lifeboat-system -l app.kubernetes.io/component=controller --tail=40 --prefix",
		"logs -n lifeboat-system -l app.kubernetes.io/component=agent --tail=10 --prefix",
	} {
		out, err := w.try("kubectl", strings.Fields(args)...)
		w.t.Logf("kubectl %s: %v\n%s", args, err, out)
	}
}
