// Package adopt plans the cut-over of interruption handling from Karpenter to Lifeboat, and the way back. It is pure.
//
// The order is what matters: at each moment at least one of the two programs receives notices. Lifeboat
// receives them before Karpenter's queue is turned off, and until Karpenter has its queue again. While both
// receive them, Karpenter deletes a NodeClaim first, and Lifeboat writes the deadline to it.
package adopt
