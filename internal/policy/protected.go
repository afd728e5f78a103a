package policy

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// IsProtected reports whether the owner of a node asked for no voluntary disruption of it.
// Karpenter copies the annotation from the NodeClaim at registration, and reads only the Node's
// after that.
// Lifeboat itself sets the annotation on a replacement until the pods have landed there.
func IsProtected(node *corev1.Node) bool {
	return node != nil && node.Annotations[v1beta1.AnnotationKarpenterDoNotDisrupt] == "true" && node.Labels[v1beta1.LabelReplacesInstance] == ""
}

// spareProtected holds what is voluntary on a protected node. A rebalance recommendation may
// stay without consequence, so no pod is moved for it. AWS can still move or cancel a planned
// change until it is near. A drain that has begun goes on.
func (q *matchContext) spareProtected(c match, hasBegun bool) match {
	moves := c.action == v1beta1.ActionDrain || c.action == v1beta1.ActionTerminate
	if hasBegun || !moves || c.doNotDisrupt == v1beta1.DoNotDisruptIgnore || !IsProtected(q.node) {
		return c
	}
	switch q.notice.Kind {
	case notice.KindRebalanceRecommendation:
		c.because += fmt.Sprintf("; it says %s, but the node has %s, and EC2 may not take the instance", c.action, v1beta1.AnnotationKarpenterDoNotDisrupt)
		c.action = v1beta1.ActionNotify
	case notice.KindScheduledChange:
		if c.notBefore > lead {
			c.because += fmt.Sprintf("; its notBefore %s does not count, since the node has %s", span(c.notBefore), v1beta1.AnnotationKarpenterDoNotDisrupt)
		}
		c.notBefore = c.lead()
	}
	return c
}
