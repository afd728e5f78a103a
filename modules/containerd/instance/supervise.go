package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lifeboat-dev/lifeboat/modules/containerd/instance/login1"
)

const (
	// restartDelay is the delay before an ended program is restarted. The kubelet's
	// unit of the EKS images has the same delay.
	restartDelay = 5 * time.Second
	// importTimeout limits the start of containerd and the import.
	importTimeout = time.Minute
)

// supervise runs the programs until the instance has shut down. It returns an error
// if a program cannot start; the instance then ends like a power failure.
func supervise(c config) error {
	pressed := make(chan os.Signal, 1)
	signal.Notify(pressed, unix.SIGPWR)
	bus, err := login1.Listen(c.SystemBus, time.Duration(c.InhibitDelayMaxSec)*time.Second)
	if err != nil {
		return err
	}
	down := make(chan struct{})
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)
	due := make(chan program, 1+len(c.Programs))
	due <- c.Containerd
	imported := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), importTimeout)
		defer cancel()
		imported <- importImages(ctx, c.Socket, c.Images)
	}()
	running := map[int]program{}
	for {
		select {
		case p := <-due:
			pid, err := p.start(c.Env)
			if err != nil {
				return fmt.Errorf("starting %s: %w", p.Path, err)
			}
			running[pid] = p
		case err := <-imported:
			if err != nil {
				return fmt.Errorf("importing images: %w", err)
			}
			for _, p := range c.Programs {
				due <- p
			}
		case <-died:
			dead, _ := reap()
			for _, pid := range dead {
				p, ours := running[pid]
				if !ours {
					continue // an orphaned process of a container
				}
				delete(running, pid)
				fmt.Fprintf(os.Stderr, "instance: %s ended, restarting it in %s\n", p.Path, restartDelay)
				time.AfterFunc(restartDelay, func() { due <- p })
			}
		case <-pressed:
			pressed = nil // ignore further signals
			go prepare(bus, down)
		case <-down:
			return stopAll(died)
		}
	}
}

// start starts the program in a new session.
func (p program) start(env []string) (pid int, err error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	// Not os/exec: only reap waits for processes.
	return syscall.ForkExec(p.Path, append([]string{p.Path}, p.Args...), &syscall.ProcAttr{
		Dir: "/", Env: env, Files: []uintptr{null.Fd(), log.Fd(), log.Fd()},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
}

// reap waits for all ended processes, and reports whether no child is left.
func reap() (dead []int, none bool) {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil || pid == 0:
			return dead, errors.Is(err, unix.ECHILD)
		default:
			dead = append(dead, pid)
		}
	}
}
