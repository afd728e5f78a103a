// Package sqs emulates Amazon SQS: standard queues over both of its protocols,
// AWS JSON 1.0 and the older Query.
//
// Behaviour follows the SQS Developer Guide and API Reference. Standard queues
// promise little: at-least-once, in no order. The emulator delivers in order
// and once where it can, but keeps what clients trip over: a new receipt handle
// on every receive, in-flight messages that come back, partial batch failures,
// the 60 s after a deletion or a purge. FIFO queues are refused as unsupported.
package sqs
