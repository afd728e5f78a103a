package sqs

import "github.com/lifeboat-dev/lifeboat/internal/awsemu/wire"

// Service is SQS on the wire. Identify tells who holds an access key.
func Service(s *State, identify func(accessKey string) wire.Identity) wire.Service {
	a := &api{state: s, scope: s.scope, identify: identify}
	return wire.Service{
		Name:            "sqs",
		Protocol:        wire.Query,
		TargetPrefix:    "AmazonSQS",
		ErrorNamespace:  "com.amazonaws.sqs",
		QueryCompatible: true,
		XMLNamespace:    "http://queue.amazonaws.com/doc/2012-11-05/",
		Actions: map[string]wire.Action{
			"AddPermission":                wire.Do(a.addPermission),
			"CancelMessageMoveTask":        wire.Do(a.cancelMessageMoveTask),
			"ChangeMessageVisibility":      wire.Do(a.changeMessageVisibility),
			"ChangeMessageVisibilityBatch": wire.Do(a.changeMessageVisibilityBatch),
			"CreateQueue":                  wire.Do(a.createQueue),
			"DeleteMessage":                wire.Do(a.deleteMessage),
			"DeleteMessageBatch":           wire.Do(a.deleteMessageBatch),
			"DeleteQueue":                  wire.Do(a.deleteQueue),
			"GetQueueAttributes":           wire.Do(a.getQueueAttributes),
			"GetQueueUrl":                  wire.Do(a.getQueueURL),
			"ListDeadLetterSourceQueues":   wire.Do(a.listDeadLetterSourceQueues),
			"ListMessageMoveTasks":         wire.Do(a.listMessageMoveTasks),
			"ListQueueTags":                wire.Do(a.listQueueTags),
			"ListQueues":                   wire.Do(a.listQueues),
			"PurgeQueue":                   wire.Do(a.purgeQueue),
			"ReceiveMessage":               wire.Do(a.receiveMessage),
			"RemovePermission":             wire.Do(a.removePermission),
			"SendMessage":                  wire.Do(a.sendMessage),
			"SendMessageBatch":             wire.Do(a.sendMessageBatch),
			"SetQueueAttributes":           wire.Do(a.setQueueAttributes),
			"StartMessageMoveTask":         wire.Do(a.startMessageMoveTask),
			"TagQueue":                     wire.Do(a.tagQueue),
			"UntagQueue":                   wire.Do(a.untagQueue),
		},
	}
}
