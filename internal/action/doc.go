// Package action holds what Lifeboat does to a cluster: marking a doomed node,
// putting a node that lives back as it was, having a pod's successor started
// first, and asking a pod to stop. Each action makes one thing true, begins by
// asking whether it already is, makes one API call for it and returns; it never
// waits, retries or remembers.
package action
