//go:build !(linux && amd64)

package clock

// Set makes the clock of a process wrong.
func Set(int, Error) error { return ErrUnsupported }

// Clear makes it right.
func Clear(int) error { return nil }

// Supported returns why this machine cannot do that; nil: it can.
func Supported() error { return ErrUnsupported }
