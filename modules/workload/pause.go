package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// pause holds a pod's namespaces until it is told to end, and reaps what
// becomes its child where a pod's containers share their processes.
func pause(ctx context.Context) {
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	defer signal.Stop(children)
	for {
		reap()
		select {
		case <-ctx.Done():
			return
		case <-children:
		}
	}
}

// reap waits for every child that has ended; one signal may stand for several.
func reap() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
	}
}
