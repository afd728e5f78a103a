// Package lifecycle decides about the lifecycle hooks of Auto Scaling groups, for launches and
// for terminations. The agent on the machine, the launch controller and the drain use it, and
// only make the calls and store the results.
//
// [Read] parses the state of an instance. [Hold] says which calls the hooks that hold it need,
// and when: a heartbeat, a result, or none yet. [Decide] adds the facts of a launch, and
// [DecideTermination] those of a drain.
//
// The lifecycle state decides. A hook is done once the state has left :Wait, and not when a call
// was accepted. "No active Lifecycle Action" is no failure: it means that the state must be read
// again ([NoAction]). The package is pure: facts and time are its input.
package lifecycle
