package interruption

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/action"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// mostNames is how many replacements of one instance are told apart by name.
const mostNames = 10

// live reads past the cache: nodes are held there without what they can take, and
// pods without what they request.
func (c *Controller) live() client.Reader {
	if c.Live == nil {
		return c.Client
	}
	return c.Live
}

// replacementFacts reads what a decision on a replacement takes: some ten requests
// for a node, and one and two more for each other that may have room.
func (c *Controller) replacementFacts(ctx context.Context, f *facts, d policy.Decision, early replacement.QuickFacts) (replacement.Facts, error) {
	r := replacement.Facts{
		QuickFacts: early, Kind: d.Notice.Kind, InstanceID: f.in.Spec.InstanceID, Interruption: f.in.Name, Claims: c.Claims.Claims(),
	}
	node, doomed, err := c.doomed(ctx, f)
	if err != nil || doomed == nil {
		return r, err
	}
	r.Node, r.Interrupted = node, doomed
	if doomed.Deleting || doomed.Pool() == "" {
		return r, nil
	}
	if err := c.readPool(ctx, &r); err != nil || r.Pool == nil {
		return r, err
	}
	if err := c.readStanding(ctx, &r); err != nil || r.Existing != nil {
		return r, err
	}
	if r.Pods, err = c.podsOn(ctx, node.Name); err != nil {
		return r, err
	}
	r.Others, err = c.othersFor(ctx, f, r.Pods)
	return r, err
}

// doomed returns the doomed node, whole, and its NodeClaim; nil where it has none.
func (c *Controller) doomed(ctx context.Context, f *facts) (*corev1.Node, *replacement.Claim, error) {
	if f.node == nil {
		return nil, nil, nil
	}
	var node corev1.Node
	if err := c.live().Get(ctx, client.ObjectKeyFromObject(f.node), &node); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil, nil
		}
		return nil, nil, fmt.Errorf("reading the node: %w", err)
	}
	for _, owner := range node.OwnerReferences {
		if owner.Kind != replacement.KindNodeClaim.Kind {
			continue
		}
		claim, err := action.Claim(ctx, c.Client, owner.Name)
		if err != nil {
			return nil, nil, err
		}
		if claim != nil && claim.InstanceID == f.in.Spec.InstanceID {
			return &node, claim, nil
		}
	}
	return &node, nil, nil
}

// readPool reads the NodePool and its NodeClass.
func (c *Controller) readPool(ctx context.Context, r *replacement.Facts) error {
	u, err := c.karpenters(ctx, replacement.KindNodePool, r.Interrupted.Pool())
	if err != nil || u == nil {
		return err
	}
	if r.Pool, err = replacement.ReadPool(u); err != nil {
		return err
	}
	if r.Pool.ClassGroup != replacement.GroupAWS || r.Pool.ClassKind != replacement.KindAWS {
		return nil
	}
	if u, err = c.karpenters(ctx, replacement.KindEC2NodeClass, r.Pool.ClassName); err != nil || u == nil {
		return err
	}
	r.Class, err = replacement.ReadClass(u)
	return err
}

// karpenters reads an object of Karpenter's; nil: there is none.
func (c *Controller) karpenters(ctx context.Context, kind schema.GroupVersionKind, name string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	if err := c.Client.Get(ctx, client.ObjectKey{Name: name}, u); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind.Kind, name, err)
	}
	return u, nil
}

// readStanding finds the name that the replacement has, or is to have.
func (c *Controller) readStanding(ctx context.Context, r *replacement.Facts) error {
	for nth := range mostNames {
		r.Name = replacement.Name(r.Pool.Name, r.InstanceID, nth+1)
		claim, err := action.Claim(ctx, c.Client, r.Name)
		if err != nil {
			return err
		}
		if r.Existing = claim; !replacement.HasServed(claim) {
			return nil
		}
	}
	return nil // the last one stands, and is not to be taken
}

// podsOn returns all pods of a node, whole, as the API server's cache has them.
func (c *Controller) podsOn(ctx context.Context, node string) ([]*corev1.Pod, error) {
	var list corev1.PodList
	if err := c.live().List(ctx, &list, client.MatchingFields{"spec.nodeName": node}); err != nil {
		return nil, fmt.Errorf("listing the pods of node %s: %w", node, err)
	}
	pods := make([]*corev1.Pod, 0, len(list.Items))
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	return pods, nil
}

// othersFor returns some other nodes that may have room for pods, with theirs.
func (c *Controller) othersFor(ctx context.Context, f *facts, pods []*corev1.Pod) ([]replacement.Other, error) {
	var list corev1.NodeList
	if err := c.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	var nodes []*corev1.Node
	for i := range list.Items {
		if n := &list.Items[i]; n.Name != f.nodeName && !c.yard.isTaken(n.Name, f.now) {
			nodes = append(nodes, n)
		}
	}
	var others []replacement.Other
	for _, n := range replacement.Candidates(nodes, replacement.Movable(pods)) {
		o := replacement.Other{Node: &corev1.Node{}}
		if err := c.live().Get(ctx, client.ObjectKeyFromObject(n), o.Node); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("reading node %s: %w", n.Name, err)
		}
		var err error
		if o.Pods, err = c.podsOn(ctx, n.Name); err != nil {
			return nil, err
		}
		others = append(others, o)
	}
	return others, nil
}
