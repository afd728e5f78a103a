package netns

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// New creates a namespace, which has only a loopback device that is down.
func New() (*Namespace, error) {
	var n *Namespace
	err := onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		f, err := os.Open("/proc/thread-self/ns/net")
		n = &Namespace{file: f}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("making a network namespace: %w", err)
	}
	return n, nil
}

// Of is the namespace of a process.
func Of(pid int) (*Namespace, error) {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/ns/net")
	if err != nil {
		return nil, fmt.Errorf("finding the network namespace of process %d: %w", pid, err)
	}
	return &Namespace{file: f}, nil
}

// Enter moves the calling thread permanently into the namespace. The thread must be locked, and must
// end.
func (n *Namespace) Enter() error {
	if err := unix.Setns(n.FD(), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("entering the network namespace: %w", err)
	}
	return nil
}
