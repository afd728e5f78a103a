package capacity

import (
	"context"
	"sync"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// poolCacheTTL is how long a NodePool counts as read. In a reclaim of many nodes the
// answer is the same for all nodes of a pool.
const poolCacheTTL = 2 * time.Second

// poolCache keeps NodePools and their NodeClasses for a moment.
type poolCache struct {
	mu    sync.Mutex
	pools map[string]cachedPool // by NodePool
}

type cachedPool struct {
	pool  *replacement.Pool  // nil: it does not exist
	class *replacement.Class // nil: it does not exist, or is not of Karpenter for AWS
	until time.Time
}

// poolVerdict says that no replacement can be launched, where the NodePool of the node
// alone tells that. It costs one read for all nodes of the pool and no request for the
// node. It reports false where the rest has to be read, also after an error.
func (k karpenter) poolVerdict(ctx context.Context, in Input, early replacement.QuickFacts) (*v1beta1.ReplacementStatus, bool) {
	name := in.Node.Labels[replacement.LabelNodePool]
	if name == "" {
		return nil, false
	}
	k.Memory.pools.mu.Lock()
	defer k.Memory.pools.mu.Unlock() // one read at a time: the others wait for its result
	cached, ok := k.Memory.pools.pools[name]
	if !ok || !in.Now.Before(cached.until) {
		r := replacement.Facts{Interrupted: &replacement.Claim{Labels: map[string]string{replacement.LabelNodePool: name}}}
		if err := k.readPool(ctx, &r); err != nil {
			return nil, false // the full decision reports it
		}
		cached = cachedPool{r.Pool, r.Class, in.Now.Add(poolCacheTTL)}
		if k.Memory.pools.pools == nil {
			k.Memory.pools.pools = map[string]cachedPool{}
		}
		k.Memory.pools.pools[name] = cached
	}
	return replacement.DecidePool(early, name, cached.pool, cached.class)
}
