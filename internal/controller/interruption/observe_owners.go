package interruption

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// maxSurgedNodes is how many nodes may be drained at a time while pods are surged by default. The
// evictions of a larger reclaim need the time that surged pods would wait for their successors.
const maxSurgedNodes = 20

// observeOwners reads the owners of the pods, where some are surged.
func (c *Controller) observeOwners(ctx context.Context, f *facts, d policy.Decision) error {
	if d.StrategyByDefault && d.Strategy == v1beta1.StrategySurge && c.Pods.Watched() > maxSurgedNodes {
		f.storm = fmt.Sprintf("more than %d nodes are being drained, and no rule says strategy: Surge", maxSurgedNodes)
		d.Strategy = v1beta1.StrategyEvict
	}
	f.surges = c.Owners != nil && (record.Surges(&d) && !c.SurgeDisabled ||
		slices.ContainsFunc(f.pods, func(pod *corev1.Pod) bool { return pod.Labels[v1beta1.LabelSurged] != "" }))
	if !f.surges || !f.podsKnown {
		return nil
	}
	var err error
	f.owners, f.ownersKnown, err = c.Owners.Owners(ctx, f.nodeName, f.pods)
	f.ownersSince = c.ownerReads.since(f.nodeName, f.ownersKnown, f.now)
	return err
}

// pendingReads remembers since when this process reads something about a node, such as the owners
// of its pods. After a restart the pods wait a few seconds more.
type pendingReads struct {
	mu    sync.Mutex
	begun map[string]time.Time // by node
}

// since returns since when it is read; zero: it is known.
func (r *pendingReads) since(node string, known bool, now time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known {
		delete(r.begun, node)
		return time.Time{}
	}
	if r.begun == nil {
		r.begun = map[string]time.Time{}
	}
	if _, asked := r.begun[node]; !asked {
		r.begun[node] = now
	}
	return r.begun[node]
}

func (r *pendingReads) forget(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.begun, node)
}

// forget ends the watches of a node's pods and of their owners.
func (c *Controller) forget(node string) {
	c.Pods.Forget(node)
	c.podReads.forget(node)
	if c.Owners != nil {
		c.Owners.Forget(node)
		c.ownerReads.forget(node)
	}
}
