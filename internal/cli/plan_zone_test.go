package cli

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// twoZones has a spot node and another node in zone a, and a spot node in zone b.
func twoZones() []client.Object {
	spot := func(n *corev1.Node) *corev1.Node {
		n.Labels = map[string]string{"karpenter.sh/capacity-type": "spot"}
		return n
	}
	at := func(p *corev1.Pod, node string) *corev1.Pod { p.Spec.NodeName = node; return p }
	return []client.Object{
		spot(node("spot-a", "aws:///us-east-1a/"+instanceA)), node("od-a", "aws:///us-east-1a/i-0c3d4e5f607182930"), spot(node("spot-b", "aws:///us-east-1b/"+instanceB)),
		at(pod("shop", "slow-a", "slow", "ReplicaSet", 600), "spot-a"), at(pod("shop", "quick-a", "quick", "ReplicaSet", 30), "spot-a"),
		at(pod("shop", "slow-od", "slow", "ReplicaSet", 600), "od-a"), at(pod("shop", "quick-b", "quick", "ReplicaSet", 30), "spot-b"),
		at(pod("kube-system", "agent-b", "agent", "DaemonSet", 30), "spot-b"),
	}
}

func TestPlanOfManyNodes(t *testing.T) {
	for name, tc := range map[string]struct {
		args  []string
		code  int
		lost  []string // in the table
		tells string
	}{
		"spot nodes of a zone": {[]string{"--zone", "us-east-1a", "--spot"}, ExitDoesNotFit, []string{"shop/slow-a"}, "1 of 2 pods leave"},
		"a zone":               {[]string{"--zone", "us-east-1a"}, ExitDoesNotFit, []string{"shop/slow-a", "shop/slow-od"}, "1 of 3 pods leave"},
		"all spot nodes":       {[]string{"--spot"}, ExitDoesNotFit, []string{"shop/slow-a"}, "2 of 3 pods leave"},
		"all pods leave":       {[]string{"--zone", "us-east-1b", "--spot"}, ExitOK, nil, "1 of 1 pod leave"},
		"no such zone":         {[]string{"--zone", "us-east-1c"}, ExitFailed, nil, "no node is a node in zone us-east-1c"},
		"a node and a zone":    {[]string{"spot-a", "--spot"}, ExitUsage, nil, "remove spot-a"},
		"nothing":              {nil, ExitUsage, nil, "--zone or --spot"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &harness{t: t, cluster: fakeCluster(t, interceptor.Funcs{}, twoZones()...)}
			r := h.run(t.Context(), append([]string{"plan"}, tc.args...)...)
			if r.code != tc.code || !strings.Contains(r.out+r.err, tc.tells) {
				t.Errorf("exit code %d, want %d and %q:\n%s%s", r.code, tc.code, tc.tells, r.out, r.err)
			}
			for _, p := range []string{"shop/slow-a", "shop/slow-od", "shop/quick-a", "shop/quick-b", "agent-b"} {
				listed := strings.Contains(r.out, p)
				if want := strings.Contains(strings.Join(tc.lost, " "), p); listed != want {
					t.Errorf("%s is listed: %t\n%s", p, listed, r.out)
				}
			}
		})
	}
}

func TestPlanOfManyNodesInJSON(t *testing.T) {
	h := &harness{t: t, cluster: fakeCluster(t, interceptor.Funcs{}, twoZones()...)}
	r := h.run(t.Context(), "plan", "--spot", "-o", "json")
	var got plannedZone
	if err := json.Unmarshal([]byte(r.out), &got); err != nil {
		t.Fatalf("%v\n%s%s", err, r.out, r.err)
	}
	if len(got.Nodes) != 2 || got.Fits || got.Nodes[0].Node != "spot-a" || got.Nodes[0].Fits || !got.Nodes[1].Fits {
		t.Errorf("%s", r.out)
	}
}
