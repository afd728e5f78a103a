// Package sns emulates Amazon SNS: standard topics that deliver to SQS queues of the same account.
//
// EventBridge publishes through [State.Deliver], without condition keys, as on AWS: "You can't use
// Condition blocks in Amazon SNS topic policies for EventBridge" (EventBridge User Guide, "Using
// resource-based policies"). A statement with a condition on the rule allows nothing.
package sns
