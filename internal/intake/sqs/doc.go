// Package sqs receives the notices that EventBridge and Auto Scaling put on an SQS queue.
//
// Every replica polls with several receivers. A message is deleted once its
// notice is durable, or once it is known not to concern this cluster. Unreadable messages
// are never deleted: they are counted, explained, and left to the queue's dead-letter
// queue. Messages may be repeated, late, and in any order.
//
// kinds.go lists what is understood; to add a kind, add a row there and a real message in
// testdata/.
package sqs

// Name is the name of this source in notices, metrics and logs.
const Name = "sqs"
