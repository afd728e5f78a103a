package capacity

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// maxNames is how many replacements of one instance have names of their own.
const maxNames = 10

func (r *Replacer) live() client.Reader {
	if r.Live == nil {
		return r.Client
	}
	return r.Live
}

// replacementFacts reads what a decision about a replacement needs: about ten requests
// for a node, and up to two more for each other node that may have room.
func (r *Replacer) replacementFacts(ctx context.Context, in Input, early replacement.QuickFacts) (replacement.Facts, error) {
	facts := replacement.Facts{
		QuickFacts: early, Kind: in.Decision.Notice.Kind, InstanceID: in.instanceID(), Interruption: in.Interruption.Name, Claims: r.Claims.Claims(),
	}
	node, claim, err := r.interrupted(ctx, in)
	if err != nil || claim == nil {
		return facts, err
	}
	facts.Node, facts.Interrupted = node, claim
	if claim.Deleting || claim.Pool() == "" {
		return facts, nil
	}
	if err := r.readPool(ctx, &facts); err != nil || facts.Pool == nil {
		return facts, err
	}
	if err := r.readStanding(ctx, &facts); err != nil || facts.Existing != nil {
		return facts, err
	}
	if facts.Pods, err = PodsOn(ctx, r.live(), node.Name); err != nil {
		return facts, err
	}
	facts.Others, err = r.othersFor(ctx, in, facts.Pods)
	return facts, err
}

// interrupted returns the interrupted node with all fields, and its NodeClaim; nil where
// it has none.
func (r *Replacer) interrupted(ctx context.Context, in Input) (*corev1.Node, *replacement.Claim, error) {
	if in.Node == nil {
		return nil, nil, nil
	}
	var node corev1.Node
	if err := r.live().Get(ctx, client.ObjectKeyFromObject(in.Node), &node); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil, nil
		}
		return nil, nil, fmt.Errorf("reading the node: %w", err)
	}
	name := replacement.ClaimName(&node)
	if name == "" {
		return &node, nil, nil
	}
	claim, err := mutate.Claim(ctx, r.Client, name)
	if err != nil {
		return nil, nil, err
	}
	if claim == nil || claim.InstanceID != in.instanceID() {
		return &node, nil, nil
	}
	return &node, claim, nil
}

// readPool reads the NodePool and its NodeClass.
func (r *Replacer) readPool(ctx context.Context, facts *replacement.Facts) error {
	u, err := r.read(ctx, replacement.KindNodePool, facts.Interrupted.Pool())
	if err != nil || u == nil {
		return err
	}
	if facts.Pool, err = replacement.ReadPool(u); err != nil {
		return err
	}
	if facts.Pool.ClassGroup != replacement.GroupAWS || facts.Pool.ClassKind != replacement.KindAWS {
		return nil
	}
	if u, err = r.read(ctx, replacement.KindEC2NodeClass, facts.Pool.ClassName); err != nil || u == nil {
		return err
	}
	facts.Class, err = replacement.ReadClass(u)
	return err
}

// read reads an object of Karpenter; nil: there is none.
func (r *Replacer) read(ctx context.Context, kind schema.GroupVersionKind, name string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, u); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind.Kind, name, err)
	}
	return u, nil
}

// readStanding finds the name of the replacement.
func (r *Replacer) readStanding(ctx context.Context, facts *replacement.Facts) error {
	for nth := range maxNames {
		facts.Name = replacement.Name(facts.Pool.Name, facts.InstanceID, nth+1)
		claim, err := mutate.Claim(ctx, r.Client, facts.Name)
		if err != nil {
			return err
		}
		if facts.Existing = claim; !replacement.HasServed(claim) {
			return nil
		}
	}
	return nil // all names are in use
}

// PodsOn returns all pods of a node with all fields, from the API server.
func PodsOn(ctx context.Context, live client.Reader, node string) ([]*corev1.Pod, error) {
	var list corev1.PodList
	if err := live.List(ctx, &list, client.MatchingFields{"spec.nodeName": node}); err != nil {
		return nil, fmt.Errorf("listing the pods of node %s: %w", node, err)
	}
	pods := make([]*corev1.Pod, 0, len(list.Items))
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	return pods, nil
}

// othersFor returns some other nodes that may have room for pods, with theirs.
func (r *Replacer) othersFor(ctx context.Context, in Input, pods []*corev1.Pod) ([]replacement.Other, error) {
	var list corev1.NodeList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	var nodes []*corev1.Node
	for i := range list.Items {
		if n := &list.Items[i]; n.Name != in.NodeName && !r.Memory.isNodeReserved(n.Name, in.Now) {
			nodes = append(nodes, n)
		}
	}
	var others []replacement.Other
	for _, n := range replacement.Candidates(nodes, replacement.Movable(pods)) {
		o := replacement.Other{Node: &corev1.Node{}}
		if err := r.live().Get(ctx, client.ObjectKeyFromObject(n), o.Node); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("reading node %s: %w", n.Name, err)
		}
		var err error
		if o.Pods, err = PodsOn(ctx, r.live(), n.Name); err != nil {
			return nil, err
		}
		others = append(others, o)
	}
	return others, nil
}
