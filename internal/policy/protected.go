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

// deferVoluntary delays voluntary drains of a protected node. EC2 may not act on a rebalance
// recommendation, so no pod is moved for it. AWS can move or cancel a planned change, so its drain
// starts late. A drain that has begun continues.
func (q *matchContext) deferVoluntary(c match, hasBegun bool) match {
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
