// Package poll contains what the polling sources share.
//
// A poll returns the same facts in each round. A Deduper remembers which of
// them are durable, so that a repeat costs neither a read nor a write, and
// retries the others. A Poller polls each query at its own interval and reports
// failures with their reason.
package poll
