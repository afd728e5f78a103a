package sqs

import (
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// Service is the SQS API. Identify returns the owner of an access key.
func Service(s *State, identify func(accessKey string) wire.Identity) wire.Service {
	a := &api{state: s, scope: s.scope, identify: identify}
	return wire.Service{
		Name:            "sqs",
		Protocol:        wire.Query,
		TargetPrefix:    "AmazonSQS",
		ErrorNamespace:  "com.amazonaws.sqs",
		QueryCompatible: true,
		XMLNamespace:    "http://queue.amazonaws.com/doc/2012-11-05/",
		Permission:      permission,
		Resource:        a.resource,
		Accesses:        a.accesses,
		Throttled: &wire.Error{
			Status: http.StatusForbidden, Code: "RequestThrottled", Message: "The request was denied due to request throttling.",
		},
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

// permission is what an action needs: batches are authorized as their single actions.
func permission(action string) string { return strings.TrimSuffix(action, "Batch") }

// resource is the ARN of a request's queue.
func (a *api) resource(r *wire.Request) string {
	name := r.Value("QueueName")
	if u, err := url.Parse(r.Value("QueueUrl")); err == nil && name == "" {
		name = path.Base(u.Path)
	}
	if name == "." {
		name = path.Base(r.Path) // old clients put it into the path
	}
	if name == "/" {
		name = ""
	}
	return a.scope.ARN("sqs", name)
}
