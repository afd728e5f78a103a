package scenario

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lifeboat-dev/lifeboat/sandbox"
)

// claimOf is a NodeClaim; instance is what was launched for it, if anything.
func claimOf(name, instance string, change func(*unstructured.Unstructured)) *unstructured.Unstructured {
	c := nodeClaim()
	c.SetName(name)
	if instance != "" {
		c.Object["status"] = map[string]any{"providerID": "aws:///us-east-1a/" + instance}
	}
	if change != nil {
		change(c)
	}
	return c
}

func texts(moments []Moment) []string {
	var out []string
	for _, m := range moments {
		out = append(out, m.Node+"|"+m.Text)
	}
	return out
}

func TestKarpenterNodesAreNamedInOrder(t *testing.T) {
	w := NewWorld()
	if ok, why := (somethingLaunched{}).Holds(w); ok || why == "" {
		t.Errorf("something was launched in an empty world: %v, %q", ok, why)
	}
	for _, id := range []string{"i-1", "i-2"} {
		w.Machine(id, false)
		moments := w.Provisioned(at(0), "Karpenter", id, "node-"+id, describeMachine(id, "m5.large", "us-east-1a", "spot"))
		if diff := cmp.Diff([]string{id + "|Karpenter launches " + id + ": spot m5.large in us-east-1a"}, texts(moments)); diff != "" {
			t.Errorf("moments (-want +got):\n%s", diff)
		}
		if again := w.Provisioned(at(1), "Karpenter", id, "node-"+id, ""); again != nil {
			t.Errorf("moments again %v", again)
		}
	}
	check(t, w, "launched=2", true)
	check(t, w, "instances=2", true)
	if a, b, none := w.Name("a"), w.Name("b"), w.Name("c"); a != "i-1" || b != "i-2" || none != "" {
		t.Errorf("a is %q, b %q and c %q", a, b, none)
	}
	w.Machine("i-1", true)
	check(t, w, "instances=1", true)
	check(t, w, "launched<=1", false)
	if moments := w.Node(at(2), upNode("node-i-2"), false); len(moments) != 1 || moments[0].Node != "b" {
		t.Errorf("moments %v, want that b is up", moments)
	}
}

// upNode is a Node that is Ready.
func upNode(name string, taints ...corev1.Taint) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.NodeSpec{Taints: taints},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

func TestKarpenterNodeStates(t *testing.T) {
	w, _ := stage()
	w.Provisioned(at(1), "Karpenter", "i-c", "node-c", "")
	w.Name("c")
	w.Node(at(2), upNode("node-c", corev1.Taint{Key: "karpenter.sh/unregistered", Effect: corev1.TaintEffectNoExecute}), false)
	checkC(t, w, "node c ready", false)
	w.Node(at(3), upNode("node-c"), false)
	checkC(t, w, "node c ready", true)
	checkC(t, w, "node c open", true)
	w.Node(at(4), upNode("node-c", corev1.Taint{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}), false)
	checkC(t, w, "node c cordoned", true)
	checkC(t, w, "node c open", false)
}

// checkC is check in a world with a node c of Karpenter's.
func checkC(t *testing.T, w *World, text string, want bool) {
	t.Helper()
	checkWith(t, w, &parser{nodes: map[string]bool{"a": true, "c": true}, karpenter: true}, text, want)
}

func TestProtectionIsReadFromNodeAndNodeClaim(t *testing.T) {
	w, _ := stage()
	w.Provisioned(at(1), "Karpenter", "i-c", "node-c", "")
	w.Name("c")
	protect := func(o metav1.Object) { o.SetAnnotations(map[string]string{"karpenter.sh/do-not-disrupt": "true"}) }
	checkC(t, w, "node c unprotected", false) // it is not there yet
	made := w.Claim(at(1), claimOf("c", "", func(c *unstructured.Unstructured) {
		c.SetLabels(map[string]string{"lifeboat.dev/replaces-instance": "i-a"})
		protect(c)
	}), false)
	if diff := cmp.Diff([]string{"|NodeClaim c is made by Lifeboat, to replace a"}, texts(made)); diff != "" {
		t.Errorf("moments (-want +got):\n%s", diff)
	}
	node := upNode("node-c")
	protect(node)
	if moments := w.Node(at(2), node, false); len(moments) != 2 || moments[1].Kind != MomentProtected {
		t.Errorf("moments %v, want that it is up and protected", texts(moments))
	}
	w.Claim(at(2), claimOf("c", "i-c", func(c *unstructured.Unstructured) { protect(c) }), false)
	checkC(t, w, "node c protected", true)
	if moments := w.Node(at(3), upNode("node-c"), false); len(moments) != 1 || moments[0].Kind != MomentOpen {
		t.Errorf("moments %v, want that the protection is off", texts(moments))
	}
	checkC(t, w, "node c unprotected", false) // its NodeClaim still forbids it
	w.Claim(at(4), claimOf("c", "i-c", nil), false)
	checkC(t, w, "node c unprotected", true)
	checkC(t, w, "node c protected", false)
	checkC(t, w, "node a unprotected", false) // the script's own node: Karpenter does not manage it
}

func TestDeletingNodeClaimsAreCounted(t *testing.T) {
	w, _ := stage()
	w.Claim(at(-5), claimOf("old", "i-a", nil), false)
	w.Claim(at(1), claimOf("new", "", nil), false)
	checkC(t, w, "claims=2", true)
	going := claimOf("old", "i-a", func(c *unstructured.Unstructured) { c.SetDeletionTimestamp(&metav1.Time{Time: at(2)}) })
	moments := append(w.Claim(at(2), going, false), w.Claim(at(3), going, false)...)
	moments = append(moments, w.Claim(at(12), going, true)...)
	moments = append(moments, w.Claim(at(12), claimOf("unseen", "", nil), true)...)
	want := []string{"a|NodeClaim old is being deleted: Karpenter terminates its instance", "a|NodeClaim old is gone"}
	if diff := cmp.Diff(want, texts(moments)); diff != "" {
		t.Errorf("moments (-want +got):\n%s", diff)
	}
	checkC(t, w, "claims=1", true)
	checkC(t, w, "claims=2", false)
}

func TestKarpenterScenarioNeedsKarpenterSandbox(t *testing.T) {
	parse := func(line string) *Scenario {
		sc, err := Parse("My Scenario", []byte(archive(line+"\n")))
		if err != nil {
			t.Fatal(err)
		}
		return sc
	}
	for line, want := range map[string]sandbox.Options{
		"node a":                         {Name: "my-scenario"},
		"karpenter on":                   {Name: "my-scenario", Karpenter: true},
		"boot 15s\nkarpenter on":         {Name: "my-scenario", Karpenter: true},
		"karpenter on own-queue":         {Name: "my-scenario", Karpenter: true, KarpenterQueue: "karpenter", KarpenterOwnQueue: true},
		"karpenter on own-queue\nnode a": {Name: "my-scenario", Karpenter: true, KarpenterQueue: "karpenter", KarpenterOwnQueue: true},
		"karpenter on\nkarpenter kill ":  {Name: "my-scenario", Karpenter: true},
	} {
		got := parse(line).Sandbox(sandbox.Options{})
		if got.Name != want.Name || got.Karpenter != want.Karpenter || got.KarpenterQueue != want.KarpenterQueue || got.KarpenterOwnQueue != want.KarpenterOwnQueue {
			t.Errorf("%s: %+v, want %+v", line, got, want)
		}
	}
	given := parse("karpenter on").Sandbox(sandbox.Options{Name: "x", BootDelay: 1e9})
	if given.Name != "x" || given.BootDelay != 1e9 {
		t.Errorf("given options are replaced: %+v", given)
	}
	if left := parse("boot 15s\nkarpenter on\nboot ordinary").withoutBoot().Steps; len(left) != 1 {
		t.Errorf("steps without boot times: %+v", left)
	}
	parts := []sandbox.Part{{Name: "control plane", Version: "v1"}, {Name: "karpenter", Version: "v1.14.1"}}
	if with, without := provisioner(sandbox.State{Parts: parts}), provisioner(sandbox.State{Parts: parts[:1]}); with != "karpenter v1.14.1" || without != "" {
		t.Errorf("provisioners are %q and %q", with, without)
	}
}
