package cli

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/admission"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/kube/rejection"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// maxPoolsTried bounds how many pools get requests: some clusters have hundreds.
const maxPoolsTried = 20

// writes sends what the controller writes for an interruption as dry runs, for a node of each pool.
func (d *doctorRun) writes(ctx context.Context) ([]finding.Finding, error) {
	if d.kube == nil || d.kube.as == nil || d.lifeboat == nil || d.lifeboat.CRDsMissing {
		return nil, nil
	}
	as, err := d.kube.asController()
	if err != nil {
		return nil, err
	}
	ctx, cancel := d.kube.limit(ctx)
	defer cancel()
	return tryWrites(ctx, as, d.nodes), nil
}

// tryWrites sends the requests, and reports those that admission refuses.
func tryWrites(ctx context.Context, as client.Client, nodes []corev1.Node) []finding.Finding {
	c := client.NewDryRunClient(as)
	var all []finding.Finding
	add := func(object string, err error) {
		switch {
		case rejection.ByAdmission(err):
			all = append(all, admission.WriteRefused(object, err))
		case apierrors.IsForbidden(err) && len(all) == 0: // the user may not act as the controller; else RBAC, which another check compares
			all = append(all, admission.WriteNotTried(object, err))
		}
	}
	for _, node := range nodeOfEachPool(nodes) {
		_, err := mutate.Apply(ctx, c, node, mutate.MarkInterrupted, notice.KindSpotInterruption)
		add("node "+node.Name+" of "+poolName(node), err)
		if pod := podOf(ctx, as, node.Name); pod != nil {
			add("pod "+pod.Namespace+"/"+pod.Name+" on node "+node.Name, evictDry(ctx, as, pod))
		}
	}
	var records v1beta1.InterruptionList
	if err := as.List(ctx, &records, client.Limit(1)); err == nil && len(records.Items) > 0 {
		in := &records.Items[0]
		patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"`+string(in.Status.Phase)+`"}}`))
		add("interruption "+in.Name, c.Status().Patch(ctx, in.DeepCopy(), patch))
	}
	if claim := aNodeClaim(ctx, as); claim != nil {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+replacement.AnnotationTermination+`":"2100-01-01T00:00:00Z"}}}`))
		add("nodeclaim "+claim.GetName(), errors.Join(c.Patch(ctx, claim.DeepCopy(), patch), c.Delete(ctx, claim.DeepCopy())))
	}
	return all
}

// nodeOfEachPool returns one node of each pool that is not cordoned by Lifeboat, in the order of names.
func nodeOfEachPool(nodes []corev1.Node) []*corev1.Node {
	var of []*corev1.Node
	for i := range nodes {
		n := &nodes[i]
		if len(of) < maxPoolsTried && !mutate.HasMark(n) && !policy.IsControlPlane(n) &&
			!slices.ContainsFunc(of, func(other *corev1.Node) bool { return policy.Pool(other) == policy.Pool(n) }) {
			of = append(of, n)
		}
	}
	return of
}

func poolName(n *corev1.Node) string {
	if pool := policy.Pool(n); pool != "" {
		return pool
	}
	return "no pool"
}

// podOf returns a pod of the node, or nil.
func podOf(ctx context.Context, c client.Reader, node string) *corev1.Pod {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.MatchingFields{"spec.nodeName": node}, client.Limit(1)); err != nil || len(pods.Items) == 0 {
		return nil
	}
	return &pods.Items[0]
}

// evictDry evicts a pod as a dry run. A budget that refuses is no finding.
func evictDry(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	eviction := &policyv1.Eviction{}
	eviction.Namespace, eviction.Name = pod.Namespace, pod.Name
	return c.SubResource("eviction").Create(ctx, pod.DeepCopy(), eviction, client.DryRunAll)
}

// aNodeClaim returns a NodeClaim, or nil.
func aNodeClaim(ctx context.Context, c client.Reader) *unstructured.Unstructured {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(replacement.KindNodeClaim.GroupVersion().WithKind(replacement.KindNodeClaim.Kind + "List"))
	if err := c.List(ctx, list, client.Limit(1)); err != nil || len(list.Items) == 0 {
		return nil
	}
	return &list.Items[0]
}
