package instances

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// cgroupHome is where distributions mount cgroups.
	cgroupHome = "/sys/fs/cgroup"
	// sweepTimeout is how long killed processes may take to end.
	sweepTimeout = 15 * time.Second
)

func hasCgroups() bool {
	_, v2 := os.Stat(cgroupHome + "/cgroup.controllers")
	_, v1 := os.Stat(cgroupHome + "/memory")
	return v1 == nil || v2 == nil
}

// Sweep kills the processes and removes the directories of the cgroups of that name, which is that
// of Options.Cgroup, or of an instance below it. None may exist.
func Sweep(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	for {
		err := sweep(name)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("removing the remains of instances: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// sweep tries once: cgroups with dying processes cannot be removed yet.
func sweep(name string) error {
	roots, err := filepath.Glob(cgroupHome + "/*/" + name)
	if err != nil {
		return err
	}
	var errs []error
	for _, root := range append(roots, filepath.Join(cgroupHome, name)) {
		if info, err := os.Lstat(filepath.Dir(root)); err != nil || info.Mode()&fs.ModeSymlink != 0 {
			continue // cpu -> cpu,cpuacct
		}
		errs = append(errs, sweepTree(root))
	}
	return errors.Join(errs...)
}

func sweepTree(root string) error {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range slices.Backward(dirs) { // from the bottom up
		killAll(dir)
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// killAll kills what is in a cgroup. What cannot be read is empty.
func killAll(dir string) {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return
	}
	for _, line := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(line); err == nil && pid > 1 {
			_ = syscall.Kill(pid, syscall.SIGKILL) // the process may have ended
		}
	}
}
