// Package mutate has the changes that Lifeboat makes in a cluster: marking an interrupted node,
// restoring a node, starting a pod's successor first, and evicting a pod. Each action makes one
// thing true. It first checks whether it already is, makes one API call and returns; it never
// waits, retries or keeps state.
package mutate
