//go:build !linux

package osthread

// isMain matters only on systems whose threads have namespaces.
func isMain() bool { return false }
