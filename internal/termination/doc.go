// Package termination decides what the lifecycle hooks are told that hold an
// instance on its way out of its Auto Scaling group while its node is drained:
// that more time is needed, that the instance may go, or nothing. It is pure: it is
// told the world and the time.
//
// The lifecycle state is the truth. An event only says that a hook has begun to
// hold the instance, and brings the token by which this firing can be answered and
// no other. A hook is answered once the state has left the wait, and not when a
// call was taken; that there is no action to answer is one more reason to look at
// the state.
package termination
