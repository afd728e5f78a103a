package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// hierarchy is a cgroup hierarchy: one of several in cgroup v1, or the only one of
// v2.
type hierarchy struct {
	mount       string   // its mount point on the host
	controllers []string // in the format of mount(8); nil for v2
}

// hierarchies returns the mounted hierarchies.
func hierarchies() ([]hierarchy, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []hierarchy
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if h, ok := parseHierarchy(lines.Text()); ok {
			all = append(all, h)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no cgroup hierarchy is mounted")
	}
	return all, lines.Err()
}

// parseHierarchy reads a line of mountinfo (proc_pid_mountinfo(5)), such as
//
//	36 35 0:31 / /sys/fs/cgroup/cpu rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct
func parseHierarchy(line string) (hierarchy, bool) {
	left, right, ok := strings.Cut(line, " - ")
	mount, kind := strings.Fields(left), strings.Fields(right)
	if !ok || len(mount) < 5 || len(kind) < 3 || kind[0] != "cgroup" && kind[0] != "cgroup2" {
		return hierarchy{}, false
	}
	h := hierarchy{mount: mount[4]}
	if kind[0] == "cgroup2" {
		return h, true
	}
	for _, o := range strings.Split(kind[2], ",") {
		key, _, _ := strings.Cut(o, "=")
		switch {
		case slices.Contains([]string{"rw", "ro", "xattr", "seclabel", "clone_children", "release_agent"}, key):
		case key == "name":
			h.controllers = append(h.controllers, "none", o)
		default:
			h.controllers = append(h.controllers, o)
		}
	}
	return h, true
}

func (h hierarchy) isV2() bool { return h.controllers == nil }

// enterCgroups moves this process into its own cgroup directories. They become the
// roots of a new cgroup namespace, so that the kubepods directories of several
// kubelets do not conflict.
func enterCgroups(all []hierarchy, name string) error {
	for _, h := range all {
		dir := filepath.Join(h.mount, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for _, level := range levels(name) {
			if err := h.prepare(filepath.Join(h.mount, level)); err != nil {
				return err
			}
		}
		if err := write(filepath.Join(dir, "cgroup.procs"), "0"); err != nil {
			return err
		}
	}
	return nil
}

// levels returns the directories on a relative path, including the last one.
func levels(path string) []string {
	var all []string
	for p := path; p != "." && p != "/"; p = filepath.Dir(p) {
		all = append([]string{p}, all...)
	}
	return all
}

// prepare configures a new directory so that it can contain processes.
func (h hierarchy) prepare(dir string) error {
	parent := filepath.Dir(dir)
	switch {
	case h.isV2():
		// Enable the parent's controllers. The v2 hierarchy of a hybrid system has
		// none.
		has, err := os.ReadFile(filepath.Join(parent, "cgroup.controllers"))
		if err != nil || len(strings.Fields(string(has))) == 0 {
			return err
		}
		return write(filepath.Join(parent, "cgroup.subtree_control"), "+"+strings.Join(strings.Fields(string(has)), " +"))
	case slices.Contains(h.controllers, "cpuset"):
		// A new cpuset is empty and accepts no process until it is filled
		// (cpuset(7)).
		for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
			text, err := os.ReadFile(filepath.Join(parent, name))
			if err != nil {
				return err
			}
			if err := write(filepath.Join(dir, name), string(text)); err != nil {
				return err
			}
		}
	}
	return nil
}

// reexec enters a new cgroup namespace and executes the second stage of this program.
func reexec(file string) error {
	runtime.LockOSThread() // unshare affects this thread; exec makes it the only one
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("creating a cgroup namespace: %w", err)
	}
	// PR_SET_PDEATHSIG is set per thread. The thread that inherited it can be another
	// one than this (prctl(2): cleared for a child of fork).
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("setting the parent death signal: %w", err)
	}
	return unix.Exec("/proc/self/exe", []string{"instance", "init", file}, os.Environ())
}

// moveToLeaf moves this process into a subdirectory if only v2 is mounted: a
// directory with processes cannot enable controllers for its subdirectories
// (cgroups(7), "no internal processes").
func moveToLeaf(all []hierarchy, name string) error {
	if len(all) != 1 || !all[0].isV2() {
		return nil
	}
	dir := filepath.Join(all[0].mount, name, "init")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return write(filepath.Join(dir, "cgroup.procs"), "0")
}

// mountCgroups mounts the hierarchies below root at their host paths. In the cgroup
// namespace each has this instance's directory as its root.
func mountCgroups(root string, all []hierarchy) error {
	const home = "/sys/fs/cgroup"
	if len(all) == 1 && all[0].isV2() {
		return mount("cgroup2", root+home, "cgroup2", 0, "")
	}
	if err := mount("tmpfs", root+home, "tmpfs", 0, "mode=755"); err != nil {
		return err
	}
	for _, h := range all {
		kind := "cgroup"
		if h.isV2() {
			kind = "cgroup2"
		}
		to := filepath.Join(root+home, filepath.Base(h.mount))
		if err := os.Mkdir(to, 0o755); err != nil {
			return err
		}
		if err := mount("cgroup", to, kind, 0, strings.Join(h.controllers, ",")); err != nil {
			return err
		}
		if err := linkControllers(to, h.controllers); err != nil {
			return err
		}
	}
	return nil
}

// linkControllers adds symbolic links for controllers that share a hierarchy, as
// systemd does: cpu -> cpu,cpuacct.
func linkControllers(at string, controllers []string) error {
	for _, c := range controllers {
		link := filepath.Join(filepath.Dir(at), c)
		if c == "none" || strings.Contains(c, "=") || link == at {
			continue
		}
		if err := os.Symlink(filepath.Base(at), link); err != nil {
			return err
		}
	}
	return nil
}

// write writes to an existing file: a kernel setting.
func write(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
