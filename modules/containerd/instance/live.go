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
	// startAgain is how long after its end a program is started again; the kubelet's
	// unit of the EKS images has the same.
	startAgain = 5 * time.Second
	// importPatience is how long containerd may take to come up and import.
	importPatience = time.Minute
)

// live runs the programs until the machine has shut down, or with an error: a machine's
// end is otherwise the end of its power.
func live(c config) error {
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
		ctx, cancel := context.WithTimeout(context.Background(), importPatience)
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
					continue // a container's, whose parent has gone
				}
				delete(running, pid)
				fmt.Fprintf(os.Stderr, "instance: %s has ended, starting it again in %s\n", p.Path, startAgain)
				time.AfterFunc(startAgain, func() { due <- p })
			}
		case <-pressed:
			pressed = nil // the button does nothing more
			go prepare(bus, down)
		case <-down:
			return stopAll(died)
		}
	}
}

// start starts the program in a session of its own.
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
	// Not os/exec: whatever dies is waited for in one place, reap.
	return syscall.ForkExec(p.Path, append([]string{p.Path}, p.Args...), &syscall.ProcAttr{
		Dir: "/", Env: env, Files: []uintptr{null.Fd(), log.Fd(), log.Fd()},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
}

// reap waits for all that has died, and tells whether no child is left.
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
