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

// The user's values files.
const (
	irsaValues        = "values-irsa.yaml"
	podIdentityValues = "values-pod-identity.yaml"
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

// writeValues writes two values files that differ in how the controller gets credentials. EKS's
// webhook adds these variables and volumes to pods.
func (w *world) writeValues() {
	w.t.Helper()
	const irsaDir, podDir = "/var/run/secrets/eks.amazonaws.com/serviceaccount", "/var/run/secrets/pods.eks.amazonaws.com/serviceaccount"
	for file, controller := range map[string]map[string]any{
		irsaValues: identified(w.PodAWSEndpoint(), irsaAudience, irsaDir, map[string]string{
			"AWS_ROLE_ARN":                fmt.Sprintf("arn:aws:iam::%s:role/%s", w.State().Account, roleName),
			"AWS_WEB_IDENTITY_TOKEN_FILE": irsaDir + "/token",
			"AWS_ENDPOINT_URL_STS":        "http://" + w.PodHost() + ":" + stsPort,
		}),
		podIdentityValues: identified(w.PodAWSEndpoint(), podIdentityAudience, podDir, map[string]string{
			"AWS_CONTAINER_CREDENTIALS_FULL_URI":     "http://" + podIdentityAgent + "/v1/credentials",
			"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": podDir + "/token",
		}),
	} {
		st := w.State()
		text, err := yaml.Marshal(map[string]any{
			"image":      map[string]any{"repository": instances.Registry + "/lifeboatd"},
			"aws":        map[string]any{"queueURL": st.QueueURL, "region": st.Region, "clusterName": w.Wiring().Cluster},
			"controller": controller,
		})
		if err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(w.dir, file), text, 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
}

// identified are values of a controller with a projected token of an audience.
func identified(endpoint, audience, dir string, env map[string]string) map[string]any {
	env["AWS_ENDPOINT_URL"] = endpoint
	var vars []corev1.EnvVar
	for name, value := range env {
		vars = append(vars, corev1.EnvVar{Name: name, Value: value})
	}
	seconds := int64(24 * time.Hour / time.Second)
	return map[string]any{
		"extraEnv": vars,
		"extraVolumes": []corev1.Volume{{Name: "aws-iam-token", VolumeSource: corev1.VolumeSource{
			Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{
				ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: audience, ExpirationSeconds: &seconds, Path: "token"},
			}}},
		}}},
		"extraVolumeMounts": []corev1.VolumeMount{{Name: "aws-iam-token", MountPath: dir, ReadOnly: true}},
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

// pods are the pods of a part of the chart, in all namespaces.
func (w *world) pods(part string) []corev1.Pod {
	w.t.Helper()
	var list corev1.PodList
	err := w.client.List(w.t.Context(), &list, client.MatchingLabels{"app.kubernetes.io/name": "lifeboat", "app.kubernetes.io/component": part})
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
		"logs -n " + agentNamespace + " -l app.kubernetes.io/component=agent --tail=10 --prefix",
	} {
		out, err := w.try("kubectl", strings.Fields(args)...)
		w.t.Logf("kubectl %s: %v\n%s", args, err, out)
	}
}
