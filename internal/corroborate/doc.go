// Package corroborate decides whether independent facts agree on which Node belongs to an
// instance, and on whether the instance is gone. A kubelet states its own instance
// (spec.providerID), and a message can name any. Neither alone is a reason for what cannot be
// undone. The API server has authenticated the name of a Node. EC2 knows the names and addresses of
// an instance, and Karpenter the Node of its NodeClaim. The package is pure.
package corroborate
