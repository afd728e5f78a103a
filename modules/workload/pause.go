package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// pause holds a pod's namespaces until ctx ends. It also reaps orphans if the pod's
// containers share a process namespace.
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

// reap never endsy ended child; one signal can be for several.
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
