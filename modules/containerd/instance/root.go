package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// fresh are directories in which nothing of the machine outside may be seen: a
// kubelet would ask for the pods of another. containerd's must be no overlay
// either, since an overlay cannot be the upper layer of one.
var fresh = []string{"/run", "/tmp", "/var/lib/containerd", "/var/lib/kubelet", "/var/lib/cni", "/var/log"}

// build makes the file system: the machine's own, on top of which all that is
// written goes to memory. It is gone with the last process of the instance.
func build(c config, cgroups []hierarchy) error {
	if err := unix.Sethostname([]byte(c.Hostname)); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	// First of all: no mount made here may be seen outside.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := mount("tmpfs", c.Root, "tmpfs", 0, "mode=755"); err != nil {
		return err
	}
	upper, work, root := c.Root+"/upper", c.Root+"/work", c.Root+"/merged"
	for _, dir := range []string{upper, work, root} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	if err := mount("overlay", root, "overlay", 0, "lowerdir=/,upperdir="+upper+",workdir="+work); err != nil {
		return err
	}
	if err := systemMounts(root, cgroups); err != nil {
		return err
	}
	for _, b := range c.Binds {
		if err := b.mount(root); err != nil {
			return err
		}
	}
	for i, cv := range c.Covers {
		if err := cv.mount(root, filepath.Join(c.Root, "cover-"+strconv.Itoa(i))); err != nil {
			return err
		}
	}
	return enter(root)
}

func systemMounts(root string, cgroups []hierarchy) error {
	for _, dir := range append([]string{"/proc", "/sys", "/dev"}, fresh...) {
		if err := os.MkdirAll(root+dir, 0o755); err != nil {
			return err
		}
	}
	if err := mount("proc", root+"/proc", "proc", 0, ""); err != nil {
		return err
	}
	if err := mount("sysfs", root+"/sys", "sysfs", 0, ""); err != nil {
		return err
	}
	if err := mount("/dev", root+"/dev", "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	for _, dir := range fresh {
		if err := mount("tmpfs", root+dir, "tmpfs", 0, "mode=755"); err != nil {
			return err
		}
	}
	if err := os.Chmod(root+"/tmp", 0o1777); err != nil {
		return err
	}
	return mountCgroups(root, cgroups)
}

func (b bind) mount(root string) error {
	to := filepath.Join(root, b.To)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	if err := mount(b.From, to, "", unix.MS_BIND, ""); err != nil || !b.ReadOnly {
		return err
	}
	return mount("", to, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
}

// mount lays the cover over its place; at is where it is kept. What this machine
// does not have needs no cover.
func (c cover) mount(root, at string) error {
	if _, err := os.Stat(filepath.Join(root, c.To)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if c.Files == nil {
		if err := os.WriteFile(at, []byte(c.Text), 0o644); err != nil {
			return err
		}
	}
	for name, text := range c.Files {
		path := filepath.Join(at, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return mount(at, filepath.Join(root, c.To), "", unix.MS_BIND, "")
}

// enter makes root the root, and lets go of the old one.
func enter(root string) error {
	if err := os.Chdir(root); err != nil {
		return err
	}
	// The old root comes to lie on the new one, whence it is taken off (pivot_root(2)).
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("changing the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("letting go of the old root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	// kubelet and containerd hand mounts on; it stays within this namespace.
	return unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "")
}

func mount(from, to, kind string, flags uintptr, options string) error {
	if err := unix.Mount(from, to, kind, flags, options); err != nil {
		return fmt.Errorf("mounting %s at %s: %w", from, to, err)
	}
	return nil
}
