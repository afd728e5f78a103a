// Package sqs takes in the notices that EventBridge, and whoever else, puts on
// an SQS queue.
//
// Every replica polls with several receivers. A message is deleted once its
// notice is durable, or once it is known to be of no concern. What cannot be
// read is never deleted: it is counted, explained, and left to the queue's
// dead-letter queue. Messages may come twice, late, and in any order.
//
// What is understood stands in kinds.go; to add a kind, add a row there and a
// real message in testdata/.
package sqs

// Name is the name of this source in notices, metrics and logs.
const Name = "sqs"
