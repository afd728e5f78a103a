// Package ec2 is the part of Amazon EC2 that a node interruption touches, as an
// emulator: instances and spot requests with their life cycles, status checks,
// tags, and the events that EC2 sends to EventBridge on the way; and the part that
// brings new capacity: a catalogue of types with prices, launch templates, and instant
// fleets, which choose among pools whose capacity can run out ([State.SetCapacity]).
//
// [State] holds everything behind one lock and knows no HTTP; the files
// requests*.go and replies*.go translate the ec2query protocol, routes.go ties the two
// together.
// What EC2 does by itself (booting, reclaiming, shutting down) runs on timers that
// end with [State.Run]. A machine simulator follows instances through
// [State.Subscribe] and [State.Instances].
package ec2
