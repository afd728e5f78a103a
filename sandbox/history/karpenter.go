package history

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/sandbox/karpenter"
)

// noConsolidation is longer than a history: a script cannot interrupt a node that Karpenter has removed.
const noConsolidation = time.Hour

// provision makes Karpenter's NodePool and its EC2NodeClass, if there are none.
func (p *Player) provision(ctx context.Context) error {
	if !p.Karpenter {
		return nil
	}
	nodeClass, pool, err := karpenter.Defaults(noConsolidation)
	if err != nil {
		return fmt.Errorf("making a NodePool: %w", err)
	}
	for _, o := range []client.Object{nodeClass, pool} {
		if err := p.kube.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("making %s: %w", o.GetName(), err)
		}
	}
	return nil
}

var claims = schema.GroupVersion{Group: "karpenter.sh", Version: "v1"}

func claim() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(claims.WithKind("NodeClaim"))
	return o
}

func claimList() *unstructured.UnstructuredList {
	o := &unstructured.UnstructuredList{}
	o.SetGroupVersionKind(claims.WithKind("NodeClaimList"))
	return o
}
