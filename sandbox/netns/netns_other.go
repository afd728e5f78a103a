//go:build !linux

package netns

import "errors"

var errLinuxOnly = errors.New("network namespaces need Linux")

// New creates a namespace, on Linux.
func New() (*Namespace, error) { return nil, errLinuxOnly }

// Of is the namespace of a process, on Linux.
func Of(int) (*Namespace, error) { return nil, errLinuxOnly }

// Enter moves the calling thread into the namespace, on Linux.
func (n *Namespace) Enter() error { return errLinuxOnly }
