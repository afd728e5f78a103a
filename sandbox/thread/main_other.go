//go:build !linux

package thread

// isMain matters only where threads have namespaces.
func isMain() bool { return false }
