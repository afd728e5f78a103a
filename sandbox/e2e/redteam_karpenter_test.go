//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/sandbox/karpenter"
)

const (
	attackedPool = "default"
	// genuinePool has the nodes that EC2 reclaims for real.
	genuinePool = "genuine"
)

// seenClaim is a NodeClaim at the time when it was last seen.
type seenClaim struct {
	// providerID is empty until Karpenter has launched the instance.
	providerID string
	// replacement says that Lifeboat created it, so Lifeboat may also delete it.
	replacement bool
	ended       bool
}

// preparePools adds the second NodePool, and keeps Karpenter from removing empty nodes.
func (r *redTeam) preparePools() {
	r.t.Helper()
	_, pool, err := karpenter.Defaults(time.Second)
	if err != nil {
		r.t.Fatal(err)
	}
	pool.SetName(genuinePool)
	r.apply(pool)
	for _, name := range []string{attackedPool, genuinePool} {
		pool.SetName(name)
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"disruption":{"consolidateAfter":"Never"}}}`))
		if err := r.client.Patch(r.t.Context(), pool, patch); err != nil {
			r.t.Fatal(err)
		}
	}
}

// poolNodes has Karpenter launch a node for each of n pods, and returns their nodes. Karpenter may
// launch one more, if it does not know of the first in time.
func (r *redTeam) poolNodes(n int) []ec2.Instance {
	r.t.Helper()
	d := deployment("pool", int32(n), time.Second)
	d.Spec.Template.Spec = onPool(d.Spec.Template.Spec, attackedPool)
	d.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: d.Spec.Selector,
		}},
	}}
	r.apply(d)
	r.untilRunning("pool", n)
	var pods corev1.PodList
	if err := r.client.List(r.t.Context(), &pods, client.MatchingLabels{"app": "pool"}); err != nil {
		r.t.Fatal(err)
	}
	used := map[string]bool{}
	for _, p := range pods.Items {
		used[p.Spec.NodeName] = true
	}
	var nodes []ec2.Instance
	for _, in := range r.EC2().Instances() {
		if in.Tags["karpenter.sh/nodepool"] == attackedPool && used[in.PrivateDNSName] {
			r.until("node "+in.PrivateDNSName+" to be initialised", time.Minute, func(ctx context.Context) (bool, error) { return r.initialised(ctx, in) })
			nodes = append(nodes, in)
		}
	}
	if len(nodes) != n {
		r.t.Fatalf("%d pods run on %d nodes of the pool", n, len(nodes))
	}
	return nodes
}

func onPool(spec corev1.PodSpec, pool string) corev1.PodSpec {
	spec.NodeSelector = map[string]string{"karpenter.sh/nodepool": pool}
	spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	return spec
}

// genuineNode is a node that EC2 will reclaim: each second one is Karpenter's.
func (r *redTeam) genuineNode() ec2.Instance {
	r.t.Helper()
	if len(r.reclaimed)%2 == 1 {
		return r.launch(1)[0]
	}
	spec := template(map[string]string{"app": "genuine"}, time.Second)
	name := fmt.Sprintf("genuine-%d-pool", len(r.reclaimed))
	r.apply(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: spec.Labels, Annotations: spec.Annotations},
		Spec:       onPool(spec.Spec, genuinePool),
	})
	var found ec2.Instance
	r.until("Karpenter to launch a node for "+name, 2*time.Minute, func(ctx context.Context) (bool, error) {
		pod := &corev1.Pod{}
		if err := r.client.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, pod); err != nil || pod.Spec.NodeName == "" {
			return false, err
		}
		i := slices.IndexFunc(r.EC2().Instances(), func(in ec2.Instance) bool { return in.PrivateDNSName == pod.Spec.NodeName })
		if i < 0 {
			return false, fmt.Errorf("node %s has no instance", pod.Spec.NodeName)
		}
		found = r.EC2().Instances()[i]
		return r.initialised(ctx, found)
	})
	return found
}

// rememberClaims reads the NodeClaims.
func (r *redTeam) rememberClaims() {
	now := map[string]bool{}
	for _, c := range r.list(r.t.Context(), "NodeClaim") {
		name, id := c.GetName(), ""
		if status, ok := c.Object["status"].(map[string]any); ok {
			id, _ = status["providerID"].(string)
		}
		before := r.claims[name]
		r.claims[name] = seenClaim{
			providerID:  id,
			replacement: before.replacement || c.GetLabels()[v1beta1.LabelReplacesInstance] != "",
			ended:       c.GetDeletionTimestamp() != nil,
		}
		now[name] = true
	}
	for name, c := range r.claims {
		if !now[name] {
			c.ended = true
			r.claims[name] = c
		}
	}
}

// checkClaims checks that no attack ended a NodeClaim: only those of genuine notices ended, and
// replacements that Lifeboat itself created and no longer needs.
func (r *redTeam) checkClaims() {
	r.t.Helper()
	r.rememberClaims()
	replacements, ended := 0, 0
	for name, c := range r.claims {
		if c.replacement {
			replacements++
		}
		if c.ended {
			ended++
		}
		if c.ended && !c.replacement && !r.isGenuine(c.providerID) {
			r.t.Errorf("NodeClaim %s of %s ended, although EC2 did not reclaim its instance", name, c.providerID)
		}
	}
	r.t.Logf("%d NodeClaims, of which Lifeboat created %d; %d ended", len(r.claims), replacements, ended)
}

func (r *redTeam) isGenuine(providerID string) bool {
	return slices.ContainsFunc(r.reclaimed, func(in ec2.Instance) bool {
		return providerID != "" && providerID[max(0, len(providerID)-len(in.ID)):] == in.ID
	})
}

// isSpareReplacement reports whether an instance is that of a replacement.
func (r *redTeam) isSpareReplacement(in ec2.Instance) bool {
	for _, c := range r.claims {
		if c.replacement && len(c.providerID) >= len(in.ID) && c.providerID[len(c.providerID)-len(in.ID):] == in.ID {
			return true
		}
	}
	return false
}
