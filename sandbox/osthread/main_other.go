//go:build !linux

package osthread

// isMain matters only where threads have namespaces.
func isMain() bool { return false }
