package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/hooks"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

const (
	// triedInstance is the instance of the records and Jobs that are tried. EC2 gives no instance this id.
	triedInstance = "i-00000000000000000"
	// maxPodsRead bounds how many pods of a node are read, to find one that a drain moves.
	maxPodsRead = 50
)

// write is a write of the product for an interruption.
type write struct {
	// object is what it is tried on, and effect what follows if it is refused.
	object, effect string
	// send makes it, with the product's own code where that can be called alone.
	send func(context.Context, client.Client) error
}

// table returns the writes to try.
func (t *trial) table(ctx context.Context) []write {
	nodes := nodeOfEachPool(t.nodes)
	var all []write
	moved, surged := false, false
	for _, node := range nodes {
		all = append(all, write{
			"node " + node.Name + " of " + poolName(node), "no pod leaves the node before its last call",
			func(ctx context.Context, c client.Client) error {
				_, err := mutate.Apply(ctx, c, node, mutate.MarkInterrupted, notice.KindSpotInterruption)
				return err
			},
		})
		pod, surges := t.podOf(ctx, node.Name)
		if pod != nil {
			moved, surged = true, surged || surges
			all = append(all, t.podWrites(pod, surges)...)
		}
	}
	if len(nodes) > 0 && !moved {
		t.untried = append(t.untried, "writes of pods (no pod was found that a drain moves)")
	} else if len(nodes) > 0 && t.surge && !surged {
		t.untried = append(t.untried, "the surge of a pod (no pod of a Deployment was found)")
	}
	if len(nodes) > 0 {
		node := nodes[0]
		all = append(all, write{
			"node " + node.Name, "the Node of an instance that returns to a warm pool stays",
			func(ctx context.Context, c client.Client) error { return mutate.DeleteNode(ctx, c, node) },
		})
	}
	return slices.Concat(all, t.recordWrites(ctx), t.claimWrites(ctx), t.jobWrites())
}

// podWrites are the writes of a pod that has to leave.
func (t *trial) podWrites(pod *corev1.Pod, surges bool) []write {
	object := "pod " + pod.Namespace + "/" + pod.Name + " on node " + pod.Spec.NodeName
	all := []write{
		{object, "the pod leaves only at its last call", func(ctx context.Context, c client.Client) error {
			_, err := mutate.Evict(ctx, c, pod, nil)
			return err
		}},
		{object, "a pod that its budget holds stops without notice, or a Job counts the interruption as a failure", func(ctx context.Context, c client.Client) error {
			_, err := mutate.Disrupt(ctx, c, pod, nil, "lifeboat doctor tries this as a dry run", t.now)
			return err
		}},
	}
	if surges {
		all = append(all, write{object, "its successor starts only after it has left", func(ctx context.Context, c client.Client) error {
			_, err := mutate.Surge(ctx, c, pod, t.now, "")
			return err
		}})
	}
	return all
}

// recordWrites are the writes of an Interruption.
func (t *trial) recordWrites(ctx context.Context) []write {
	object := "interruption " + triedInstance
	all := []write{{object, "no notice is recorded, and no node drains", func(ctx context.Context, c client.Client) error {
		return c.Create(ctx, t.record(), client.FieldValidation(metav1.FieldValidationIgnore))
	}}}
	var records v1beta1.InterruptionList
	switch err := t.list(ctx, &records, client.Limit(1)); {
	case err != nil:
		return all
	case len(records.Items) == 0:
		t.untried = append(t.untried, "the status of an Interruption (there is none, and the API server tries only the status of an existing one)")
		return all
	}
	in := &records.Items[0]
	return append(all, write{"interruption " + in.Name, "the record is old, and pods leave only at their last call", func(ctx context.Context, c client.Client) error {
		patch, err := json.Marshal([]any{map[string]any{"op": "add", "path": "/status", "value": in.Status}}) // as package status writes it
		if err != nil {
			return err
		}
		answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: in.Name}}
		answer.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("Interruption"))
		return c.Status().Patch(ctx, answer, client.RawPatch(types.JSONPatchType, patch))
	}})
}

// record is an Interruption as a notice creates it.
func (t *trial) record() *v1beta1.Interruption {
	in := &v1beta1.Interruption{
		ObjectMeta: metav1.ObjectMeta{Name: triedInstance},
		Spec: v1beta1.InterruptionSpec{InstanceID: triedInstance, Notices: []v1beta1.Notice{{
			ID: "lifeboat-doctor", Kind: notice.KindSpotInterruption, Source: notice.SourceQueue,
			Time: metav1.NewTime(t.now), ReceivedTime: metav1.NewMicroTime(t.now),
		}}},
	}
	if len(t.nodes) > 0 {
		in.Spec.NodeName, in.Spec.NodeUID = t.nodes[0].Name, t.nodes[0].UID
	}
	return in
}

// claimWrites are the writes of a NodeClaim; none without Karpenter.
func (t *trial) claimWrites(ctx context.Context) []write {
	u := t.aNodeClaim(ctx)
	if u == nil {
		return nil
	}
	claim, err := replacement.ReadClaim(u)
	if err != nil {
		return nil
	}
	object := "nodeclaim " + claim.Name
	all := []write{
		{object, "Karpenter does not know the deadline of the node", func(ctx context.Context, c client.Client) error {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+replacement.AnnotationTermination+`":"2100-01-01T00:00:00Z"}}}`))
			return c.Patch(ctx, u.DeepCopy(), patch)
		}},
		{object, "Karpenter does not end the node", func(ctx context.Context, c client.Client) error { return mutate.End(ctx, c, claim) }},
	}
	order := t.order(ctx, claim)
	if order == nil {
		t.untried = append(t.untried, "the creation of a NodeClaim (no node with its NodePool was found)")
		return all
	}
	return append(all, write{"nodeclaim " + order.GetName(), "no replacement starts before the pods leave", func(ctx context.Context, c client.Client) error {
		_, err := mutate.Order(ctx, c, order)
		return err
	}})
}

// order returns the NodeClaim of a replacement, or nil.
func (t *trial) order(ctx context.Context, claim *replacement.Claim) *unstructured.Unstructured {
	i := slices.IndexFunc(t.nodes, func(n corev1.Node) bool { return n.Labels[replacement.LabelNodePool] == claim.Pool() })
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(replacement.KindNodePool)
	if i < 0 || t.as.Get(ctx, client.ObjectKey{Name: claim.Pool()}, u) != nil {
		return nil
	}
	pool, err := replacement.ReadPool(u)
	if err != nil {
		return nil
	}
	return replacement.Trial(replacement.Facts{
		Kind: notice.KindSpotInterruption, InstanceID: triedInstance, Interruption: triedInstance, Node: &t.nodes[i],
		Interrupted: claim, Pool: pool, Name: replacement.Name(pool.Name, triedInstance, 1),
	})
}

// jobWrites are the Jobs of hooks. What is wrong with a template, another check reports.
func (t *trial) jobWrites() (all []write) {
	s := hooks.Subject{
		Interruption: triedInstance, UID: "lifeboat-doctor", InstanceID: triedInstance, Kind: notice.KindSpotInterruption, Phase: v1beta1.PhaseDraining,
	}
	if len(t.nodes) > 0 {
		s.Node = t.nodes[0].Name
	}
	for i := range t.policies {
		s.Policy = t.policies[i].Name
		for _, h := range t.policies[i].Spec.Hooks {
			if h.Job == nil || len(t.jobNamespaces) == 0 || len(all) == maxHooksTried {
				continue
			}
			namespace := cmp.Or(h.Job.Namespace, t.jobNamespaces[0])
			if job, err := hooks.Job(h, s, 1, namespace); err == nil && slices.Contains(t.jobNamespaces, namespace) {
				all = append(all, write{
					fmt.Sprintf("job of hook %s in policy %s, in namespace %s", h.Name, s.Policy, namespace), "the hook does not run",
					func(ctx context.Context, c client.Client) error { return c.Create(ctx, job) },
				})
			}
		}
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

// podOf returns a pod of the node that a drain moves, or nil. It prefers one that can be surged.
func (t *trial) podOf(ctx context.Context, node string) (pod *corev1.Pod, surges bool) {
	var pods corev1.PodList
	if err := t.list(ctx, &pods, client.MatchingFields{"spec.nodeName": node}, client.Limit(maxPodsRead)); err != nil {
		return nil, false
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		if p.DeletionTimestamp != nil || drain.Stays(p) {
			continue
		}
		if t.surge && isOfDeployment(p) {
			return p, true
		}
		if pod == nil {
			pod = p
		}
	}
	return pod, false
}

// isOfDeployment reports whether the pod has what a surge changes.
func isOfDeployment(p *corev1.Pod) bool {
	_, hashed := p.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	_, surged := p.Labels[v1beta1.LabelSurged]
	owner := metav1.GetControllerOf(p)
	return hashed && !surged && owner != nil && owner.Kind == "ReplicaSet"
}

// aNodeClaim returns a NodeClaim that is not being deleted, or nil.
func (t *trial) aNodeClaim(ctx context.Context) *unstructured.Unstructured {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(listOf(replacement.KindNodeClaim))
	if err := t.list(ctx, list, client.Limit(maxPodsRead)); err != nil {
		return nil
	}
	for i := range list.Items {
		if list.Items[i].GetDeletionTimestamp() == nil {
			return &list.Items[i]
		}
	}
	return nil
}

func listOf(k schema.GroupVersionKind) schema.GroupVersionKind {
	return k.GroupVersion().WithKind(k.Kind + "List")
}

// list reads objects within the time of a request.
func (t *trial) list(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	ctx, cancel := t.limit(ctx)
	defer cancel()
	return t.as.List(ctx, into, opts...)
}
