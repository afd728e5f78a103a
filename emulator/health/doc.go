// Package health emulates the side of AWS Health that a cluster hears: the events that
// it sends to EventBridge about scheduled changes and issues, and sends again as they
// begin, move and end. There is no API on the wire.
//
// [State.Schedule] plans maintenance of instances everywhere at once: EC2 lists it and
// carries it out, instance metadata shows it, and Health tells of it.
package health
