package bootagent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxOutput bounds the end of a command's output that is kept.
	maxOutput = 2 << 10
	// killWait is how long a command may take to end after SIGTERM.
	killWait = 5 * time.Second
)

// Exec runs a command in its own process group, which ends with ctx.
func Exec(ctx context.Context, command []string) (string, error) {
	if len(command) == 0 {
		return "", errors.New("there is no command")
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // G204: root writes the command into the unit, or a flag
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = killWait
	var out tail
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if ctx.Err() != nil && cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // its children, if they still run
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it ended without an error, but a child still holds its output
	}
	text := strings.TrimSpace(out.kept.String())
	if err != nil {
		lines := strings.Split(text, "\n")
		return text, fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, lines[len(lines)-1])
	}
	return text, nil
}

// tail keeps the end of its input.
type tail struct{ kept bytes.Buffer }

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.kept.Write(p)
	if extra := t.kept.Len() - maxOutput; extra > 0 {
		t.kept.Next(extra)
	}
	return len(p), nil
}

// DiskUsed returns the bytes in use on the file system of a directory.
func DiskUsed(dir string) func() (uint64, error) {
	return func() (uint64, error) {
		var s unix.Statfs_t
		if err := unix.Statfs(dir, &s); err != nil {
			return 0, fmt.Errorf("reading the file system of %s: %w", dir, err)
		}
		return (s.Blocks - s.Bfree) * uint64(s.Bsize), nil //nolint:gosec // G115: the kernel reports no negative block size
	}
}
