package cli

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// karpenters is a protected node of Karpenter's, with its NodeClaim and NodePool, and a policy
// that drains it for anything.
func karpenters() []client.Object {
	all := mixedNode()
	all[0].SetLabels(map[string]string{"karpenter.sh/nodepool": "db"})
	all[0].SetAnnotations(map[string]string{"karpenter.sh/do-not-disrupt": "true"})
	all[0].SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: "db-x7k2p", UID: "c"}})
	claim := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": map[string]any{"name": "db-x7k2p"},
		"spec": map[string]any{"terminationGracePeriod": "5m"},
	}}
	pool := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": map[string]any{"name": "db"},
		"spec": map[string]any{"disruption": map[string]any{"budgets": []any{
			map[string]any{"nodes": "10%"},
			map[string]any{"nodes": "0", "reasons": []any{"Drifted"}, "schedule": "0 9 * * mon-fri", "duration": "8h"},
		}}},
	}}
	return append(all, claim, pool)
}

func TestKarpenterSettingsAreShown(t *testing.T) {
	early := policyOf(v1beta1.ActionDrain, notice.KindScheduledChange)
	early.Spec.Rules[0].NotBefore = &metav1.Duration{Duration: 48 * time.Hour}
	ignores := policyOf(v1beta1.ActionDrain, notice.KindRebalanceRecommendation)
	ignores.Spec.Rules[0].DoNotDisrupt = v1beta1.DoNotDisruptIgnore
	leaving := karpenters()
	claim := leaving[len(leaving)-2]
	claim.SetDeletionTimestamp(&metav1.Time{Time: clock})
	claim.SetFinalizers([]string{"karpenter.sh/termination"})
	claim.SetAnnotations(map[string]string{"karpenter.sh/nodeclaim-termination-timestamp": clock.Add(3 * time.Minute).Format(time.RFC3339)})
	for _, c := range []struct {
		name    string
		objects []client.Object
		args    []string
	}{
		{"plan-karpenter-spot", karpenters(), []string{"plan", nodeName}},
		{"plan-karpenter-stop", append(karpenters(), early), []string{"plan", nodeName, "--kind", "scheduled", "--event-type-code", "instance-stop", "--in", "30h"}},
		{"plan-karpenter-leaving", leaving, []string{"plan", nodeName}},
		{"explain-karpenter-rebalance", append(karpenters(), policyOf(v1beta1.ActionDrain, notice.KindRebalanceRecommendation)), []string{"explain", nodeName, "--kind", "rebalance"}},
		{"explain-karpenter-ignored", append(karpenters(), ignores), []string{"explain", nodeName, "--kind", "rebalance"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &harness{t: t, cluster: fakeCluster(t, interceptor.Funcs{}, c.objects...)}
			r := h.run(t.Context(), c.args...)
			if r.code != ExitOK || r.err != "" {
				t.Errorf("exit code %d, standard error %q", r.code, r.err)
			}
			golden(t, c.name+".golden", r.out)
		})
	}
}

// The plan does not need Karpenter's objects.
func TestUnreadableKarpenterSettings(t *testing.T) {
	for name, err := range map[string]error{
		"forbidden": apierrors.NewForbidden(schema.GroupResource{Group: "karpenter.sh", Resource: "nodeclaims"}, "db-x7k2p", errors.New("no")),
		"absent":    apierrors.NewNotFound(schema.GroupResource{Group: "karpenter.sh", Resource: "nodeclaims"}, "db-x7k2p"),
	} {
		funcs := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, ok := o.(*unstructured.Unstructured); ok {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		}}
		h := &harness{t: t, cluster: fakeCluster(t, funcs, karpenters()...)}
		r := h.run(t.Context(), "plan", nodeName)
		if says := strings.Contains(r.out, "not known: reading NodeClaim db-x7k2p"); r.code != ExitOK || says != (name == "forbidden") {
			t.Errorf("%s: exit code %d: %s", name, r.code, r.out)
		}
	}
}

func TestZonalShiftOfKarpenterIsRead(t *testing.T) {
	for value, want := range map[string]bool{"true": true, "false": false, "": false} {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "karpenter", Labels: map[string]string{nameLabel: karpenterName}}}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Env: []corev1.EnvVar{{Name: "ENABLE_ZONAL_SHIFT", Value: value}}}}
		found, err := findTools(t.Context(), cluster{WithWatch: fakeCluster(t, interceptor.Funcs{}, d)})
		if err != nil || found.Karpenter == nil || found.Karpenter.ZonalShift != want {
			t.Errorf("ENABLE_ZONAL_SHIFT=%q: %+v, %v", value, found.Karpenter, err)
		}
	}
}
