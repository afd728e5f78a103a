// Package action holds what Lifeboat does to a cluster: marking a doomed node,
// putting a node that lives back as it was, and asking a pod to stop. Each
// action makes one thing true, begins by asking whether it already is, makes
// one API call and returns; it never waits, retries or remembers.
package action
