//go:build !(linux && amd64)

package clock

import (
	"errors"
	"os"
)

var errUnsupported = errors.New("changing the clock of one process needs Linux on x86-64")

// Set makes the clock of a process wrong.
func Set(*os.Process, Error) error { return errUnsupported }

// Clear makes it right.
func Clear(*os.Process) error { return nil }

// Supported returns why this machine cannot do that; nil: it can.
func Supported() error { return errUnsupported }
