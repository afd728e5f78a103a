// Package replacement decides about replacement capacity for an interrupted
// node before its pods are moved: whether to order it, which NodeClaim to
// create, its progress, and when to hand the interrupted NodeClaim to
// Karpenter. For an instance of an Auto Scaling group it decides whether to
// detach it so that the group launches another (group.go). It is pure: facts
// and time are inputs.
// time.
//
// Karpenter drains first and launches capacity meanwhile; Lifeboat reverses the
// order. Karpenter launches a NodeClaim that others create like its own
// (Karpenter documentation, "NodeClaims"). So Lifeboat creates one from the
// NodePool's template with the resources that the pods request. When its node
// is Ready, the pods move and the interrupted NodeClaim is deleted.
//
// If it is uncertain whether the pods fit elsewhere, the package assumes that
// they do not: an additional node costs less than pods without a place.
package replacement
