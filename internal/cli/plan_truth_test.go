package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// words joins the words of an output, whose lines are wrapped.
func words(r result) string { return strings.Join(strings.Fields(r.out), " ") }

// A pod whose grace was cut when it was asked to leave does not get its whole grace.
func TestPlanComparesWithGraceOfSpec(t *testing.T) {
	cut := pod("shop", "slow-0", "slow", "StatefulSet", 7*24*60*60)
	at, grace := metav1.NewTime(clock.Add(90*time.Second)), int64(110)
	cut.DeletionTimestamp, cut.DeletionGracePeriodSeconds, cut.Finalizers = &at, &grace, []string{"example.com/keep"}
	h := &harness{t: t, cluster: fakeCluster(t, interceptor.Funcs{}, append(twoNodes(), cut)...)}
	r := h.run(t.Context(), "plan", nodeName)
	if r.code != ExitDoesNotFit || !strings.Contains(r.out, "1m50s of 168h") && !strings.Contains(r.out, "1m50s of 7d") {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
}

func TestPlanSaysThatNoNoticeReachesNode(t *testing.T) {
	on := func(n *corev1.Node, name string) *corev1.Pod {
		p := pod("shop", name, "web", "ReplicaSet", 15)
		p.Spec.NodeName = n.Name
		return p
	}
	hidden, rack := node("ip-10-0-0-12.ec2.internal", ""), node(onPremNode, "")
	h := &harness{t: t, cluster: fakeCluster(t, interceptor.Funcs{}, hidden, rack, on(hidden, "web-1"), on(rack, "web-2"))}
	r := h.run(t.Context(), "plan", hidden.Name)
	if r.code != ExitDoesNotFit || !strings.Contains(words(r), "no notice can reach this node: it runs on EC2 and has no spec.providerID") || !strings.Contains(words(r), "--provider-id=aws:///ZONE/INSTANCE") {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	if r := h.run(t.Context(), "plan", hidden.Name, "--kind", "scheduled"); r.code != ExitDoesNotFit || !strings.Contains(r.out, "no pod leaves, because no notice reaches the node") {
		t.Errorf("a planned change: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	if r := h.run(t.Context(), "plan", rack.Name); r.code != ExitOK || strings.Contains(r.out, "providerID") {
		t.Errorf("a machine that is not on EC2: exit code %d\n%s%s", r.code, r.out, r.err)
	}
}

// Pods of one workload that leave in the same way share a row with the first and the last time. The last
// one leaves in another way: it is deleted.
func TestPlanGroupsPodsOfWorkload(t *testing.T) {
	objects := twoNodes()
	for i := range 6 {
		p := pod("shop", fmt.Sprintf("web-7d9f-%d", i), "web", "ReplicaSet", 15)
		p.OwnerReferences[0].Name, p.Labels["pod-template-hash"] = "web-7d9f", "7d9f"
		objects = append(objects, p)
	}
	objects = append(objects, budget("shop", "web", 6, 1), pod("shop", "db-0", "db", "StatefulSet", 30))
	h := &harness{t: t, cluster: fakeCluster(t, interceptor.Funcs{}, objects...)}
	r := h.run(t.Context(), "plan", nodeName)
	golden(t, "plan-grouped.golden", r.out)
	if strings.Count(r.out, "shop/web") != 2 || !strings.Contains(r.out, "shop/web (5 pods)") || !strings.Contains(r.out, "shop/db-0") {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	if json := h.run(t.Context(), "plan", nodeName, "-o", "json").out; strings.Count(json, `"workload": "Deployment web"`) != 6 {
		t.Errorf("JSON has not each pod:\n%s", json)
	}
}

// The time of the replacement decides when the pods of a node of Karpenter leave.
func TestPlanShowsReplacement(t *testing.T) {
	h := &harness{t: t, cluster: fakeCluster(t, interceptor.Funcs{}, karpenters()...)}
	r := h.run(t.Context(), "plan", nodeName)
	if !strings.Contains(words(r), "a NodeClaim of NodePool db is ordered when the drain starts; its node is expected Ready 1m later") || !strings.Contains(words(r), "its replacement is not Ready yet") {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	ordered := interruption(spotNotice("n1", 20*time.Second))
	started := metav1.NewMicroTime(clock.Add(-15 * time.Second))
	ordered.Status.Drain = &v1beta1.DrainStatus{Replacement: &v1beta1.ReplacementStatus{
		Phase: v1beta1.ReplacementOrdered, Reason: "Ordered", Name: "db-lb-1", Message: "NodeClaim db-lb-1 is ordered", StartTime: &started,
	}}
	h.cluster = fakeCluster(t, interceptor.Funcs{}, append(karpenters(), client.Object(ordered))...)
	if r := h.run(t.Context(), "plan", nodeName); !strings.Contains(words(r), "NodeClaim db-lb-1 is ordered (Ordered), expected Ready in 45s") {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	h.cluster = fakeCluster(t, interceptor.Funcs{}, mixedNode()...)
	if r := h.run(t.Context(), "plan", nodeName); strings.Contains(r.out, "replaced") {
		t.Errorf("a node that is not Karpenter's:\n%s", r.out)
	}
}
