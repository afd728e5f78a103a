package cli

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// voyage is a node with a bit of everything on it.
func voyage() []client.Object {
	return append(twoNodes(),
		pod("shop", "web-1", "web", "ReplicaSet", 15), pod("shop", "web-2", "web", "ReplicaSet", 15), budget("shop", "web", 2, 1),
		pod("shop", "db-0", "db", "StatefulSet", 30), budget("shop", "db", 1, 0),
		pod("kube-system", "agent", "agent", "DaemonSet", 30),
	)
}

func policyOf(action v1alpha1.Action, kinds ...string) *v1alpha1.InterruptionPolicy {
	return &v1alpha1.InterruptionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "batch"},
		Spec: v1alpha1.InterruptionPolicySpec{Rules: []v1alpha1.Rule{
			{Name: "ours", Kinds: kinds, Action: action, DoNotDisrupt: v1alpha1.DoNotDisruptUntilLastCall},
		}},
	}
}

func TestPlan(t *testing.T) {
	over := interruption(spotNotice("n0", time.Hour))
	complete(over, 50*time.Minute, 3, 0)
	slow := append(voyage(), pod("shop", "slow", "slow", "ReplicaSet", 300))
	for _, c := range []struct {
		name    string
		objects []client.Object
		args    []string
		code    int
	}{
		{"spot", voyage(), []string{nodeName}, ExitOK},
		{"by-instance", voyage(), []string{instanceA}, ExitOK},
		{"does-not-fit", slow, []string{nodeName, "--in", "90s"}, ExitDoesNotFit},
		{"rebalance", voyage(), []string{nodeName, "--kind", "rebalance"}, ExitOK},
		{"under-way", append(voyage(), interruption(spotNotice("n1", 20*time.Second))), []string{nodeName}, ExitOK},
		{"over", append(voyage(), over), []string{nodeName}, ExitOK},
		{"ignored", append(voyage(), policyOf(v1alpha1.ActionIgnore, notice.KindSpotInterruption)), []string{nodeName}, ExitDoesNotFit},
		{"empty", twoNodes(), []string{otherNode}, ExitOK},
		{"json", slow, []string{nodeName, "-o", "json"}, ExitDoesNotFit},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &harness{t: t, cluster: fakeCluster(t, interceptor.Funcs{}, c.objects...)}
			r := h.run(t.Context(), append([]string{"plan"}, c.args...)...)
			if r.code != c.code {
				t.Errorf("exit code %d, want %d", r.code, c.code)
			}
			if r.err != "" {
				t.Errorf("standard error: %s", r.err)
			}
			golden(t, "plan-"+c.name+".golden", r.out)
		})
	}
}

func TestPlanWorksWhereLifeboatIsNotInstalled(t *testing.T) {
	funcs := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, ok := list.(*v1alpha1.InterruptionPolicyList); ok {
			return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "lifeboat.dev", Kind: "InterruptionPolicy"}}
		}
		return c.List(ctx, list, opts...)
	}}
	h := &harness{t: t, cluster: fakeCluster(t, funcs, voyage()...)}
	r := h.run(t.Context(), "plan", nodeName, "-o", "json")
	if r.code != ExitOK || !strings.Contains(r.err, "not installed") {
		t.Errorf("exit code %d, standard error %q", r.code, r.err)
	}
	var p planned
	if err := json.Unmarshal([]byte(r.out), &p); err != nil {
		t.Fatal(err)
	}
	if p.Decision.Action != v1alpha1.ActionDrain || len(p.Pods) != 4 {
		t.Errorf("got %+v", p)
	}
}
