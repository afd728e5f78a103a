// Package autoscaling emulates EC2 Auto Scaling as far as nodes are concerned: groups and
// warm pools whose instances go through lifecycle states, hooks that hold them there, and
// the events and messages that tell of it.
//
// [State] holds everything behind one lock and knows no HTTP; the files requests_*.go and
// replies_*.go translate the Query protocol, routes.go ties the two together.
//
// A group with a launch template or a mixed instances policy lives: whenever something
// changes it compares what it has with what it wants (plan.go, which is pure), and sends
// instances on a [Journey] or launches them (keep.go, launch.go). One without stays as a
// test or a scenario makes it, by [State.Attach] and [State.Send]. What happens on a
// journey follows the table in journeys.go and is played by trip.go; what EC2 does to
// instances meanwhile is heard in follow.go. Everything happens under the lock, at once or
// by a timer, so that it works in virtual time too.
//
// For tests and scenarios there are, besides what AWS has: [State.Trace], every change of
// state; [State.Actions], the actions that wait; [State.SetTiming]; [State.SetConsistency],
// for answers that are old; [State.Contend], for calls that are in each other's way; and
// [State.RebalanceZones]. Calls are counted, and throttled, at the server's [wire.Gate].
package autoscaling
