package netns

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// New makes a namespace, with nothing in it but a loopback device that is down.
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

// Of is the namespace that a process is in.
func Of(pid int) (*Namespace, error) {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/ns/net")
	if err != nil {
		return nil, fmt.Errorf("finding the network namespace of process %d: %w", pid, err)
	}
	return &Namespace{file: f}, nil
}

// Enter moves the calling thread into the namespace, for good: it is for a thread
// that is locked and will end.
func (n *Namespace) Enter() error {
	if err := unix.Setns(n.FD(), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("entering the network namespace: %w", err)
	}
	return nil
}
