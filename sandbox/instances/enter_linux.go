package instances

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// namespaces are an instance's own from its first process on. Process 1 creates the cgroup
// namespace itself, once it is in its cgroups.
const namespaces = unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC

// powerButton makes process 1 of an instance shut down (modules/containerd/instance).
const powerButton = unix.SIGPWR

// enterAll moves the calling thread permanently into the namespaces of a process. Its child
// processes then have a process id there too.
func enterAll(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("finding process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	// Threads share root and working directory, and a mount namespace wants its own.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("entering the instance: %w", err)
	}
	if err := unix.Setns(fd, namespaces|unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("entering the instance: %w", err)
	}
	return nil
}
