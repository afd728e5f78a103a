// Package sandboxstate finds the sandboxes of this machine and says how to reach them. Each
// has a directory with a state file, and a lock that its supervisor holds while it lives.
//
// Commands that use a sandbox need only this package. The module sandbox/ runs sandboxes.
package sandboxstate
