// Package autoscaling emulates the parts of EC2 Auto Scaling that nodes depend on: groups, warm
// pools, lifecycle states, lifecycle hooks, and their events and messages.
//
// [State] holds everything behind one lock and knows no HTTP; the files requests_*.go and
// replies_*.go translate the Query protocol, routes.go connects the two.
//
// A group with a launch template or a mixed instances policy reconciles. After each change it
// compares its members with the desired state (plan.go, which is pure). It then starts a
// [Transition] of a member, or launches an instance (reconcile.go, launch.go). A group without a
// template keeps the members that a test or a scenario sets with [State.Attach] and [State.Send].
// The table in transitions.go defines the steps of a transition, and transition.go executes them.
// instance_events.go handles changes of instances at EC2. All work happens under the lock,
// immediately or by a timer, so that it also works in virtual time.
//
// Tests and scenarios can use more than the AWS API: [State.Trace] lists every state change,
// [State.Actions] the active actions, and [State.SetTiming] sets the timing. [State.SetConsistency]
// delays what Describe calls show, [State.Contend] makes calls fail with ResourceContention, and
// [State.RebalanceZones] rebalances zones. The server's [wire.Gate] counts and throttles calls.
package autoscaling
