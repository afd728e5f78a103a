//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/karpenter"
)

// olderKarpenter is an environment variable that adds an older Karpenter version to the test.
// Building it takes some minutes once; CI sets the variable.
const olderKarpenter = "LIFEBOAT_OLDER_KARPENTER"

// TestKarpenterScalesUpAndDown runs unmodified Karpenter from the first pending pod to the last
// empty node, and kills it during both.
func TestKarpenterScalesUpAndDown(t *testing.T) {
	versions := map[string]sandbox.Options{"current": {}}
	if os.Getenv(olderKarpenter) != "" {
		versions["older"] = sandbox.Options{OlderKarpenter: true}
	}
	for name, o := range versions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newKarpenterRig(t, o).scaleUpAndDown()
		})
	}
}

func (r *rig) scaleUpAndDown() {
	t := r.t
	web := deployment("web", 2, 0)
	web.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	r.apply(web)
	r.until("Karpenter to launch something", time.Minute, func(context.Context) (bool, error) { return len(r.EC2().Instances()) > 0, nil })
	if err := r.KillKarpenter(); err != nil {
		t.Fatal(err)
	}
	r.untilRunning("web", 2)

	// Karpenter may not know an instance that it launched at the moment of the kill. That instance
	// stays idle until Karpenter's garbage collection finds it.
	var up []ec2.Instance
	for _, in := range r.EC2().Instances() {
		if in.Powered && len(r.podsOn(in)) > 0 {
			up = append(up, in)
		}
	}
	if len(up) == 0 {
		t.Fatal("the running pods are on no instance")
	}
	for _, in := range up {
		r.until("node "+in.PrivateDNSName+" to be initialised", time.Minute, func(ctx context.Context) (bool, error) { return r.initialised(ctx, in) })
		if in.Tags["karpenter.sh/nodepool"] != "default" || in.Lifecycle() != "spot" {
			t.Errorf("instance %s is %s, tagged %v: want Karpenter's spot", in.ID, in.Lifecycle(), in.Tags)
		}
	}

	r.scale("web", 0)
	r.until("Karpenter to let a node go", 2*time.Minute, func(ctx context.Context) (bool, error) {
		for _, claim := range r.list(ctx, "NodeClaim") {
			if claim.GetDeletionTimestamp() != nil {
				return true, nil
			}
		}
		return false, nil
	})
	if err := r.KillKarpenter(); err != nil {
		t.Fatal(err)
	}
	r.until("nothing to be left", 2*time.Minute, func(ctx context.Context) (bool, error) {
		var nodes corev1.NodeList
		if err := r.client.List(ctx, &nodes); err != nil {
			return false, err
		}
		running := 0
		for _, in := range r.EC2().Instances() {
			if in.State != ec2.Terminated {
				running++
			}
		}
		claims := len(r.list(ctx, "NodeClaim"))
		return claims+len(nodes.Items)+running == 0, fmt.Errorf("%d NodeClaims, %d Nodes, %d instances", claims, len(nodes.Items), running)
	})
}

// TestKarpenterHandlesInterruptionAlone runs Karpenter without Lifeboat: it receives the notice
// from its own queue and evicts at once.
func TestKarpenterHandlesInterruptionAlone(t *testing.T) {
	t.Parallel()
	r := newKarpenterRig(t, sandbox.Options{NoLifeboat: true, KarpenterQueue: "karpenter", KarpenterOwnQueue: true})
	r.apply(deployment("web", 1, 0))
	r.untilRunning("web", 1)
	interrupted := r.EC2().Instances()[0]
	r.until("the node to be initialised", time.Minute, func(ctx context.Context) (bool, error) { return r.initialised(ctx, interrupted) })
	if err := r.EC2().Interrupt([]string{interrupted.ID}, ec2.InterruptOptions{}); err != nil {
		t.Fatal(err)
	}
	r.until("the pod to be gone from the interrupted node, long before its end", 30*time.Second, func(context.Context) (bool, error) {
		return len(r.podsOn(interrupted)) == 0, nil
	})
	r.untilRunning("web", 1)
	r.until("the interrupted instance to be terminated by Karpenter", time.Minute, func(context.Context) (bool, error) {
		for _, in := range r.EC2().Instances() {
			if in.ID == interrupted.ID && in.State != ec2.Terminated {
				return false, fmt.Errorf("state %s", in.State)
			}
		}
		return true, nil
	})
	if st := r.State(); st.KarpenterQueueURL == "" || st.KarpenterQueueURL == st.QueueURL {
		t.Errorf("Karpenter's queue is %q, Lifeboat's %q", st.KarpenterQueueURL, st.QueueURL)
	}
}

// newKarpenterRig is a rig with Karpenter and a Ready NodeClass and NodePool. Karpenter removes
// empty nodes after one second.
func newKarpenterRig(t *testing.T, o sandbox.Options) *rig {
	t.Helper()
	o.Karpenter = true
	r := newRigWith(t, o)
	t.Cleanup(func() {
		r.checkRights()
		if t.Failed() {
			log, _ := os.ReadFile(r.KarpenterLog())
			t.Logf("Karpenter's log ends:\n%s", tail(log, 12000))
		}
	})
	r.applyPool()
	return r
}

// applyPool creates a NodePool from which Karpenter launches nodes.
func (r *rig) applyPool() {
	r.t.Helper()
	nodeClass, nodePool, err := karpenter.Defaults(time.Second)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, obj := range []*unstructured.Unstructured{nodeClass, nodePool} {
		r.apply(obj)
		r.until(obj.GetKind()+" to be Ready", time.Minute, func(ctx context.Context) (bool, error) {
			if err := r.client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
				return false, err
			}
			conditions, _, err := unstructured.NestedSlice(obj.Object, "status", "conditions")
			for _, c := range conditions {
				if m, _ := c.(map[string]any); m["type"] == "Ready" && m["status"] == "True" {
					return true, nil
				}
			}
			return false, fmt.Errorf("conditions %v (%w)", conditions, err)
		})
	}
}

// list returns Karpenter's objects of a kind.
func (r *rig) list(ctx context.Context, kind string) []unstructured.Unstructured {
	r.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("karpenter.sh/v1")
	list.SetKind(kind + "List")
	if err := r.client.List(ctx, list); err != nil && ctx.Err() == nil {
		r.t.Fatal(err)
	}
	return list.Items
}

// initialised reports whether Karpenter has initialised an instance's node, and checks the node
// against its NodePool.
func (r *rig) initialised(ctx context.Context, in ec2.Instance) (bool, error) {
	node, err := r.node(ctx, in)
	if err != nil || node.Labels["karpenter.sh/initialized"] != "true" {
		return false, err
	}
	if node.Labels["eks-immersion-team"] != "my-team" || node.Labels["node.kubernetes.io/instance-type"] != in.Type || len(node.Spec.Taints) > 0 {
		r.t.Errorf("node %s has labels %v and taints %v", node.Name, node.Labels, node.Spec.Taints)
	}
	return true, nil
}

// untilRunning waits until n pods of a Deployment run.
func (r *rig) untilRunning(app string, n int) {
	r.t.Helper()
	r.until(fmt.Sprintf("%d pods of %s to run", n, app), 2*time.Minute, func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		if err := r.client.List(ctx, &pods, client.InNamespace("default"), client.MatchingLabels{"app": app}); err != nil {
			return false, err
		}
		running := 0
		for _, p := range pods.Items {
			if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
				running++
			}
		}
		return running == n, fmt.Errorf("%d run", running)
	})
}

// scale sets the replicas of a Deployment.
func (r *rig) scale(name string, replicas int) {
	r.t.Helper()
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	if err := r.client.Patch(r.t.Context(), d, patch); err != nil {
		r.t.Fatal(err)
	}
}
