// Package replacement decides about the capacity that is brought up for a doomed
// node before its pods are moved: whether any is needed, what NodeClaim to make,
// how it stands, and when the doomed NodeClaim is given over to Karpenter; or, for
// an instance of an Auto Scaling group, whether it is taken out of the group so
// that this launches another (group.go). It is pure: it is told the world and the
// time.
//
// Karpenter drains first and brings up capacity meanwhile; here it is the other
// way round. A NodeClaim that somebody else makes is launched like Karpenter's
// own (Karpenter documentation, "NodeClaims"), so one is made from the NodePool's
// template, as large as the pods ask for, and once its node is Ready the pods are
// moved and the doomed NodeClaim is deleted.
//
// Where it is not certain that the pods fit elsewhere, or that they do not, it
// says what costs a node and not what costs the pods: that they do not.
package replacement
