// Package health emulates the part of AWS Health that a cluster uses: the events that it sends to
// EventBridge about scheduled changes and issues, and repeats when they begin, move and end. It has
// no API on the wire.
//
// [State.Schedule] schedules maintenance of instances everywhere at once: EC2 lists and executes
// it, instance metadata shows it, and Health sends events.
package health
