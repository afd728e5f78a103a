package process

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// watchdog is a shell that reads from a pipe whose other end only this process holds. When this process
// ends, for any reason, the shell reads the end of the pipe and kills a process group. It is for
// systems whose kernel has no parent-death signal.
type watchdog struct {
	shell *exec.Cmd
	pipe  *os.File
}

func newWatchdog(group int) (*watchdog, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making the watchdog's pipe: %w", err)
	}
	defer r.Close()
	shell := exec.Command("/bin/sh", "-c", `read -r _; kill -9 "-$1"`, "sh", strconv.Itoa(group))
	shell.Stdin = r
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := shell.Start(); err != nil {
		w.Close()
		return nil, fmt.Errorf("starting the watchdog: %w", err)
	}
	return &watchdog{shell: shell, pipe: w}, nil
}

// release stops the watchdog.
func (w *watchdog) release() {
	// Kill it before its pipe ends, because it would act otherwise. Its exit status is irrelevant.
	_ = w.shell.Process.Kill()
	_ = w.shell.Wait()
	w.pipe.Close()
}
