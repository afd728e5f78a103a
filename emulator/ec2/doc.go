// Package ec2 emulates the parts of Amazon EC2 that node interruptions and new capacity need. These
// are instances and spot requests with their life cycles, status checks, tags, and EC2's events for
// EventBridge. For new capacity it has a catalogue of types with prices, launch templates, and
// instant fleets. Fleets choose among pools of limited capacity ([State.SetCapacity]).
//
// [State] holds everything behind one lock and knows no HTTP; the files requests*.go and
// replies*.go translate the ec2query protocol, routes.go connects the two. EC2's own actions
// (booting, reclaiming, shutting down) run on timers that end with [State.Run]. A machine simulator
// follows instances through [State.Subscribe] and [State.Instances].
package ec2
