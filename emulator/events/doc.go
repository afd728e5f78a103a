// Package events emulates Amazon EventBridge: buses, rules with event patterns,
// targets, and the delivery of matching events to SQS queues.
//
// [State] holds buses and rules behind one lock and knows no HTTP; requests.go
// translates the JSON protocol, routes.go lists the actions. [State.Emit] is how the
// other emulated services put their own aws.* events on the default bus, which callers
// of PutEvents cannot.
package events
