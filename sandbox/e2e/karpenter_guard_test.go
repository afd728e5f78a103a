//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/health"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/karpenter"
)

// pools are NodePools, and the rule that their policy has; nil: they have no policy.
func pools() map[string]*v1beta1.InterruptionPolicySpec {
	change := func(r v1beta1.Rule) *v1beta1.InterruptionPolicySpec {
		r.Kinds = []string{notice.KindScheduledChange}
		if r.Action == "" {
			r.Action = v1beta1.ActionDrain
		}
		return &v1beta1.InterruptionPolicySpec{Rules: []v1beta1.Rule{r}}
	}
	limited := change(v1beta1.Rule{}) // an hour before the stop, by default
	limited.Budget = &v1beta1.Budget{MaxConcurrent: intstr.FromInt32(1)}
	return map[string]*v1beta1.InterruptionPolicySpec{
		"databases": change(v1beta1.Rule{Approval: v1beta1.ApprovalRequired, NotBefore: &metav1.Duration{Duration: 30 * 24 * time.Hour}}),
		"ledger":    change(v1beta1.Rule{Action: v1beta1.ActionIgnore}),
		"nightly":   change(v1beta1.Rule{Window: &v1beta1.Window{Schedule: "0 2 1 * *", Duration: metav1.Duration{Duration: time.Hour}}}),
		"limited":   limited,
		// A policy that begins at once. do-not-disrupt on the node, or on the pod, still keeps the pod.
		"eager":     change(v1beta1.Rule{NotBefore: &metav1.Duration{Duration: 30 * 24 * time.Hour}}),
		"protected": change(v1beta1.Rule{NotBefore: &metav1.Duration{Duration: 30 * 24 * time.Hour}}),
		"batch":     change(v1beta1.Rule{NotBefore: &metav1.Duration{Duration: 30 * 24 * time.Hour}}),
		"held":      nil,
		"web":       nil,
	}
}

// protect sets do-not-disrupt: on the nodes of the NodePool protected, and on the pods of batch.
func protect(name string, pool *unstructured.Unstructured, app *appsv1.Deployment) error {
	yes := map[string]string{v1beta1.AnnotationKarpenterDoNotDisrupt: "true"}
	switch name {
	case "protected":
		return unstructured.SetNestedStringMap(pool.Object, yes, "spec", "template", "metadata", "annotations")
	case "batch":
		maps.Copy(app.Spec.Template.Annotations, yes)
	}
	return nil
}

// The controllers of Karpenter that delete NodeClaims for interruptions, as its log names them.
const (
	queueReader  = `"controller":"interruption"`
	statusPoller = `"controller":"interruption.instancestatus"`
)

// TestKarpenterGuard runs unmodified Karpenter, which receives AWS Health events from its own queue and
// polls EC2. AWS plans to stop an instance of each NodePool, in twelve days.
func TestKarpenterGuard(t *testing.T) {
	t.Parallel()
	g := newGuardRig(t, pools())
	guarded := []string{"databases", "ledger", "nightly", "limited", "protected"}
	moving := []string{"eager", "batch"} // Lifeboat begins at once
	// Karpenter receives the events first, while lifeboatd is stopped.
	if err := g.StopLifeboat(); err != nil {
		t.Fatal(err)
	}
	g.planStops(slices.Concat(guarded, moving, []string{"web"})...)
	g.waitRefused(queueReader, slices.Concat(guarded, moving)...)
	g.waitDeleted("web") // nothing guards it
	if err := g.StartLifeboat(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.waitRecorded(guarded...)
	g.waitDeleted("eager") // by Lifeboat, once its pod has left
	g.handedOver("eager")

	// Lifeboat receives the event first. Karpenter finds it at its start, when it polls.
	if err := g.StopKarpenter(); err != nil {
		t.Fatal(err)
	}
	g.planStops("held")
	g.waitRecorded("held")
	g.hold("held")
	if err := g.StartKarpenter(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.waitRefused(statusPoller, append(guarded, "held", "batch")...)
	g.waitsForPod("batch")
	for _, pool := range append(guarded, "held") {
		if node, err := g.node(t.Context(), g.instances[pool]); err != nil || node.Spec.Unschedulable || len(node.Spec.Taints) > 0 {
			t.Errorf("the node of %s is touched: %+v, %v", pool, node.Spec, err)
		}
	}

	g.approve("databases") // Lifeboat drains, and hands the node over
	g.waitDeleted("databases")
	g.handedOver("databases")
	g.scale("nightly", 0) // Karpenter removes the empty node
	g.waitDeleted("nightly")
	node, err := g.node(t.Context(), g.instances["held"])
	if err != nil {
		t.Fatal(err)
	}
	if err := g.client.Delete(t.Context(), node); err != nil { // a person deletes the Node
		t.Fatal(err)
	}
	g.waitDeleted("held")

	// The twin: without the guard the node goes.
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "lifeboat-karpenter"}}
	if g.claim(t.Context(), "ledger") == nil {
		t.Fatal("the NodeClaim of ledger is gone before the guard is removed")
	}
	if err := g.client.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	// Its next poll can be minutes away after so many errors.
	if err := errors.Join(g.StopKarpenter(), g.StartKarpenter(t.Context())); err != nil {
		t.Fatal(err)
	}
	g.waitDeleted("ledger")
}

// handedOver waits until an Interruption is completed, and checks that Lifeboat deleted the NodeClaim after the drain.
func (g *guardRig) handedOver(pool string) {
	g.t.Helper()
	in := g.reaches(g.instances[pool].ID, v1beta1.PhaseCompleted, 2*time.Minute)
	if d := in.Status.Drain; d == nil || d.NodeClaimDeletion == nil || d.NodeClaimDeletion.DeletedTime == nil || d.PodCounts.Moved != 1 {
		g.t.Errorf("the drain of %s: %+v", pool, d)
	}
}

// waitsForPod checks that Lifeboat has cordoned a node, and that its pod and its NodeClaim stay.
func (g *guardRig) waitsForPod(pool string) {
	g.t.Helper()
	g.until("the node of "+pool+" to be cordoned", time.Minute, func(ctx context.Context) (bool, error) {
		node, err := g.node(ctx, g.instances[pool])
		return err == nil && node.Spec.Unschedulable, err
	})
	if claim := g.claim(g.t.Context(), pool); claim == nil || claim.GetDeletionTimestamp() != nil {
		g.t.Errorf("the NodeClaim of %s is deleted, although its pod must not be disrupted", pool)
	}
	for _, p := range g.podsOn(g.instances[pool]) {
		if p.Labels["app"] == pool && p.DeletionTimestamp == nil {
			return
		}
	}
	g.t.Errorf("the pod of %s must not be disrupted, and has left", pool)
}

// guardRig is a rig with a node in each of the NodePools.
type guardRig struct {
	*rig
	instances map[string]ec2.Instance // by NodePool
}

func newGuardRig(t *testing.T, pools map[string]*v1beta1.InterruptionPolicySpec) *guardRig {
	t.Helper()
	g := &guardRig{rig: newKarpenterRig(t, sandbox.Options{KarpenterGuard: true, KarpenterQueue: "karpenter", KarpenterOwnQueue: true}), instances: map[string]ec2.Instance{}}
	for name, spec := range pools {
		if spec != nil {
			spec.Nodes.NodePools = []string{name}
			g.apply(&v1beta1.InterruptionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: *spec})
		}
		_, pool, err := karpenter.Defaults(time.Second)
		if err != nil {
			t.Fatal(err)
		}
		pool.SetName(name)
		app := deployment(name, 1, 0)
		if err := protect(name, pool, app); err != nil {
			t.Fatal(err)
		}
		g.apply(pool)
		app.Spec.Template.Spec.NodeSelector = map[string]string{"karpenter.sh/nodepool": name}
		app.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		g.apply(app)
	}
	for name := range pools {
		g.untilRunning(name, 1)
	}
	for _, in := range g.EC2().Instances() {
		g.until("node "+in.PrivateDNSName+" to be initialised", time.Minute, func(ctx context.Context) (bool, error) { return g.initialised(ctx, in) })
		g.instances[in.Tags["karpenter.sh/nodepool"]] = in
	}
	for name, spec := range pools {
		g.until("the guard of "+name, time.Minute, func(ctx context.Context) (bool, error) {
			claim := g.claim(ctx, name)
			return claim != nil && (claim.GetAnnotations()[v1beta1.AnnotationGuardedUntil] != "") == (spec != nil), nil
		})
	}
	return g
}

// claim returns the NodeClaim of the instance of a NodePool; nil if it is gone.
func (g *guardRig) claim(ctx context.Context, pool string) *unstructured.Unstructured {
	g.t.Helper()
	for _, c := range g.list(ctx, "NodeClaim") {
		id, _, _ := unstructured.NestedString(c.Object, "status", "providerID")
		if in := g.instances[pool]; c.GetLabels()["karpenter.sh/nodepool"] == pool && (in.ID == "" || strings.HasSuffix(id, in.ID)) {
			return &c
		}
	}
	return nil
}

// planStops lets AWS plan to stop the instances of NodePools.
func (g *guardRig) planStops(names ...string) {
	g.t.Helper()
	at := time.Now().Add(12 * 24 * time.Hour).Truncate(time.Second)
	for _, pool := range names {
		if _, err := g.AWS().States.Health.Schedule(health.Plan{InstanceIDs: []string{g.instances[pool].ID}, Code: "instance-stop", NotBefore: at, Form: health.Form{BareIDs: true}}); err != nil {
			g.t.Fatal(err)
		}
	}
}

// hold holds the drain of a node, and waits for its guard.
func (g *guardRig) hold(pool string) {
	g.t.Helper()
	now := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
	g.write(pool, fmt.Sprintf(`{"spec":{"hold":{"by":"lifeboat-sandbox-admin","time":%q}}}`, now))
	g.until("the guard of "+pool, time.Minute, func(ctx context.Context) (bool, error) {
		claim := g.claim(ctx, pool)
		return claim != nil && claim.GetAnnotations()[v1beta1.AnnotationGuardedUntil] != "", nil
	})
}

// approve approves what the Interruption waits for.
func (g *guardRig) approve(pool string) {
	g.t.Helper()
	in, err := g.record(g.t.Context(), g.instances[pool].ID)
	if err != nil {
		g.t.Fatal(err)
	}
	d, ok := policy.Decide(policy.Facts{Now: time.Now(), Notices: in.Spec.Notices})
	if !ok {
		g.t.Fatalf("nothing to approve: %+v", in.Spec.Notices)
	}
	now := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
	g.write(pool, fmt.Sprintf(`{"spec":{"approval":{"by":"lifeboat-sandbox-admin","time":%q,"about":%q}}}`, now, d.About))
}

func (g *guardRig) write(pool, patch string) {
	g.t.Helper()
	in := &v1beta1.Interruption{ObjectMeta: metav1.ObjectMeta{Name: g.instances[pool].ID}}
	if err := g.client.Patch(g.t.Context(), in, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		g.t.Fatal(err)
	}
}

// waitRecorded waits until Lifeboat has decided about the events of NodePools.
func (g *guardRig) waitRecorded(names ...string) {
	g.t.Helper()
	for _, pool := range names {
		g.until("Lifeboat to have recorded the event of "+pool, time.Minute, func(ctx context.Context) (bool, error) {
			in, err := g.record(ctx, g.instances[pool].ID)
			return in != nil && in.Status.Phase != "", err
		})
	}
}

// waitRefused waits until a controller of Karpenter has logged the refusal of each of the NodePools.
func (g *guardRig) waitRefused(controller string, names ...string) {
	g.t.Helper()
	for _, pool := range names {
		claim := g.claim(g.t.Context(), pool)
		if claim == nil {
			g.t.Fatalf("the NodeClaim of %s is gone", pool)
		}
		text := `nodeclaims.karpenter.sh \"` + claim.GetName() + `\" is forbidden: ValidatingAdmissionPolicy 'lifeboat-karpenter'`
		g.until("Karpenter to be refused the node of "+pool, 2*time.Minute, func(context.Context) (bool, error) {
			log, err := os.ReadFile(g.KarpenterLog())
			for line := range strings.Lines(string(log)) {
				if strings.Contains(line, controller+",") && strings.Contains(line, text) {
					return true, nil
				}
			}
			return false, err
		})
	}
}

// waitDeleted waits until the NodeClaim of a NodePool is deleted.
func (g *guardRig) waitDeleted(pool string) {
	g.t.Helper()
	g.until("the NodeClaim of "+pool+" to be deleted", 3*time.Minute, func(ctx context.Context) (bool, error) {
		claim := g.claim(ctx, pool)
		return claim == nil || claim.GetDeletionTimestamp() != nil, nil
	})
}
