// Package nodegroup knows how an Auto Scaling group, its lifecycle hooks and its
// warm pool are wanted, and makes them so.
//
// It works in three steps. [Observe] reads what is there; [Diff] is pure and lists
// what has to be done next, and what is wrong; [Apply] does one step. A step is in
// a plan only once what it needs was seen to be there: a warm pool is put only
// where the launch hook was read back. So whoever runs it looks, plans, acts and
// looks again, and may be stopped at any line.
//
// Three things are never done. The desired capacity of a group that is there is
// not changed. A hook is not deleted to be made anew: it is put in its place. And
// nothing is deleted that holds an instance, or that would take a running node
// down.
package nodegroup
