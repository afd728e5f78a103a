package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lifeboat-dev/lifeboat/modules/containerd/instance/login1"
)

// stopTimeout is the time that processes have to end after SIGTERM. systemd's
// DefaultTimeoutStopSec is longer. But processes that remain here were stopped by the
// kubelet before, or run in a container whose first process ignores the signal.
const stopTimeout = 5 * time.Second

// prepare waits until the kubelet has stopped its pods, and then closes down.
func prepare(bus *login1.Service, down chan<- struct{}) {
	defer close(down)
	fmt.Fprintln(os.Stderr, "instance: shutting down")
	if bus.PrepareForShutdown(context.Background()) {
		fmt.Fprintln(os.Stderr, "instance: all inhibitors are released")
		return
	}
	fmt.Fprintln(os.Stderr, "instance: an inhibitor was not released within the maximum delay")
}

// stopAll sends SIGTERM to all processes, and returns when they have ended or the
// timeout is over. The kernel kills the others when process 1 ends
// (pid_namespaces(7)).
func stopAll(died <-chan os.Signal) error {
	// The kernel sends a signal for -1 to all processes except process 1 (kill(2)).
	if err := unix.Kill(-1, unix.SIGTERM); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("stopping all processes: %w", err)
	}
	late := time.After(stopTimeout)
	for {
		if _, none := reap(); none {
			return nil
		}
		select {
		case <-died:
		case <-late:
			fmt.Fprintf(os.Stderr, "instance: processes still run %s after SIGTERM\n", stopTimeout)
			return nil
		}
	}
}
