// Package poll is what all ways of asking have in common, as opposed to those
// that are told.
//
// Whoever asks sees the same thing again with each round. A Ledger remembers
// what it has made durable, so that a repeat costs neither a read nor a write,
// and keeps what it could not make durable yet until it can. Rounds asks
// questions at their own pace, and says which of them is not answered and why.
package poll
