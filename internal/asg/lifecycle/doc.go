// Package lifecycle decides about the lifecycle hooks of Auto Scaling groups, for
// launches and for terminations. The agent on the machine, the launch loop and the
// drain call it, and keep only the calls and what has to be written down.
//
// [Read] says where an instance stands. [Hold] says what the hooks that hold it are
// sent, and when: a heartbeat, a result, or nothing yet. [Decide] adds what is known
// of a launch, and [DecideTermination] what is known of a drain.
//
// The lifecycle state decides. A hook is done once the state has left :Wait, and not
// when a call was accepted. "No active Lifecycle Action" is no failure: it says that
// the state has to be read again ([NoAction]). The package is pure: it gets what is
// known, and the time.
package lifecycle
