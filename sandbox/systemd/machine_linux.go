package systemd

import (
	"bytes"
	"context"
	_ "embed" // boot.sh
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/lifeboat-dev/lifeboat/sandbox/instances"
	"github.com/lifeboat-dev/lifeboat/sandbox/netns"
	"github.com/lifeboat-dev/lifeboat/sandbox/process"
)

//go:embed boot.sh
var bootScript string

const (
	program = "/usr/lib/systemd/systemd"
	// namespaces are a machine's own. boot.sh creates the cgroup namespace.
	namespaces = unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC
)

// Machine is a computer with a disk. Its methods are not safe for concurrent use.
type Machine struct {
	disk, scratch string
	cgroup        string // below the mount point of the hierarchy
	net           *Network
	proc          *process.Process
}

// machines counts the machines of this process, for the names of their cgroups.
var machines atomic.Int32

// Missing returns an error that lists what this machine lacks; nil if nothing.
func Missing() error {
	var lacks []string
	if os.Geteuid() != 0 {
		lacks = append(lacks, "root (run it with sudo -E)")
	}
	for _, path := range []string{program, "/usr/lib/systemd/systemd-networkd", "/usr/bin/nsenter", "/usr/bin/unshare"} {
		if _, err := os.Stat(path); err != nil {
			lacks = append(lacks, path)
		}
	}
	if _, err := cgroupMount(); err != nil {
		lacks = append(lacks, err.Error())
	}
	if len(lacks) == 0 {
		return nil
	}
	return fmt.Errorf("a machine with systemd needs %s: on Debian and Ubuntu, apt-get install systemd util-linux", strings.Join(lacks, ", "))
}

// cgroupMount returns where the hierarchy of cgroup v2 is mounted.
func cgroupMount() (string, error) {
	for _, path := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		var s unix.Statfs_t
		if unix.Statfs(path, &s) == nil && s.Type == unix.CGROUP2_SUPER_MAGIC {
			return path, nil
		}
	}
	return "", errors.New("cgroup v2, mounted at /sys/fs/cgroup or /sys/fs/cgroup/unified")
}

// New makes a machine without power in an empty directory, with the files of Debian that systemd needs.
func New(dir string, n *Network) (*Machine, error) {
	m := &Machine{
		disk: filepath.Join(dir, "disk"), scratch: dir, net: n,
		cgroup: fmt.Sprintf("lifeboat-systemd-%d-%d", os.Getpid(), machines.Add(1)),
	}
	for _, d := range []string{
		"usr", "local/bin", "proc", "sys", "run", "tmp", "dev", "mnt", "root", "var/log/journal", "var/lib", "etc/systemd/network",
	} {
		if err := os.MkdirAll(filepath.Join(m.disk, d), 0o755); err != nil {
			return nil, err
		}
	}
	var errs []error
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		errs = append(errs, os.Symlink("usr/"+name, filepath.Join(m.disk, name)))
	}
	errs = append(errs, os.Symlink("/run", filepath.Join(m.disk, "var/run")))
	for _, name := range []string{"passwd", "group", "nsswitch.conf"} {
		text, err := os.ReadFile("/etc/" + name)
		errs = append(errs, err, m.Write("/etc/"+name, string(text), 0o644))
	}
	for path, text := range map[string]string{
		"/etc/machine-id": strings.ReplaceAll(uuid.NewString(), "-", "") + "\n",
		"/etc/hostname":   "machine\n", "/etc/os-release": "ID=debian\n",
		"/etc/systemd/network/eth0.network": networkFile,
	} {
		errs = append(errs, m.Write(path, text, 0o644))
	}
	for _, unit := range []string{"systemd-logind.service", "dbus.service", "dbus.socket"} {
		errs = append(errs, m.link("/dev/null", unit))
	}
	errs = append(errs,
		m.link("/usr/lib/systemd/system/multi-user.target", "default.target"),
		m.link("/usr/lib/systemd/system/systemd-networkd.service", "multi-user.target.wants/systemd-networkd.service"),
		m.link("/usr/lib/systemd/system/systemd-networkd-wait-online.service", "network-online.target.wants/systemd-networkd-wait-online.service"),
		os.WriteFile(m.script(), []byte(bootScript), 0o600))
	return m, errors.Join(errs...)
}

func (m *Machine) script() string { return filepath.Join(m.scratch, "boot.sh") }

// Path returns where a file of the machine's disk is on this machine.
func (m *Machine) Path(path string) string { return filepath.Join(m.disk, path) }

// Write writes a file to the disk.
func (m *Machine) Write(path, text string, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(m.Path(path)), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(m.Path(path), []byte(text), mode); err != nil {
		return err
	}
	return os.Chmod(m.Path(path), mode)
}

// Enable has a unit started at boot.
func (m *Machine) Enable(unit string) error {
	return m.link("/etc/systemd/system/"+unit, "multi-user.target.wants/"+unit)
}

func (m *Machine) link(to, name string) error {
	path := m.Path("/etc/systemd/system/" + name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.Symlink(to, path)
}

// Boot turns the power on. The network's cable has the state of the last Plug.
func (m *Machine) Boot(ctx context.Context) (err error) {
	top, err := cgroupMount()
	if err != nil {
		return err
	}
	group := filepath.Join(top, m.cgroup)
	if err := os.MkdirAll(group, 0o755); err != nil {
		return err
	}
	wait, release, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, wait.Close(), release.Close()) }()
	m.proc, err = process.Start(ctx, process.Options{
		Name: "the machine", Path: "/bin/sh", Args: []string{"-e", m.script(), m.disk, group, uuid.NewString()},
		Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, Dir: "/", LogFile: filepath.Join(m.scratch, "console.log"),
		Stdin: wait, Cloneflags: namespaces,
	})
	if err != nil {
		return err
	}
	space, err := netns.Of(m.proc.PID())
	if err != nil {
		return err
	}
	return errors.Join(m.net.attach(space), space.Close())
}

// Done is closed when the machine has ended. It must have booted.
func (m *Machine) Done() <-chan struct{} { return m.proc.Done() }

// Cut cuts the power, and returns when no process of the machine is left.
func (m *Machine) Cut() error {
	if m.proc == nil {
		return nil
	}
	m.proc.Kill9()
	m.proc = nil
	return instances.Sweep(context.Background(), m.cgroup)
}

// Suspend stops all processes of the machine at once, or continues them.
func (m *Machine) Suspend(on bool) error {
	top, err := cgroupMount()
	if err != nil {
		return err
	}
	state := "0"
	if on {
		state = "1"
	}
	return os.WriteFile(filepath.Join(top, m.cgroup, "cgroup.freeze"), []byte(state), 0o644)
}

// Run runs a command on the machine, and returns its output.
func (m *Machine) Run(ctx context.Context, command ...string) (string, error) {
	args := append([]string{"--target", strconv.Itoa(m.proc.PID()), "--all", "--"}, command...)
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "/usr/bin/nsenter", args...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "SYSTEMD_PAGER=", "SYSTEMD_COLORS=0"}
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, out.String())
	}
	return strings.TrimSpace(out.String()), err
}

// WriteJournal writes the machine's journal, of all boots.
func (m *Machine) WriteJournal(ctx context.Context, w io.Writer) error {
	cmd := exec.CommandContext(ctx, "journalctl", "--directory", m.Path("/var/log/journal"), "--no-pager", "--output", "short-monotonic")
	cmd.Stdout, cmd.Stderr = w, w
	return cmd.Run()
}
