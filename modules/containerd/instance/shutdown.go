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

// stopPatience is how long processes may take to end after SIGTERM. systemd's
// DefaultTimeoutStopSec is longer, but what has not ended here was asked by the kubelet
// before, or runs in a container whose first process ignores the signal.
const stopPatience = 5 * time.Second

// prepare has the machine wait until the kubelet has stopped its pods, and closes down
// then.
func prepare(bus *login1.Service, down chan<- struct{}) {
	defer close(down)
	fmt.Fprintln(os.Stderr, "instance: shutting down")
	if bus.PrepareForShutdown(context.Background()) {
		fmt.Fprintln(os.Stderr, "instance: no inhibitor is left")
		return
	}
	fmt.Fprintln(os.Stderr, "instance: an inhibitor is left, and the longest delay is over")
}

// stopAll sends SIGTERM to all processes, and returns when they have ended or their time
// is over. The kernel kills what is left when process 1 ends (pid_namespaces(7)).
func stopAll(died <-chan os.Signal) error {
	// To -1 the kernel sends all but process 1 (kill(2)).
	if err := unix.Kill(-1, unix.SIGTERM); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("stopping all processes: %w", err)
	}
	late := time.After(stopPatience)
	for {
		if _, none := reap(); none {
			return nil
		}
		select {
		case <-died:
		case <-late:
			fmt.Fprintf(os.Stderr, "instance: processes are left %s after SIGTERM\n", stopPatience)
			return nil
		}
	}
}
