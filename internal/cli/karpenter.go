package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cli/command"
	"github.com/lifeboat-dev/lifeboat/internal/cli/terminal"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// karpenterSettings are the settings of a node's NodeClaim and NodePool that concern its drain.
type karpenterSettings struct {
	NodeClaim string `json:"nodeClaim,omitempty"`
	NodePool  string `json:"nodePool,omitempty"`
	// DoNotDisrupt is true if the node holds voluntary disruption.
	DoNotDisrupt bool `json:"doNotDisrupt"`
	// TerminationGracePeriod is how long Karpenter's own drain may take.
	TerminationGracePeriod string `json:"terminationGracePeriod,omitempty"`
	// EndsBy is when Karpenter ends the node at the latest, if it deletes it already.
	EndsBy *time.Time `json:"endsBy,omitempty"`
	// Budgets limit Karpenter's voluntary disruption.
	Budgets []string `json:"disruptionBudgets,omitempty"`
	// Unread says what could not be read, and why.
	Unread string `json:"unread,omitempty"`
}

// karpenterOf reads the settings of a node; nil: the node is not Karpenter's.
func (c cluster) karpenterOf(ctx context.Context, w *observed) *karpenterSettings {
	if !replacement.IsKarpenters(w.node) {
		return nil
	}
	k := &karpenterSettings{
		NodePool: w.node.Labels[replacement.LabelNodePool], NodeClaim: replacement.ClaimName(w.node), DoNotDisrupt: policy.IsProtected(w.node),
	}
	if err := k.read(ctx, c); err != nil {
		k.Unread = err.Error()
	}
	return k
}

func (k *karpenterSettings) read(ctx context.Context, c cluster) error {
	if u, err := c.ofKarpenter(ctx, replacement.KindNodeClaim, k.NodeClaim); err != nil {
		return err
	} else if u != nil {
		claim, err := replacement.ReadClaim(u)
		if err != nil {
			return err
		}
		if claim.TerminationGracePeriod != nil {
			k.TerminationGracePeriod = terminal.Duration(*claim.TerminationGracePeriod)
		}
		if at := claim.Termination(); claim.Deleting && !at.IsZero() {
			k.EndsBy = &at
		}
	}
	u, err := c.ofKarpenter(ctx, replacement.KindNodePool, k.NodePool)
	if err != nil || u == nil {
		return err
	}
	pool, err := replacement.ReadPool(u)
	if err != nil {
		return err
	}
	for _, b := range pool.Budgets {
		k.Budgets = append(k.Budgets, b.String())
	}
	return nil
}

// ofKarpenter reads an object of Karpenter; nil: there is none.
func (c cluster) ofKarpenter(ctx context.Context, kind schema.GroupVersionKind, name string) (*unstructured.Unstructured, error) {
	if name == "" {
		return nil, nil
	}
	ctx, cancel := c.limit(ctx)
	defer cancel()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	switch err := c.Get(ctx, client.ObjectKey{Name: name}, u); {
	case apierrors.IsNotFound(err), command.IsNotInstalled(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading %s %s: %w", kind.Kind, name, err)
	}
	return u, nil
}

// lines say what the settings mean for a drain.
func (k *karpenterSettings) lines(d v1beta1.DoNotDisrupt, now time.Time) []string {
	if k == nil {
		return nil
	}
	var all []string
	switch {
	case k.DoNotDisrupt && d == v1beta1.DoNotDisruptIgnore:
		all = append(all, "do-not-disrupt on the node counts for nothing: the policy says doNotDisrupt: Ignore")
	case k.DoNotDisrupt:
		all = append(all, "do-not-disrupt on the node holds voluntary disruption only: no drain for a rebalance recommendation, and for a planned change none before its last hour")
	}
	if k.EndsBy != nil {
		all = append(all, fmt.Sprintf("it deletes NodeClaim %s already, and ends the node by %s", k.NodeClaim, formatClock(*k.EndsBy, now)))
	} else if k.TerminationGracePeriod != "" {
		all = append(all, fmt.Sprintf("terminationGracePeriod %s: it ends the node at most that long after NodeClaim %s is deleted, whatever pods and volumes still need", k.TerminationGracePeriod, k.NodeClaim))
	}
	if len(k.Budgets) > 0 {
		all = append(all, "disruption budgets ("+strings.Join(k.Budgets, "; ")+") limit drift and consolidation, and no interruption")
	}
	if k.Unread != "" {
		all = append(all, "not known: "+k.Unread)
	}
	return all
}
