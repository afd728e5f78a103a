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

// privateDirs are directories in which nothing of the host may be visible: a kubelet
// would find the pods of another. containerd's directory must not be an overlay,
// because an overlay cannot be the upper layer of another.
var privateDirs = []string{"/run", "/tmp", "/var/lib/containerd", "/var/lib/kubelet", "/var/lib/cni", "/var/log"}

// build creates the file system: an overlay of the host's, with all writes in memory.
// It disappears with the last process of the instance.
func build(c config, cgroups []hierarchy) error {
	if err := unix.Sethostname([]byte(c.Hostname)); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	// First make mounts private, so that no mount here is visible on the host.
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
	return switchRoot(root)
}

func systemMounts(root string, cgroups []hierarchy) error {
	for _, dir := range append([]string{"/proc", "/sys", "/dev"}, privateDirs...) {
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
	for _, dir := range privateDirs {
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

// mount mounts the cover over its target; at is where its content is stored. A target
// that does not exist on this host needs no cover.
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

// switchRoot makes root the root directory, and unmounts the old one.
func switchRoot(root string) error {
	if err := os.Chdir(root); err != nil {
		return err
	}
	// The old root is then mounted on top of the new one, and is unmounted from there
	// (pivot_root(2)).
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("changing the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmounting the old root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	// kubelet and containerd need shared mounts. They stay within this namespace.
	return unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "")
}

func mount(from, to, kind string, flags uintptr, options string) error {
	if err := unix.Mount(from, to, kind, flags, options); err != nil {
		return fmt.Errorf("mounting %s at %s: %w", from, to, err)
	}
	return nil
}
