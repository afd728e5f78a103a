//go:build !linux

package footprint

// dropProgram does nothing: only Linux has been measured.
func dropProgram() {}
