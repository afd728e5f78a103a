// Command instance is process 1 of a sandbox's real instance. It turns the namespaces
// in which it was started into a machine with its own file system, cgroups and
// programs, and reaps its processes.
//
// It has no knowledge of clusters: it only applies its configuration. The caller
// starts it in new pid, mount, network, UTS and IPC namespaces, configures the
// network from outside, and then closes its standard input. SIGPWR is its power
// button: the machine shuts down like systemd-logind, and the program exits with
// status 0. SIGKILL is a power failure.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

const usage = "instance: use `instance boot CONFIG`, as process 1 of new namespaces\n"

// config describes the instance.
type config struct {
	Hostname string `json:"hostname"`
	// Cgroup is its directory below the root of each hierarchy.
	Cgroup string `json:"cgroup"`
	// Root is an empty directory for its file system.
	Root string `json:"root"`
	// Binds are host directories that are visible in the instance.
	Binds []bind `json:"binds"`
	// Covers replace files and directories in the instance.
	Covers []cover `json:"covers"`
	// Env is the environment of its programs.
	Env []string `json:"env"`
	// SystemBus is the path of the socket of the substitute of systemd-logind.
	// InhibitDelayMaxSec is that of logind.conf(5): how long a shutdown waits for
	// inhibitors.
	SystemBus          string `json:"systemBus"`
	InhibitDelayMaxSec int    `json:"inhibitDelayMaxSec"`
	// Containerd is started first. Then Images, archives in Binds, are imported
	// through its socket, and then Programs are started. A program that ends is
	// restarted.
	Containerd program   `json:"containerd"`
	Socket     string    `json:"socket"`
	Images     []string  `json:"images"`
	Programs   []program `json:"programs"`
}

type bind struct {
	From     string `json:"from"`
	To       string `json:"to"`
	ReadOnly bool   `json:"readOnly"`
}

// cover replaces To by a file with Text, or by a directory with Files by their paths.
type cover struct {
	To    string            `json:"to"`
	Text  string            `json:"text"`
	Files map[string]string `json:"files"`
}

type program struct {
	Path string   `json:"path"`
	Args []string `json:"args"`
	Log  string   `json:"log"`
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "instance:", err)
		os.Exit(1)
	}
}

// run is one of the two stages. Between them the program executes itself, because
// only then do all its threads enter the new cgroup namespace.
func run(stage, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	var c config
	if err := json.Unmarshal(text, &c); err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	if os.Getpid() != 1 {
		return fmt.Errorf("this is process %d, but it must be process 1 of a new pid namespace", os.Getpid())
	}
	all, err := hierarchies()
	if err != nil {
		return fmt.Errorf("reading the cgroup hierarchies: %w", err)
	}
	switch stage {
	case "boot":
		if err := enterCgroups(all, c.Cgroup); err != nil {
			return fmt.Errorf("entering the instance's cgroups: %w", err)
		}
		return reexec(file)
	case "init":
		if err := moveToLeaf(all, c.Cgroup); err != nil {
			return fmt.Errorf("entering the instance's cgroups: %w", err)
		}
		if err := build(c, all); err != nil {
			return fmt.Errorf("building the instance's file system: %w", err)
		}
		// The network is ready when standard input ends.
		if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
			return fmt.Errorf("waiting for the network: %w", err)
		}
		return supervise(c)
	default:
		return fmt.Errorf("unknown stage %q: use boot or init", stage)
	}
}
