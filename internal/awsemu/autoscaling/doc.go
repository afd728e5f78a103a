// Package autoscaling emulates the part of EC2 Auto Scaling that a node interruption
// touches: groups and warm pools whose instances go through lifecycle states, hooks
// that hold them there, and the events and messages that tell of it.
//
// [State] holds everything behind one lock and knows no HTTP; requests.go and
// replies.go translate the Query protocol, routes.go ties the two together. Nothing
// scales by itself: a test or a scenario makes groups, attaches instances and sends
// them on a [Journey]. What happens on the way follows the table of journeys, in
// journeys.go.
package autoscaling
